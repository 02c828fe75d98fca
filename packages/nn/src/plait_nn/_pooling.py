"""Pooling as modules, for lines, images and volumes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from plait_core import Tensor
from plait_nn import functional as F
from plait_nn._layer import Layer
from plait_nn.functional._checks import Sizes, sizes_of


class MaxPool2d(
    Layer, function="max_pool2d", fields="kernel_size stride padding dilation ceil_mode"
):
    """Take the maximum of every window; see `plait.nn.functional.max_pool2d`.

    Args:
        kernel_size: Size of the windows, one int or one for each dimension.
        stride: Distance of the windows; None: `kernel_size`.
        padding: Elements on every side of each dimension.
        dilation: Distance of a window's elements.
        return_indices: Whether to return the places of the maxima too, for unpooling.
        ceil_mode: Whether a window that leaves the input at its end gives an element too.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.MaxPool2d(2)(pc.randn(1, 3, 28, 28)).shape)
        (1, 3, 14, 14)
    """

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
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
        return type(self)._function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )


class _Windowed(Layer, fields="kernel_size stride padding"):
    """Pooling whose repr shows size, stride and padding of its windows only."""

    kernel_size: Sizes
    stride: Sizes
    padding: Sizes


class AvgPool2d(_Windowed, function="avg_pool2d"):
    """Take the mean of every window; see `plait.nn.functional.avg_pool2d`.

    Args:
        kernel_size: Size of the windows, one int or one for each dimension.
        stride: Distance of the windows; None: `kernel_size`.
        padding: Elements on every side of each dimension.
        ceil_mode: Whether a window that leaves the input at its end gives an element too.
        count_include_pad: Whether the padding's zeros count in the mean.
        divisor_override: The divisor of each sum; None: the window's size.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.AvgPool2d(2)(pc.ones(1, 3, 28, 28)).shape)
        (1, 3, 14, 14)
    """

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
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
        result: Tensor = type(self)._function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )
        return result


class _AdaptivePool(Layer, fields="output_size"):
    """Pooling to a fixed output size by ``_pool``."""

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size


class _AdaptiveAvgPool(_AdaptivePool):
    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = type(self)._function(input, self.output_size)
        return result


class AdaptiveAvgPool2d(_AdaptiveAvgPool, function="adaptive_avg_pool2d"):
    """Average to a fixed output size; see `plait.nn.functional.adaptive_avg_pool2d`.

    Args:
        output_size: Size of the result, one int or one for each dimension; None keeps a size.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.AdaptiveAvgPool2d((2, None))(pc.ones(1, 3, 8, 6)).shape)
        (1, 3, 2, 6)
    """

    def __init__(self, output_size: int | tuple[int | None, int | None] | None) -> None:
        super().__init__(output_size)


class MaxPool1d(MaxPool2d, function="max_pool1d"):
    """Take the maximum of every window of sequences (N, C, L) or (C, L).

    See `MaxPool2d` and `plait.nn.functional.max_pool1d`.

    Args:
        kernel_size: Size of the windows, one int or one for each dimension.
        stride: Distance of the windows; None: `kernel_size`.
        padding: Elements on every side of each dimension.
        dilation: Distance of a window's elements.
        return_indices: Whether to return the places of the maxima too, for unpooling.
        ceil_mode: Whether a window that leaves the input at its end gives an element too.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.MaxPool1d(2)(pc.ones(1, 3, 8)).shape)
        (1, 3, 4)
    """


class MaxPool3d(MaxPool2d, function="max_pool3d"):
    """Take the maximum of every window of volumes (N, C, D, H, W) or (C, D, H, W).

    See `MaxPool2d` and `plait.nn.functional.max_pool3d`.

    Args:
        kernel_size: Size of the windows, one int or one for each dimension.
        stride: Distance of the windows; None: `kernel_size`.
        padding: Elements on every side of each dimension.
        dilation: Distance of a window's elements.
        return_indices: Whether to return the places of the maxima too, for unpooling.
        ceil_mode: Whether a window that leaves the input at its end gives an element too.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.MaxPool3d(2)(pc.ones(1, 3, 8, 8, 8)).shape)
        (1, 3, 4, 4, 4)
    """


class AvgPool1d(_Windowed):
    """Take the mean of every window of sequences (N, C, L) or (C, L).

    See `plait.nn.functional.avg_pool1d`.

    Args:
        kernel_size: Size of the windows, one int or one for each dimension.
        stride: Distance of the windows; None: `kernel_size`.
        padding: Elements on every side of each dimension.
        ceil_mode: Whether a window that leaves the input at its end gives an element too.
        count_include_pad: Whether the padding's zeros count in the mean.

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


