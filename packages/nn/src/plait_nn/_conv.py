"""`Conv1d` to `Conv3d`, `ConvTranspose1d` to `ConvTranspose3d`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import plait_core as pc
from plait_core import Tensor
from plait_nn import functional as F, init
from plait_nn._layer import Layer
from plait_nn._linear import add_bias, check_sizes
from plait_nn._parameter import Parameter
from plait_nn.functional._checks import Sizes, sizes_of

_PAD_MODES = ("reflect", "replicate", "circular")


class _Conv(Layer):
    """Parameters and arguments of all convolutions."""

    weight: Parameter
    bias: Parameter | None
    _function: ClassVar[Callable[..., Tensor]]
    _transposed = False

    def _set_up(
        self,
        in_channels: int,
        out_channels: int,
        sizes: tuple[Sizes, Sizes, Sizes | str, Sizes, Sizes],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any,
        dtype: Any,
    ) -> None:
        name, dims = type(self).__name__, self._dims
        kernel_size, stride, padding, dilation, output_padding = sizes
        _check_channels(name, in_channels, out_channels, groups)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = sizes_of(kernel_size, dims, "kernel_size", name)
        self.stride = sizes_of(stride, dims, "stride", name)
        self.padding = _padding(name, padding, self.stride)
        self.dilation = sizes_of(dilation, dims, "dilation", name)
        for argument in ("kernel_size", "stride", "dilation"):
            if min(getattr(self, argument)) < 1:
                raise ValueError(
                    f"{name}: `{argument}` must be positive; got {getattr(self, argument)}"
                )
        self.transposed = self._transposed
        self.output_padding = sizes_of(output_padding, dims, "output_padding", name)
        self.groups = groups
        self.padding_mode = padding_mode
        if padding_mode != "zeros" and padding_mode not in _PAD_MODES:
            raise ValueError(
                f"{name}: `padding_mode` must be one of zeros, {', '.join(_PAD_MODES)}; "
                f"got {padding_mode!r}"
            )
        self._reversed_padding_repeated_twice = self._sides()
        first, second = (out_channels, in_channels)
        if self._transposed:
            first, second = second, first
        shape = (first, second // groups, *self.kernel_size)
        self.weight = Parameter(pc.empty(shape, device=device, dtype=dtype))
        add_bias(self, out_channels, bias, device, dtype)
        self.reset_parameters()

    def _sides(self) -> list[int] | tuple[int, ...]:
        """Return the padding as `functional.pad` takes it: the last dimension first."""
        if isinstance(self.padding, str):
            both = [0] * 2 * self._dims
            if self.padding == "same":
                for i, (size, step) in enumerate(zip(self.kernel_size, self.dilation, strict=True)):
                    total, place = step * (size - 1), 2 * (self._dims - 1 - i)
                    both[place : place + 2] = [total // 2, total - total // 2]
            return both
        return tuple(side for side in reversed(self.padding) for _ in range(2))

    def reset_parameters(self) -> None:
        """Draw the parameters again."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in else 0.0
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        parts = [
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}",
            f"stride={self.stride}",
        ]
        if self.padding != (0,) * self._dims:
            parts.append(f"padding={self.padding}")
        if self.dilation != (1,) * self._dims:
            parts.append(f"dilation={self.dilation}")
        if self.output_padding != (0,) * self._dims:
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


def _check_channels(name: str, in_channels: int, out_channels: int, groups: int) -> None:
    check_sizes(name, in_channels=in_channels, out_channels=out_channels)
    if groups < 1:
        raise ValueError(f"{name}: `groups` must be positive; got {groups}")
    for argument, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
        if channels % groups:
            raise ValueError(
                f"{name}: `{argument}` must be divisible by `groups`; got {channels} and {groups}"
            )


def _padding(name: str, padding: Sizes | str, stride: tuple[int, ...]) -> tuple[int, ...] | str:
    if not isinstance(padding, str):
        sides = sizes_of(padding, len(stride), "padding", name)
        if min(sides) < 0:
            raise ValueError(f"{name}: `padding` must not be negative; got {sides}")
        return sides
    if padding not in ("same", "valid"):
        raise ValueError(
            f'{name}: `padding` must be an int, {_COUNTS[len(stride)]}, "same" or "valid"; '
            f"got {padding!r}"
        )
    if padding == "same" and any(s != 1 for s in stride):
        raise ValueError(f'{name}: padding="same" needs stride 1; got {stride}')
    return padding


