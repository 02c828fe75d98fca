"""Normalisation as modules: over batches, layers, groups and neighbouring channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import plait_core as pc
from plait_abi.frames import warn
from plait_core import Tensor
from plait_nn import functional as F, init
from plait_nn._halves import widened
from plait_nn._linear import check_sizes
from plait_nn._module import Module
from plait_nn._parameter import Parameter


class Affine(Module):
    """A module that multiplies by a weight and adds a bias, if it has them."""

    weight: Parameter | None
    bias: Parameter | None

    def _add_affine(
        self, shape: int | tuple[int, ...], weight: bool, bias: bool, device: Any, dtype: Any
    ) -> None:
        for name, present in (("weight", weight), ("bias", bias)):
            empty = pc.empty(shape, device=device, dtype=dtype) if present else None
            self.register_parameter(name, None if empty is None else Parameter(empty))

    def reset_parameters(self) -> None:
        """Set the weight to 1 and the bias to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LayerNorm(Affine):
    """Normalise over the last dimensions; see `plait.nn.functional.layer_norm`.

    Args:
        normalized_shape: Sizes of the last dimensions, or the size of the last one.
        eps: Keeps the root away from 0.
        elementwise_affine: Whether there is a weight, starting at 1, and a bias.
        bias: Whether there is a bias, starting at 0.
        device, dtype: Where the parameters are, and their dtype; None is float32.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.LayerNorm(10)(pc.randn(2, 5, 10)).shape)
        (2, 5, 10)
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if isinstance(normalized_shape, int):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        has_bias = elementwise_affine and bias
        self._add_affine(self.normalized_shape, elementwise_affine, has_bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class GroupNorm(Affine):
    """Normalise over groups of channels; see `plait.nn.functional.group_norm`.

    Args:
        num_groups: Number of groups of channels.
        num_channels: Channels of the input, of shape ``(N, C, *)``.
        eps: Keeps the root away from 0.
        affine: Whether there is a weight, starting at 1, and a bias.
        device, dtype: Where the parameters are, and their dtype; None is float32.
        bias: Whether there is a bias, starting at 0.

    Raises:
        ValueError: ``num_groups`` doesn't divide ``num_channels``.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.GroupNorm(3, 6)(pc.randn(20, 6, 10, 10)).shape)
        (20, 6, 10, 10)
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(
                f"GroupNorm: `num_channels` must be divisible by `num_groups`; "
                f"got {num_channels} and {num_groups}"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._add_affine(num_channels, affine, affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divide by the root of the mean square; see `plait.nn.functional.rms_norm`.

    Args:
        normalized_shape: Sizes of the last dimensions, or the size of the last one.
        eps: Keeps the root away from 0; None is the epsilon of the input's dtype.
        elementwise_affine: Whether there is a weight, starting at 1.
        device: Where the weight lives.
        dtype: Its dtype; None is float32.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.RMSNorm(3)(pc.tensor([[3.0, 3.0, -3.0]])).detach()
        tensor([[ 1.,  1., -1.]])
    """

    weight: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if isinstance(normalized_shape, int):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        if elementwise_affine:
            empty = pc.empty(self.normalized_shape, device=device, dtype=dtype)
            self.weight = Parameter(empty)
        else:
            self.register_parameter("weight", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class _ResponseNorm(Module):
    """Division by a power of the sum of neighbouring channels' squares."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class LocalResponseNorm(_ResponseNorm):
    """Divide by a norm over neighbouring channels; see `plait.nn.functional.local_response_norm`.

    Args:
        size: Number of neighbouring channels.
        alpha: Factor of their squares.
        beta: Exponent of the divisor.
        k: Added to the sum.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.LocalResponseNorm(3, alpha=3.0, beta=1.0)(pc.ones(1, 3, 1)).reshape(-1)
        tensor([0.3333, 0.2500, 0.3333])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)


_STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


class _Norm(Affine):
    """Weight and bias of the channels, and running statistics."""

    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None
    _ndims: tuple[int, ...] = ()
    _version = 2  # with num_batches_tracked

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        check_sizes(type(self).__name__, num_features=num_features)
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self._add_affine(num_features, affine, affine and bias, device, dtype)
        if track_running_stats:
            self.register_buffer("running_mean", pc.zeros(num_features, device=device, dtype=dtype))
            self.register_buffer("running_var", pc.ones(num_features, device=device, dtype=dtype))
            count = pc.zeros((), dtype=pc.int64, device=device)
            self.register_buffer("num_batches_tracked", count)
        else:
            for name in _STATISTICS:
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Set the running mean and the count to 0, the running variance to 1."""
        if self.track_running_stats:
            for name, value in zip(_STATISTICS, (0, 1, 0), strict=True):
                buffer = self._buffers[name]
                if buffer is not None:
                    buffer.fill_(value)

    def reset_parameters(self) -> None:
        """Reset the running statistics, set the weight to 1 and the bias to 0."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim not in self._ndims:
            dimensions = " or ".join(str(n) for n in self._ndims)
            raise ValueError(
                f"{type(self).__name__}: `input` must have {dimensions} dimensions; "
                f"got shape {tuple(input.shape)}"
            )

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        *args: Any,
        **kwargs: Any,
    ) -> None:
        # old checkpoints and plain dicts may lack num_batches_tracked
        key = f"{prefix}num_batches_tracked"
        old = (local_metadata.get("version") or 1) < 2
        count = self.num_batches_tracked
        if old and count is not None and key not in state_dict:
            state_dict[key] = pc.zeros((), dtype=count.dtype) if count.is_meta else count
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args, **kwargs)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_Norm):
    def forward(self, input: Tensor) -> Tensor:
        return self._normalise(input, F.batch_norm)

    def _by_batch(self) -> bool:
        """Whether the statistics are those of the batch."""
        return self.training or (self.running_mean is None and self.running_var is None)

    def _normalise(self, input: Tensor, batch_norm: Callable[..., Tensor]) -> Tensor:
        """Call ``batch_norm``, which has the parameters of `plait.nn.functional.batch_norm`."""
        self._check_input_dim(input)
        count = self.num_batches_tracked if self.training else None
        if count is not None:
            count.add_(1)
        by_batch = self._by_batch()
        keep = not self.training or self.track_running_stats
        mean, var = (self.running_mean, self.running_var) if keep else (None, None)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.momentum is not None or count is None or mean is None or var is None:
            return batch_norm(
                input, mean, var, self.weight, self.bias, by_batch, momentum, self.eps
            )
        # The plain average over all batches. Reading their number would wait for a device. So the
        # momentum 1.0 writes the statistics of the batch to clones.
        new = mean.clone(), var.clone()
        result = batch_norm(input, *new, self.weight, self.bias, by_batch, 1.0, self.eps)
        wide = pc.float64 if mean.dtype is pc.float64 else pc.float32
        share = count.to(wide).reciprocal()
        for running, each in zip((mean, var), new, strict=True):
            running.copy_(running.to(wide).lerp(each.to(wide), share))
        return result


class BatchNorm1d(_BatchNorm):
    r"""Normalise each channel over the batch; see `plait.nn.functional.batch_norm`.

    In training :math:`y = (x - \mathrm{E}[x]) / \sqrt{\mathrm{Var}[x] + \epsilon} \cdot w + b` with
    the batch's statistics; in evaluation with the running ones, which training updates.

    Args:
        num_features: Channels, C.
        eps: Keeps the root away from 0.
        momentum: The weight of a batch in the running statistics; None averages all batches.
        affine: Whether there is a weight, starting at 1, and a bias.
        track_running_stats: Whether there are running statistics.
        device, dtype: Where the parameters are, and their dtype; None is float32.
        bias: Whether there is a bias, starting at 0.

    Shapes: (N, C) or (N, C, L).

    Raises:
        ValueError: The input has another number of dimensions.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.BatchNorm1d(1, eps=0.0, affine=False)(pc.tensor([[1.0], [3.0]])).tolist()
        [[-1.0], [1.0]]
    """

    _ndims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalise each channel of images (N, C, H, W) over the batch; see `BatchNorm1d`.

    Args:
        num_features: Number of channels C.
        eps: Added to the variance before its root is taken.
        momentum: Weight of a batch in the running statistics; None: their mean over all batches.
        affine: Whether there are learned factors and offsets of the channels.
        track_running_stats: Whether there are running statistics, which evaluation uses.
        device: Where the parameters are; None is the default device.
        dtype: The parameters' dtype; None is the default dtype.
        bias: Whether there are offsets, if `affine`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.BatchNorm2d(3)
        >>> tuple(layer(pc.randn(2, 3, 4, 4)).shape), layer.num_batches_tracked.item()
        ((2, 3, 4, 4), 1)
    """

    _ndims = (4,)


class BatchNorm3d(_BatchNorm):
    """Normalise each channel of volumes (N, C, D, H, W) over the batch; see `BatchNorm1d`.

    Args:
        num_features: Number of channels C.
        eps: Added to the variance before its root is taken.
        momentum: Weight of a batch in the running statistics; None: their mean over all batches.
        affine: Whether there are learned factors and offsets of the channels.
        track_running_stats: Whether there are running statistics, which evaluation uses.
        device: Where the parameters are; None is the default device.
        dtype: The parameters' dtype; None is the default dtype.
        bias: Whether there are offsets, if `affine`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.BatchNorm3d(3)(pc.randn(2, 3, 4, 4, 4)).shape)
        (2, 3, 4, 4, 4)
    """

    _ndims = (5,)


class _InstanceNorm(_Norm):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        single = input.ndim == self._ndims[0]
        batch = input.unsqueeze(0) if single else input
        if batch.shape[1] != self.num_features:
            text = (
                f"{type(self).__name__}: `input` must have `num_features` {self.num_features} "
                f"channels; got shape {tuple(input.shape)}"
            )
            if self.affine or self.track_running_stats:
                raise pc.ShapeError(text)
            # no member has that size, and programs pass any number
            warn(f"{text}; without weight and statistics it has no effect")
        result = F.instance_norm(
            batch,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return result.squeeze(0) if single else result


class InstanceNorm1d(_InstanceNorm):
    """Normalise each channel of each sample; see `plait.nn.functional.instance_norm`.

    Args:
        num_features: Channels, C.
        eps: Keeps the root away from 0.
        momentum: The weight of an input in the running statistics.
        affine: Whether there is a weight, starting at 1, and a bias.
        track_running_stats: Whether there are running statistics, used in evaluation.
        device, dtype: Where the parameters are, and their dtype; None is float32.
        bias: Whether there is a bias, starting at 0.

    Shapes: (N, C, L) or (C, L).

    Raises:
        ValueError: The input has another number of dimensions.
        ShapeError: It has other channels, or one element in each.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.InstanceNorm1d(2, eps=0.0)(pc.tensor([[[1.0, 3.0], [10.0, 30.0]]])).tolist()
        [[[-1.0, 1.0], [-1.0, 1.0]]]
    """

    _ndims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Normalise each channel of each image, (N, C, H, W) or (C, H, W); see `InstanceNorm1d`.

    Args:
        num_features: Number of channels C.
        eps: Added to the variance before its root is taken.
        momentum: Weight of a batch in the running statistics; None: their mean over all batches.
        affine: Whether there are learned factors and offsets of the channels.
        track_running_stats: Whether there are running statistics, which evaluation uses.
        device: Where the parameters are; None is the default device.
        dtype: The parameters' dtype; None is the default dtype.
        bias: Whether there are offsets, if `affine`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.InstanceNorm2d(3, affine=True)(pc.randn(2, 3, 4, 4)).shape)
        (2, 3, 4, 4)
    """

    _ndims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Normalise each channel of each volume, (N, C, D, H, W) or (C, D, H, W).

    See `InstanceNorm1d`.

    Args:
        num_features: Number of channels C.
        eps: Added to the variance before its root is taken.
        momentum: Weight of a batch in the running statistics; None: their mean over all batches.
        affine: Whether there are learned factors and offsets of the channels.
        track_running_stats: Whether there are running statistics, which evaluation uses.
        device: Where the parameters are; None is the default device.
        dtype: The parameters' dtype; None is the default dtype.
        bias: Whether there are offsets, if `affine`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.InstanceNorm3d(3)(pc.randn(3, 2, 4, 4)).shape)
        (3, 2, 4, 4)
    """

    _ndims = (4, 5)


class SyncBatchNorm(_BatchNorm):
    """Normalise each channel over the batch of one process, for inputs of any number of dimensions.

    There is no communication between processes in ``plait-nn``: a ``process_group`` is an error.
    Without it the layer is batch norm, like PyTorch's layer in a single process.

    Args:
        num_features: Channels, C.
        eps: Keeps the root away from 0.
        momentum: The weight of a batch in the running statistics; None averages all batches.
        affine: Whether there is a weight, starting at 1, and a bias.
        track_running_stats: Whether there are running statistics.
        process_group: None.
        device, dtype: Where the parameters are, and their dtype; None is float32.
        bias: Whether there is a bias, starting at 0.

    Shapes: (N, C, ...).

    Raises:
        NotImplementedError: A ``process_group`` is given.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.SyncBatchNorm(3)(pc.randn(2, 3, 4, 4)).shape)
        (2, 3, 4, 4)
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        if process_group is not None:
            raise NotImplementedError(
                "SyncBatchNorm: `process_group` must be None: statistics are those of one process"
            )
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = None

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ValueError(
                f"SyncBatchNorm: input must have at least 2 dimensions; "
                f"got shape {tuple(input.shape)}"
            )

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Replace every batch norm within a module by one of this class with the same state.

        Args:
            module: The module whose batch norms are replaced.

        Example:
            >>> import plait_nn as nn
            >>> model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
            >>> nn.SyncBatchNorm.convert_sync_batchnorm(model)[1].__class__.__name__
            'SyncBatchNorm'
        """
        result = module
        if isinstance(module, _BatchNorm) and not isinstance(module, cls):
            output = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            for name, parameter in module._parameters.items():
                setattr(output, name, parameter)
            for name, buffer in module._buffers.items():
                setattr(output, name, buffer)
            output.training = module.training
            result = output
        for name, child in list(module.named_children()):
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result


class CrossMapLRN2d(_ResponseNorm):
    r"""Divide each channel of images by the sum of the squares of its neighbours.

    :math:`y = x \, (k + \frac{\alpha}{n} \sum x_j^2)^{-\beta}`, the sum over the channel itself and
    :math:`\lfloor (n - 1) / 2 \rfloor` on either side, and always the first channel, as in PyTorch,
    whose running sum keeps it. `LocalResponseNorm` does not include it.

    Args:
        size: n.
        alpha: The factor of the sum.
        beta: The exponent.
        k: The constant term.

    Shapes: (N, C, H, W).

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x = pc.full((1, 3, 1, 1), 2.0)
        >>> nn.CrossMapLRN2d(3, alpha=3.0, beta=1.0)(x).flatten().tolist()
        [0.2222222238779068, 0.1538461595773697, 0.1538461595773697]
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim != 4:
            raise pc.ShapeError(
                f"CrossMapLRN2d: input must be (N, C, H, W); got shape {tuple(input.shape)}"
            )
        side, channels = (self.size - 1) // 2, input.shape[1]
        wide = widened(input)
        squares, total = wide * wide, None
        for i in range(-side, side + 1):
            low, high = max(0, i), min(channels, channels + i)
            if low >= high:
                continue
            part = squares.narrow(1, low, high - low)
            shifted = pc.zeros_like(squares)
            shifted = shifted.slice_scatter(part, 1, low - i, high - i)
            total = shifted if total is None else total + shifted
        assert total is not None
        if channels > side + 1:
            far = pc.arange(channels, device=input.device).reshape((-1, 1, 1)) > side
            total = total + squares.narrow(1, 0, 1) * far
        scale = total * (self.alpha / self.size) + self.k
        return (wide * scale**-self.beta).to(input.dtype)
