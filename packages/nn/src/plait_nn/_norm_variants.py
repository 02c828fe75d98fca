"""`SyncBatchNorm` and `CrossMapLRN2d`."""

from __future__ import annotations

from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_nn._batch_norm import _BatchNorm
from plait_nn._group_norm import _ResponseNorm
from plait_nn._halves import widened
from plait_nn._module import Module

__all__ = ["CrossMapLRN2d", "SyncBatchNorm"]


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
        device: Where the parameters live.
        dtype: Their dtype; None is float32.
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
