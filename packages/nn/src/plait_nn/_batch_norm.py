"""Normalisation with running statistics: `BatchNorm1d` to `3d`, `InstanceNorm1d` to `3d`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plait_core as pc
from plait_abi.frames import warn
from plait_core import Tensor
from plait_nn import functional as F
from plait_nn._affine import Affine
from plait_nn._linear import check_sizes

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
]

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
        """Call ``batch_norm``, which has the parameters of `plait_nn.functional.batch_norm`."""
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
    r"""Normalise each channel over the batch; see `plait_nn.functional.batch_norm`.

    In training :math:`y = (x - \mathrm{E}[x]) / \sqrt{\mathrm{Var}[x] + \epsilon} \cdot w + b` with
    the batch's statistics; in evaluation with the running ones, which training updates.

    Args:
        num_features: Channels, C.
        eps: Keeps the root away from 0.
        momentum: The weight of a batch in the running statistics; None averages all batches.
        affine: Whether there is a weight, starting at 1, and a bias.
        track_running_stats: Whether there are running statistics.
        device: Where the parameters live.
        dtype: Their dtype; None is float32.
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

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.BatchNorm2d(3)
        >>> tuple(layer(pc.randn(2, 3, 4, 4)).shape), layer.num_batches_tracked.item()
        ((2, 3, 4, 4), 1)
    """

    _ndims = (4,)


class BatchNorm3d(_BatchNorm):
    """Normalise each channel of volumes (N, C, D, H, W) over the batch; see `BatchNorm1d`.

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
    """Normalise each channel of each sample; see `plait_nn.functional.instance_norm`.

    Args:
        num_features: Channels, C.
        eps: Keeps the root away from 0.
        momentum: The weight of an input in the running statistics.
        affine: Whether there is a weight, starting at 1, and a bias.
        track_running_stats: Whether there are running statistics, used in evaluation.
        device: Where the parameters live.
        dtype: Their dtype; None is float32.
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

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.InstanceNorm2d(3, affine=True)(pc.randn(2, 3, 4, 4)).shape)
        (2, 3, 4, 4)
    """

    _ndims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Normalise each channel of each volume, (N, C, D, H, W) or (C, D, H, W).

    See `InstanceNorm1d`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.InstanceNorm3d(3)(pc.randn(3, 2, 4, 4)).shape)
        (3, 2, 4, 4)
    """

    _ndims = (4, 5)