class AvgPool3d(AvgPool2d, function="avg_pool3d"):
    """Take the mean of every window of volumes (N, C, D, H, W) or (C, D, H, W).

    See `AvgPool2d` and `plait.nn.functional.avg_pool3d`.

    Args:
        kernel_size: Size of the windows, one int or one for each dimension.
        stride: Distance of the windows; None: `kernel_size`.
        padding: Elements on every side of each dimension.
        ceil_mode: Whether a window that leaves the input at its end gives an element too.
        count_include_pad: Whether the padding's zeros count in the mean.
        divisor_override: The divisor of each sum; None: the window's size.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.AvgPool3d(2)(pc.ones(1, 3, 8, 8, 8)).shape)
        (1, 3, 4, 4, 4)
    """


class _LPPool(Layer, fields="norm_type kernel_size stride ceil_mode"):
    _function: ClassVar[Callable[..., Tensor]]

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
        return type(self)._function(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )


class LPPool1d(_LPPool, function="lp_pool1d"):
    """Take the p-norm of every window of sequences (N, C, L) or (C, L).

    See `plait.nn.functional.lp_pool1d`.

    Args:
        norm_type: The exponent p of the norm.
        kernel_size: Size of the windows, one int or one for each dimension.
        stride: Distance of the windows; None: `kernel_size`.
        ceil_mode: Whether a window that leaves the input at its end gives an element too.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.LPPool1d(2, 2)(pc.tensor([3.0, 4.0]).reshape(1, 2)).item()
        5.0
    """


class LPPool2d(_LPPool, function="lp_pool2d"):
    """Take the p-norm of every window of images (N, C, H, W) or (C, H, W).

    See `plait.nn.functional.lp_pool2d`.

    Args:
        norm_type: The exponent p of the norm.
        kernel_size: Size of the windows, one int or one for each dimension.
        stride: Distance of the windows; None: `kernel_size`.
        ceil_mode: Whether a window that leaves the input at its end gives an element too.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.LPPool2d(2, (1, 2,))(pc.tensor([3.0, 4.0]).reshape(1, 1, 2)).item()
        5.0
    """


class LPPool3d(_LPPool, function="lp_pool3d"):
    """Take the p-norm of every window of volumes (N, C, D, H, W) or (C, D, H, W).

    See `plait.nn.functional.lp_pool3d`.

    Args:
        norm_type: The exponent p of the norm.
        kernel_size: Size of the windows, one int or one for each dimension.
        stride: Distance of the windows; None: `kernel_size`.
        ceil_mode: Whether a window that leaves the input at its end gives an element too.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.LPPool3d(2, (1, 1, 2,))(pc.tensor([3.0, 4.0]).reshape(1, 1, 1, 2)).item()
        5.0
    """


class AdaptiveAvgPool1d(_AdaptiveAvgPool, function="adaptive_avg_pool1d"):
    """Average sequences (N, C, L) or (C, L) to a fixed size.

    See `plait.nn.functional.adaptive_avg_pool1d`.

    Args:
        output_size: Size of the result, one int or one for each dimension; None keeps a size.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.AdaptiveAvgPool1d(2)(pc.ones(1, 3, 8)).shape)
        (1, 3, 2)
    """


class AdaptiveAvgPool3d(_AdaptiveAvgPool, function="adaptive_avg_pool3d"):
    """Average volumes (N, C, D, H, W) or (C, D, H, W) to a fixed size.

    See `plait.nn.functional.adaptive_avg_pool3d`.

    Args:
        output_size: Size of the result, one int or one for each dimension; None keeps a size.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.AdaptiveAvgPool3d(2)(pc.ones(1, 3, 8, 8, 8)).shape)
        (1, 3, 2, 2, 2)
    """


class _AdaptiveMaxPool(_AdaptivePool):
    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        return type(self)._function(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPool, function="adaptive_max_pool1d"):
    """Take maxima of sequences (N, C, L) or (C, L) to a fixed size.

    See `plait.nn.functional.adaptive_max_pool1d`.

    Args:
        output_size: Size of the result, one int or one for each dimension; None keeps a size.
        return_indices: Whether to return the places of the maxima too, for unpooling.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.AdaptiveMaxPool1d(2)(pc.ones(1, 3, 8)).shape)
        (1, 3, 2)
    """


class AdaptiveMaxPool2d(_AdaptiveMaxPool, function="adaptive_max_pool2d"):
    """Take maxima of images (N, C, H, W) or (C, H, W) to a fixed size.

    See `plait.nn.functional.adaptive_max_pool2d`.

    Args:
        output_size: Size of the result, one int or one for each dimension; None keeps a size.
        return_indices: Whether to return the places of the maxima too, for unpooling.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.AdaptiveMaxPool2d(2)(pc.ones(1, 3, 8, 8)).shape)
        (1, 3, 2, 2)
    """


