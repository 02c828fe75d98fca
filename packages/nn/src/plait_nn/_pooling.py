"""Pooling of images as modules, and base classes for pooling of sequences and volumes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_core import Tensor
from plait_nn._looked_up import LookedUp
from plait_nn._module import Module
from plait_nn.functional._conv import Pair
from plait_nn.functional._sizes import Sizes

__all__ = ["AdaptiveAvgPool2d", "AvgPool2d", "MaxPool2d"]


class MaxPool2d(Module):
    """Take the maximum of every window; see `plait_nn.functional.max_pool2d`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.MaxPool2d(2)(pc.randn(1, 3, 28, 28)).shape)
        (1, 3, 14, 14)
    """

    _pool = LookedUp("max_pool2d")

    def __init__(
        self,
        kernel_size: Pair,
        stride: Pair | None = None,
        padding: Pair = 0,
        dilation: Pair = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        return type(self)._pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class _Windowed(Module):
    """Pooling whose repr shows size, stride and padding of its windows only."""

    kernel_size: Sizes
    stride: Sizes
    padding: Sizes

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(_Windowed):
    """Take the mean of every window; see `plait_nn.functional.avg_pool2d`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.AvgPool2d(2)(pc.ones(1, 3, 28, 28)).shape)
        (1, 3, 14, 14)
    """

    _pool = LookedUp("avg_pool2d")

    def __init__(
        self,
        kernel_size: Pair,
        stride: Pair | None = None,
        padding: Pair = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = type(self)._pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )
        return result


class _AdaptivePool(Module):
    """Pooling to a fixed output size by ``_pool``."""

    _pool: Callable[..., Any]

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _AdaptiveAvgPool(_AdaptivePool):
    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = type(self)._pool(input, self.output_size)
        return result


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """Average to a fixed output size; see `plait_nn.functional.adaptive_avg_pool2d`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.AdaptiveAvgPool2d((2, None))(pc.ones(1, 3, 8, 6)).shape)
        (1, 3, 2, 6)
    """

    _pool = LookedUp("adaptive_avg_pool2d")

    def __init__(self, output_size: int | tuple[int | None, int | None] | None) -> None:
        super().__init__(output_size)
