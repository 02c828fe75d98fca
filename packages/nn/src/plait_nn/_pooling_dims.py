"""Pooling in one and three dimensions, and pooling by p-norms, as modules."""

from __future__ import annotations

from collections.abc import Callable

from plait_core import Tensor
from plait_nn import functional as F
from plait_nn._looked_up import LookedUp
from plait_nn._module import Module
from plait_nn._pooling import AvgPool2d, MaxPool2d, _Windowed
from plait_nn.functional._sizes import Sizes, sizes_of

__all__ = ["AvgPool1d", "AvgPool3d", "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool3d"]


class MaxPool1d(MaxPool2d):
    """Take the maximum of every window of sequences (N, C, L) or (C, L).

    See `MaxPool2d` and `plait_nn.functional.max_pool1d`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.MaxPool1d(2)(pc.ones(1, 3, 8)).shape)
        (1, 3, 4)
    """

    _pool = LookedUp("max_pool1d")


class MaxPool3d(MaxPool2d):
    """Take the maximum of every window of volumes (N, C, D, H, W) or (C, D, H, W).

    See `MaxPool2d` and `plait_nn.functional.max_pool3d`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.MaxPool3d(2)(pc.ones(1, 3, 8, 8, 8)).shape)
        (1, 3, 4, 4, 4)
    """

    _pool = LookedUp("max_pool3d")


class AvgPool1d(_Windowed):
    """Take the mean of every window of sequences (N, C, L) or (C, L).

    See `plait_nn.functional.avg_pool1d`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.AvgPool1d(2)(pc.tensor([[1.0, 3.0, 2.0, 0.0]]))
        tensor([[2., 1.]])
    """

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = sizes_of(kernel_size, 1, "kernel_size", "AvgPool1d")
        size = kernel_size if stride is None else stride
        self.stride = sizes_of(size, 1, "stride", "AvgPool1d")
        self.padding = sizes_of(padding, 1, "padding", "AvgPool1d")
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )


class AvgPool3d(AvgPool2d):
    """Take the mean of every window of volumes (N, C, D, H, W) or (C, D, H, W).

    See `AvgPool2d` and `plait_nn.functional.avg_pool3d`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.AvgPool3d(2)(pc.ones(1, 3, 8, 8, 8)).shape)
        (1, 3, 4, 4, 4)
    """

    _pool = LookedUp("avg_pool3d")


class _LPPool(Module):
    _pool: Callable[..., Tensor]

    def __init__(
        self,
        norm_type: float,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return type(self)._pool(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """Take the p-norm of every window of sequences (N, C, L) or (C, L).

    See `plait_nn.functional.lp_pool1d`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.LPPool1d(2, 2)(pc.tensor([3.0, 4.0]).reshape(1, 2)).item()
        5.0
    """

    _pool = LookedUp("lp_pool1d")


class LPPool2d(_LPPool):
    """Take the p-norm of every window of images (N, C, H, W) or (C, H, W).

    See `plait_nn.functional.lp_pool2d`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.LPPool2d(2, (1, 2,))(pc.tensor([3.0, 4.0]).reshape(1, 1, 2)).item()
        5.0
    """

    _pool = LookedUp("lp_pool2d")


class LPPool3d(_LPPool):
    """Take the p-norm of every window of volumes (N, C, D, H, W) or (C, D, H, W).

    See `plait_nn.functional.lp_pool3d`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.LPPool3d(2, (1, 1, 2,))(pc.tensor([3.0, 4.0]).reshape(1, 1, 1, 2)).item()
        5.0
    """

    _pool = LookedUp("lp_pool3d")