_COUNTS = {1: "one in a tuple", 2: "two ints", 3: "three ints"}


class _ConvNd(_Conv):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        sizes = (kernel_size, stride, padding, dilation, 0)
        self._set_up(in_channels, out_channels, sizes, groups, bias, padding_mode, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Convolve with any weights; subclasses call and override it, as in PyTorch."""
        padding: Sizes | str = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = 0
        return type(self)._function(
            input, weight, bias, self.stride, padding, self.dilation, self.groups
        )


class Conv1d(_ConvNd, dims=1, function="conv1d"):
    r"""Cross-correlate sequences with learned filters; see `plait.nn.functional.conv1d`.

    Attributes and errors are those of `Conv2d` in one dimension: the input is
    (N, C, L) or (C, L), ``weight`` (out_channels, in_channels / groups, kL).

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: The filters' size, one int or one for each dimension.
        stride: Distance of the windows.
        padding: Elements on every side, as ints; ``"valid"`` is 0; ``"same"`` keeps the size and
            requires stride 1.
        dilation: Distance of the kernel's elements.
        groups: Number of independent groups of channels.
        bias: Whether there is a bias.
        padding_mode: The elements of the padding: "zeros", "reflect", "replicate", "circular".
        device: Where the parameters are; None is the default device.
        dtype: The parameters' dtype; None is the default dtype.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.Conv1d(16, 33, 3, stride=2)
        >>> layer
        Conv1d(16, 33, kernel_size=(3,), stride=(2,))
        >>> tuple(layer(pc.randn(20, 16, 50)).shape)
        (20, 33, 24)
    """


class Conv2d(_ConvNd, dims=2, function="conv2d"):
    r"""Cross-correlate images with learned filters; see `plait.nn.functional.conv2d`.

    Weight and bias start uniform in :math:`\pm 1 / \sqrt{in \cdot kH \cdot kW / groups}`.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: The filters' size, one int or one for each dimension.
        stride: Distance of the windows.
        padding: Elements on every side, as ints; ``"valid"`` is 0; ``"same"`` keeps the size and
            requires stride 1.
        dilation: Distance of the kernel's elements.
        groups: Number of independent groups of channels.
        bias: Whether there is a bias.
        padding_mode: The elements of the padding: "zeros", "reflect", "replicate", "circular".
        device, dtype: Where the parameters are, and their dtype; None is float32.

    Attributes:
        weight: Shape (out_channels, in_channels / groups, kH, kW).
        bias: Shape (out_channels), or None.

    Raises:
        ValueError: ``groups`` doesn't divide both channel counts, an unknown padding, or a size
            that is not positive.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.Conv2d(16, 33, (3, 5), stride=(2, 1), padding=(4, 2))
        >>> tuple(layer(pc.randn(2, 16, 50, 10)).shape)
        (2, 33, 28, 10)
        >>> nn.Conv2d(1, 8, 3, padding="same")
        Conv2d(1, 8, kernel_size=(3, 3), stride=(1, 1), padding=same)
    """


class Conv3d(_ConvNd, dims=3, function="conv3d"):
    r"""Cross-correlate volumes with learned filters; see `plait.nn.functional.conv3d`.

    Attributes and errors are those of `Conv2d` in three dimensions: the input is
    (N, C, D, H, W) or (C, D, H, W), ``weight`` (out_channels, in_channels / groups, kD, kH, kW).

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: The filters' size, one int or one for each dimension.
        stride: Distance of the windows.
        padding: Elements on every side, as ints; ``"valid"`` is 0; ``"same"`` keeps the size and
            requires stride 1.
        dilation: Distance of the kernel's elements.
        groups: Number of independent groups of channels.
        bias: Whether there is a bias.
        padding_mode: The elements of the padding: "zeros", "reflect", "replicate", "circular".
        device: Where the parameters are; None is the default device.
        dtype: The parameters' dtype; None is the default dtype.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.Conv3d(2, 3, 3, padding="same")(pc.randn(1, 2, 4, 5, 6)).shape)
        (1, 3, 4, 5, 6)
    """


class _ConvTransposeNd(_Conv):
    _transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if padding_mode != "zeros":
            raise ValueError(
                f"{type(self).__name__}: `padding_mode` must be zeros; got {padding_mode!r}"
            )
        sizes = (kernel_size, stride, padding, dilation, output_padding)
        self._set_up(in_channels, out_channels, sizes, groups, bias, padding_mode, device, dtype)

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Return the result; ``output_size`` chooses one of the sizes that are possible with a
        stride.
        """
        extra = self.output_padding if output_size is None else self._extra(input, output_size)
        return type(self)._function(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            extra,
            self.groups,
            self.dilation,
        )

    def _extra(self, input: Tensor, output_size: Sequence[int]) -> tuple[int, ...]:
        name, dims = type(self).__name__, self._dims
        targets = tuple(output_size)[-dims:]
        if len(output_size) not in (dims, input.ndim):
            raise ValueError(
                f"{name}: `output_size` must have {dims} or {input.ndim} elements; "
                f"got {tuple(output_size)}"
            )
        extra = []
        for i, size in enumerate(input.shape[-dims:]):
            side = 0 if isinstance(self.padding, str) else self.padding[i]
            least = (size - 1) * self.stride[i] - 2 * side
            least += self.dilation[i] * (self.kernel_size[i] - 1) + 1
            if not least <= targets[i] < least + self.stride[i]:
                raise ValueError(
                    f"{name}: `output_size` must be in [{least}, {least + self.stride[i] - 1}] in "
                    f"dimension {i} for input {tuple(input.shape)}; got {targets}"
                )
            extra.append(targets[i] - least)
        return tuple(extra)


class ConvTranspose1d(_ConvTransposeNd, dims=1, function="conv_transpose1d"):
    """Transposed convolution of sequences; see `ConvTranspose2d`.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: The filters' size, one int or one for each dimension.
        stride: Distance of the input's elements in the result.
        padding: Number of elements that are cut off on every side.
        output_padding: Number of elements that are not cut off at the end.
        groups: Number of independent groups of channels.
        bias: Whether there is a bias.
        dilation: Distance of the kernel's elements.
        padding_mode: "zeros".
        device: Where the parameters are; None is the default device.
        dtype: The parameters' dtype; None is the default dtype.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.ConvTranspose1d(16, 33, 3, stride=2)(pc.randn(20, 16, 50)).shape)
        (20, 33, 101)
    """


class ConvTranspose2d(_ConvTransposeNd, dims=2, function="conv_transpose2d"):
    r"""Transposed convolution of images; see `plait.nn.functional.conv_transpose2d`.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: The filters' size, one int or one for each dimension.
        stride: Distance of the input's elements in the result.
        padding: Number of elements that are cut off on every side.
        output_padding: Number of elements that are not cut off at the end.
        groups: Number of independent groups of channels.
        bias: Whether there is a bias.
        dilation: Distance of the kernel's elements.
        padding_mode: "zeros".
        device, dtype: Where the parameters are, and their dtype; None is float32.

    Attributes:
        weight: Shape (in_channels, out_channels / groups, kH, kW).
        bias: Shape (out_channels), or None.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.ConvTranspose2d(16, 33, 3, stride=2, padding=1)
        >>> x = pc.randn(1, 16, 6, 6)
        >>> tuple(layer(x).shape), tuple(layer(x, output_size=(12, 12)).shape)
        ((1, 33, 11, 11), (1, 33, 12, 12))
    """


class ConvTranspose3d(_ConvTransposeNd, dims=3, function="conv_transpose3d"):
    """Transposed convolution of volumes; see `ConvTranspose2d`.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: The filters' size, one int or one for each dimension.
        stride: Distance of the input's elements in the result.
        padding: Number of elements that are cut off on every side.
        output_padding: Number of elements that are not cut off at the end.
        groups: Number of independent groups of channels.
        bias: Whether there is a bias.
        dilation: Distance of the kernel's elements.
        padding_mode: "zeros".
        device: Where the parameters are; None is the default device.
        dtype: The parameters' dtype; None is the default dtype.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.ConvTranspose3d(2, 3, 2, stride=2)(pc.randn(1, 2, 2, 3, 4)).shape)
        (1, 3, 4, 6, 8)
    """
