"""`PixelShuffle`, `ChannelShuffle`, `Fold`, `Unfold`, `Upsample` and related modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plait_abi import OutOfRangeError
from plait_core import Tensor
from plait_nn import functional as F
from plait_nn._layer import Layer
from plait_nn._module import Module
from plait_nn.functional._checks import Sizes


class Flatten(Layer, fields="start_dim end_dim"):
    """Make one dimension of those from ``start_dim`` to ``end_dim``.

    Args:
        start_dim: The first dimension to join.
        end_dim: The last dimension to join.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.Flatten()(pc.zeros(32, 1, 5, 5)).shape)
        (32, 25)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(Layer, fields="dim unflattened_size"):
    """Make dimensions of sizes ``unflattened_size`` of one; one of them may be -1.

    Args:
        dim: The dimension to divide.
        unflattened_size: The new sizes; one may be -1.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.Unflatten(1, (2, -1))(pc.zeros(3, 10)).shape)
        (3, 2, 5)
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        if not isinstance(dim, int):
            raise TypeError(
                f"Unflatten: `dim` must be an int (dimensions have no names); "
                f"got {type(dim).__name__}"
            )
        if isinstance(unflattened_size, int) or not all(
            isinstance(size, int) for size in unflattened_size
        ):
            raise TypeError(
                f"Unflatten: `unflattened_size` must be a sequence of ints; got {unflattened_size}"
            )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        shape = tuple(input.shape)
        if not -len(shape) <= self.dim < len(shape):
            raise OutOfRangeError(
                f"Unflatten: `dim` must be in [{-len(shape)}, {len(shape) - 1}] for shape {shape}; "
                f"got {self.dim}. Dimension out of range"
            )
        dim = self.dim % len(shape)
        return input.reshape((*shape[:dim], *self.unflattened_size, *shape[dim + 1 :]))


class PixelShuffle(Layer, fields="upscale_factor"):
    """Rearrange channels to pixels; see `plait.nn.functional.pixel_shuffle`.

    Args:
        upscale_factor: The factor of height and width.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.PixelShuffle(3)(pc.ones(1, 9, 4, 4)).shape)
        (1, 1, 12, 12)
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Layer, fields="downscale_factor"):
    """Rearrange pixels to channels; see `plait.nn.functional.pixel_unshuffle`.

    Args:
        downscale_factor: The divisor of height and width.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.PixelUnshuffle(3)(pc.ones(1, 1, 12, 12)).shape)
        (1, 9, 4, 4)
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)


class ChannelShuffle(Layer, fields="groups"):
    """Mix the channels of groups; see `plait.nn.functional.channel_shuffle`.

    Args:
        groups: Number of groups of channels.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.ChannelShuffle(2)(pc.arange(4.0).reshape(1, 4, 1)).flatten()
        tensor([0., 2., 1., 3.])
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)


class Unfold(Layer, fields="kernel_size dilation padding stride"):
    """Make every window a column; see `plait.nn.functional.unfold`.

    Args:
        kernel_size: Size of the windows, one int or one for each dimension.
        dilation: Distance of a window's elements.
        padding: Zeros on every side.
        stride: Distance of the windows.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.Unfold((2, 3))(pc.ones(2, 5, 3, 4)).shape)
        (2, 30, 4)
    """

    def __init__(
        self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(Layer, fields="output_size kernel_size dilation padding stride"):
    """Add columns up at the positions of their windows; see `plait.nn.functional.fold`.

    Args:
        output_size: Height and width of the result.
        kernel_size: Size of the windows, one int or one for each dimension.
        dilation: Distance of a window's elements.
        padding: Zeros on every side.
        stride: Distance of the windows.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.Fold((4, 5), (2, 2))(pc.ones(1, 3 * 2 * 2, 12)).shape)
        (1, 3, 4, 5)
    """

    def __init__(
        self,
        output_size: Sizes,
        kernel_size: Sizes,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        stride: Sizes = 1,
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )


class Upsample(Module):
    """Resize sequences, images or volumes; see `plait.nn.functional.interpolate`.

    Args:
        size: Size of the result, one int or one for each spatial dimension.
        scale_factor: Size of the result over that of the input, instead of `size`.
        mode: "nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area" or
            "lanczos".
        align_corners: Whether the corner elements of input and result lie on each other; for the
            linear and cubic modes.
        recompute_scale_factor: Whether the scale is computed again from the rounded size.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.Upsample(scale_factor=2)(pc.tensor([[[1.0, 2.0]]])).flatten()
        tensor([1., 1., 2., 2.])
    """

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        factor: Any = scale_factor
        if isinstance(factor, (tuple, list)):
            factor = tuple(float(f) for f in factor)
        self.scale_factor = float(factor) if isinstance(factor, (int, float)) else factor
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        if self.scale_factor is not None:
            return f"scale_factor={self.scale_factor}, mode={self.mode!r}"
        return f"size={self.size}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Resize images by their nearest elements; an old name of `Upsample`.

    Args:
        size: Size of the result, one int or one for each spatial dimension.
        scale_factor: Size of the result over that of the input, instead of `size`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.UpsamplingNearest2d(scale_factor=2)(pc.ones(1, 1, 2, 3)).shape)
        (1, 1, 4, 6)
    """

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
    ) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """Resize images bilinearly with aligned corners; an old name of `Upsample`.

    Args:
        size: Size of the result, one int or one for each spatial dimension.
        scale_factor: Size of the result over that of the input, instead of `size`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.UpsamplingBilinear2d((1, 3))(pc.tensor([[[[0.0, 4.0]]]])).flatten()
        tensor([0., 2., 4.])
    """

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
    ) -> None:
        super().__init__(size, scale_factor, "bilinear", True)
