"""Adaptive pooling as modules, and the inverse of max pooling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from plait_core import Tensor
from plait_nn._looked_up import LookedUp
from plait_nn._pooling import _AdaptiveAvgPool, _AdaptivePool, _Windowed
from plait_nn.functional._sizes import Sizes, sizes_of

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """Average sequences (N, C, L) or (C, L) to a fixed size.

    See `plait_nn.functional.adaptive_avg_pool1d`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.AdaptiveAvgPool1d(2)(pc.ones(1, 3, 8)).shape)
        (1, 3, 2)
    """

    _pool = LookedUp("adaptive_avg_pool1d")


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """Average volumes (N, C, D, H, W) or (C, D, H, W) to a fixed size.

    See `plait_nn.functional.adaptive_avg_pool3d`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.AdaptiveAvgPool3d(2)(pc.ones(1, 3, 8, 8, 8)).shape)
        (1, 3, 2, 2, 2)
    """

    _pool = LookedUp("adaptive_avg_pool3d")


class _AdaptiveMaxPool(_AdaptivePool):
    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        return type(self)._pool(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Take maxima of sequences (N, C, L) or (C, L) to a fixed size.

    See `plait_nn.functional.adaptive_max_pool1d`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.AdaptiveMaxPool1d(2)(pc.ones(1, 3, 8)).shape)
        (1, 3, 2)
    """

    _pool = LookedUp("adaptive_max_pool1d")


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Take maxima of images (N, C, H, W) or (C, H, W) to a fixed size.

    See `plait_nn.functional.adaptive_max_pool2d`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.AdaptiveMaxPool2d(2)(pc.ones(1, 3, 8, 8)).shape)
        (1, 3, 2, 2)
    """

    _pool = LookedUp("adaptive_max_pool2d")


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Take maxima of volumes (N, C, D, H, W) or (C, D, H, W) to a fixed size.

    See `plait_nn.functional.adaptive_max_pool3d`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.AdaptiveMaxPool3d(2)(pc.ones(1, 3, 8, 8, 8)).shape)
        (1, 3, 2, 2, 2)
    """

    _pool = LookedUp("adaptive_max_pool3d")


class _MaxUnpool(_Windowed):
    _dims: int
    _unpool: Callable[..., Tensor]

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> None:
        super().__init__()
        name = type(self).__name__
        self.kernel_size = sizes_of(kernel_size, self._dims, "kernel_size", name)
        size = kernel_size if stride is None else stride
        self.stride = sizes_of(size, self._dims, "stride", name)
        self.padding = sizes_of(padding, self._dims, "padding", name)

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        return type(self)._unpool(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool1d(_MaxUnpool):
    """Put the maxima of `MaxPool1d` back; see `plait_nn.functional.max_unpool1d`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> maxima, places = nn.MaxPool1d(2, return_indices=True)(pc.ones(1, 3, 8))
        >>> tuple(nn.MaxUnpool1d(2)(maxima, places).shape)
        (1, 3, 8)
    """

    _dims = 1
    _unpool = LookedUp("max_unpool1d")


class MaxUnpool2d(_MaxUnpool):
    """Put the maxima of `MaxPool2d` back; see `plait_nn.functional.max_unpool2d`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> maxima, places = nn.MaxPool2d(2, return_indices=True)(pc.ones(1, 3, 8, 8))
        >>> tuple(nn.MaxUnpool2d(2)(maxima, places).shape)
        (1, 3, 8, 8)
    """

    _dims = 2
    _unpool = LookedUp("max_unpool2d")


class MaxUnpool3d(_MaxUnpool):
    """Put the maxima of `MaxPool3d` back; see `plait_nn.functional.max_unpool3d`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> maxima, places = nn.MaxPool3d(2, return_indices=True)(pc.ones(1, 3, 8, 8, 8))
        >>> tuple(nn.MaxUnpool3d(2)(maxima, places).shape)
        (1, 3, 8, 8, 8)
    """

    _dims = 3
    _unpool = LookedUp("max_unpool3d")
