"""`Conv2d`."""

from __future__ import annotations

import math
from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_nn import functional as F
from plait_nn import init
from plait_nn._linear import check_sizes
from plait_nn._module import Module
from plait_nn._parameter import Parameter
from plait_nn.functional._conv import Pair, pair

__all__ = ["Conv2d"]

_PAD_MODES = {"reflect": "reflect", "replicate": "replicate", "circular": "circular"}


class Conv2d(Module):
    r"""Cross-correlate images with learned filters; see `plait_nn.functional.conv2d`.

    Weight and bias start uniform in :math:`\pm 1 / \sqrt{in \cdot kH \cdot kW / groups}`.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: The filters' size, one int or one for each dimension.
        stride: Distance of the windows.
        padding: Elements on every side, as ints; ``"valid"`` is 0; ``"same"`` keeps the size and
            asks for stride 1.
        dilation: Distance of the kernel's elements.
        groups: Blocks of channels that don't see each other.
        bias: Whether there is a bias.
        padding_mode: What stands on the sides: "zeros", "reflect", "replicate", "circular".
        device: Where the parameters live.
        dtype: Their dtype; None is float32.

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

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Pair,
        stride: Pair = 1,
        padding: Pair | str = 0,
        dilation: Pair = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        _check_channels(in_channels, out_channels, groups)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = pair(kernel_size, "kernel_size", "Conv2d")
        self.stride = pair(stride, "stride", "Conv2d")
        self.dilation = pair(dilation, "dilation", "Conv2d")
        _check_positive(kernel_size=self.kernel_size, stride=self.stride, dilation=self.dilation)
        self.padding = _padding(padding, self.stride)
        self.groups = groups
        self.padding_mode = padding_mode
        if padding_mode != "zeros" and padding_mode not in _PAD_MODES:
            raise ValueError(
                f"Conv2d: `padding_mode` must be one of zeros, {', '.join(_PAD_MODES)}; "
                f"got {padding_mode!r}"
            )
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = Parameter(pc.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(pc.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in else 0.0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        padding: Pair | str = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._borders(), mode=self.padding_mode)
            padding = 0
        return F.conv2d(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )

    def _borders(self) -> tuple[int, ...]:
        """The padding as `functional.pad` wants it: left, right, top, bottom."""
        if self.padding == "valid":
            return 0, 0, 0, 0
        borders: list[int] = []
        for i in (1, 0):
            if self.padding == "same":
                total = self.dilation[i] * (self.kernel_size[i] - 1)
                borders += (total // 2, total - total // 2)
            else:
                borders += (int(self.padding[i]), int(self.padding[i]))
        return tuple(borders)

    def extra_repr(self) -> str:
        parts = [
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}",
            f"stride={self.stride}",
        ]
        if self.padding != (0, 0):
            parts.append(f"padding={self.padding}")
        if self.dilation != (1, 1):
            parts.append(f"dilation={self.dilation}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


def _check_channels(in_channels: int, out_channels: int, groups: int) -> None:
    check_sizes("Conv2d", in_channels=in_channels, out_channels=out_channels)
    if groups < 1:
        raise ValueError(f"Conv2d: `groups` must be positive; got {groups}")
    for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
        if channels % groups:
            raise ValueError(
                f"Conv2d: `{name}` must be divisible by `groups`; got {channels} and {groups}"
            )


def _check_positive(**sizes: tuple[int, int]) -> None:
    for name, size in sizes.items():
        if min(size) < 1:
            raise ValueError(f"Conv2d: `{name}` must be positive; got {size}")


def _padding(padding: Pair | str, stride: tuple[int, int]) -> tuple[int, int] | str:
    if not isinstance(padding, str):
        both = pair(padding, "padding", "Conv2d")
        if min(both) < 0:
            raise ValueError(f"Conv2d: `padding` must not be negative; got {both}")
        return both
    if padding not in ("same", "valid"):
        raise ValueError(
            f'Conv2d: `padding` must be an int, two ints, "same" or "valid"; got {padding!r}'
        )
    if padding == "same" and stride != (1, 1):
        raise ValueError(f'Conv2d: padding="same" needs stride 1; got {stride}')
    return padding