class AdaptiveMaxPool3d(_AdaptiveMaxPool, function="adaptive_max_pool3d"):
    """Take maxima of volumes (N, C, D, H, W) or (C, D, H, W) to a fixed size.

    See `plait.nn.functional.adaptive_max_pool3d`.

    Args:
        output_size: Size of the result, one int or one for each dimension; None keeps a size.
        return_indices: Whether to return the places of the maxima too, for unpooling.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.AdaptiveMaxPool3d(2)(pc.ones(1, 3, 8, 8, 8)).shape)
        (1, 3, 2, 2, 2)
    """


class _MaxUnpool(_Windowed):
    _function: ClassVar[Callable[..., Tensor]]

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
        return type(self)._function(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool1d(_MaxUnpool, dims=1, function="max_unpool1d"):
    """Put the maxima of `MaxPool1d` back; see `plait.nn.functional.max_unpool1d`.

    Args:
        kernel_size: Size of the windows, one int or one for each dimension.
        stride: Distance of the windows; None: `kernel_size`.
        padding: Elements on every side of each dimension.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> maxima, indices = nn.MaxPool1d(2, return_indices=True)(pc.ones(1, 3, 8))
        >>> tuple(nn.MaxUnpool1d(2)(maxima, indices).shape)
        (1, 3, 8)
    """


class MaxUnpool2d(_MaxUnpool, dims=2, function="max_unpool2d"):
    """Put the maxima of `MaxPool2d` back; see `plait.nn.functional.max_unpool2d`.

    Args:
        kernel_size: Size of the windows, one int or one for each dimension.
        stride: Distance of the windows; None: `kernel_size`.
        padding: Elements on every side of each dimension.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> maxima, indices = nn.MaxPool2d(2, return_indices=True)(pc.ones(1, 3, 8, 8))
        >>> tuple(nn.MaxUnpool2d(2)(maxima, indices).shape)
        (1, 3, 8, 8)
    """


class MaxUnpool3d(_MaxUnpool, dims=3, function="max_unpool3d"):
    """Put the maxima of `MaxPool3d` back; see `plait.nn.functional.max_unpool3d`.

    Args:
        kernel_size: Size of the windows, one int or one for each dimension.
        stride: Distance of the windows; None: `kernel_size`.
        padding: Elements on every side of each dimension.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> maxima, indices = nn.MaxPool3d(2, return_indices=True)(pc.ones(1, 3, 8, 8, 8))
        >>> tuple(nn.MaxUnpool3d(2)(maxima, indices).shape)
        (1, 3, 8, 8, 8)
    """


class _FractionalMaxPool(Layer):
    def __init__(
        self,
        kernel_size: Sizes,
        output_size: Sizes | None = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if (output_size is None) == (output_ratio is None):
            raise ValueError(
                f"{name}: one of `output_size` and `output_ratio` must be given; "
                f"got {output_size} and {output_ratio}"
            )
        self.kernel_size = self._each(kernel_size)
        self.return_indices = return_indices
        self.output_size = None if output_size is None else self._each(output_size)
        self.output_ratio = None if output_ratio is None else self._each(output_ratio)
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"{name}: `output_ratio` must be in (0, 1); got {output_ratio}")
        self.register_buffer("_random_samples", _random_samples)

    def _each(self, value: Any) -> tuple[Any, ...]:
        return tuple(value) if isinstance(value, (tuple, list)) else (value,) * self._dims

    def forward(self, input: Tensor) -> Any:
        return type(self)._function(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPool, dims=2, function="fractional_max_pool2d"):
    """Take maxima of images (N, C, H, W) or (C, H, W) over windows at pseudorandom distances.

    `plait.nn.functional.fractional_max_pool2d` has the formula.

    Args:
        kernel_size: The windows' size.
        output_size: The number of windows; or
        output_ratio: the number of windows as a fraction of the input's size.
        return_indices: Also return the index of each maximum in H x W.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.FractionalMaxPool2d(3, output_size=(13, 12))(pc.randn(2, 4, 50, 32)).shape)
        (2, 4, 13, 12)
    """


class FractionalMaxPool3d(_FractionalMaxPool, dims=3, function="fractional_max_pool3d"):
    """Take maxima of volumes (N, C, D, H, W) or (C, D, H, W); see `FractionalMaxPool2d`.

    Args:
        kernel_size: Size of the windows, one int or one for each dimension.
        output_size: Size of the result, one int or one for each dimension; None keeps a size.
        output_ratio: Size of the result over that of the input, instead of `output_size`; in (0,
            1).
        return_indices: Whether to return the places of the maxima too, for unpooling.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.FractionalMaxPool3d(2, output_ratio=0.5)(pc.randn(1, 2, 8, 6, 4)).shape)
        (1, 2, 4, 3, 2)
    """
