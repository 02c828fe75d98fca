"""Convolutions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import plait_core as pc
import plait_nn.functional as F
from plait_abi import operator as operator_of
from plait_core import Tensor
from plait_onnx._import._registry import Node, operator

Function = Callable[..., Any]
_WIDE = 256  # a border from which on the size of the result is looked at
_AUTO = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
_conv2d_activation: Function = operator_of("conv2d_activation")
_CONV = (F.conv1d, F.conv2d, F.conv3d)
_TRANSPOSED = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)


class Windows:
    """Strides, dilations and pads of a node, which has them for all dimensions or not at all."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._strides = node.integers("strides", None)
        self._dilations = node.integers("dilations", None)
        self._pads = node.integers("pads", None)
        self.auto = node.text("auto_pad", "NOTSET", _AUTO)
        for name, values in (("strides", self._strides), ("dilations", self._dilations)):
            if values is not None and any(n < 1 for n in values):
                raise node.error(f"{name} must be positive, got {values}")

    def _of(self, name: str, values: list[int] | None, count: int, default: int) -> list[int]:
        if values is None:
            return [default] * count
        if len(values) != count:
            raise ValueError(f"{name} has {len(values)} numbers, {count} are needed")
        return values

    def strides(self, dims: int) -> list[int]:
        return self._of("strides", self._strides, dims, 1)

    def dilations(self, dims: int) -> list[int]:
        return self._of("dilations", self._dilations, dims, 1)

    def pads(self, sizes: Sequence[Any], kernel: Sequence[int]) -> tuple[list[Any], list[Any]]:
        """Return the borders before and after each dimension."""
        dims = len(kernel)
        if self.auto == "VALID":
            return [0] * dims, [0] * dims
        if self.auto == "NOTSET":
            pads = self._of("pads", self._pads, 2 * dims, 0)
            return pads[:dims], pads[dims:]
        low, high = [], []
        for n, k, s, d in zip(sizes, kernel, self.strides(dims), self.dilations(dims), strict=True):
            total = max(0, (-(-n // s) - 1) * s + (k - 1) * d + 1 - n)
            small, large = total // 2, total - total // 2
            low.append(small if self.auto == "SAME_UPPER" else large)
            high.append(large if self.auto == "SAME_UPPER" else small)
        return low, high


def bordered(
    node: Node, x: Tensor, low: Sequence[Any], high: Sequence[Any], value: float = 0.0
) -> Tensor:
    """Return a tensor with borders around its last dimensions."""
    if any(low) or any(high):
        dims = len(low)
        lead = x.ndim - dims
        node.check_size(
            [
                *x.shape[:lead],
                *(n + a + b for n, a, b in zip(x.shape[lead:], low, high, strict=True)),
            ],
            x.itemsize,
        )
        return F.pad(
            x, [n for pair in list(zip(low, high, strict=True))[::-1] for n in pair], value=value
        )
    return x


def convolve(node: Node) -> Function:
    windows, groups = Windows(node), node.integer("group", 1)
    kernel_shape = node.integers("kernel_shape", None)

    def run(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
        kernel = list(weight.shape[2:])
        dims = len(kernel)
        if kernel_shape is not None and kernel_shape != kernel:
            raise ValueError(f"kernel_shape {kernel_shape} for weights {list(weight.shape)}")
        if not 1 <= dims <= 3:
            raise ValueError(f"{dims} dimensions; 1 to 3 are supported")
        if x.ndim != dims + 2:
            raise ValueError(f"x must have {dims + 2} dimensions")
        low, high = windows.pads(x.shape[2:], kernel)
        if low != high or min(low) < 0:
            x, low = bordered(node, x, low, high), [0] * dims
        steps, spread = windows.strides(dims), windows.dilations(dims)
        if max(low, default=0) > _WIDE:
            sizes = [n + 2 * p for n, p in zip(x.shape[2:], low, strict=True)]
            node.check_size([x.shape[0], weight.shape[0], *sizes], x.itemsize)
        if node.activation is None:
            return _CONV[dims - 1](x, weight, bias, steps, low, spread, groups)
        if dims == 2 and not x.is_complex() and x.is_floating_point():
            return _conv2d_activation(x, weight, bias, steps, low, spread, groups, *node.activation)
        y = _CONV[dims - 1](x, weight, bias, steps, low, spread, groups)
        return _activated(y, *node.activation)

    return run


def _activated(y: Tensor, name: str, low: float, high: float, slope: float) -> Tensor:
    functions: dict[str, Function] = {
        "relu": F.relu,
        "hardtanh": lambda x: F.hardtanh(x, low, high),
        "leaky_relu": lambda x: F.leaky_relu(x, slope),
        "silu": F.silu,
        "hardswish": F.hardswish,
    }
    result: Tensor = functions[name](y)
    return result


operator("Conv")(convolve)


@operator("ConvTranspose")
def _conv_transpose(node: Node) -> Function:
    windows, groups = Windows(node), node.integer("group", 1)
    extra, output_shape = node.integers("output_padding", None), node.integers("output_shape", None)
    own_pads = node.integers("pads", None)

    def run(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        kernel = list(weight.shape[2:])
        dims = len(kernel)
        if not 1 <= dims <= 3:
            raise ValueError(f"{dims} dimensions; 1 to 3 are supported")
        steps, spread = windows.strides(dims), windows.dilations(dims)
        more = [0] * dims if extra is None else extra
        if len(more) != dims:
            raise ValueError(f"output_padding has {len(more)} numbers, {dims} are needed")
        full = [
            (n - 1) * s + (k - 1) * d + 1 + e
            for n, s, k, d, e in zip(x.shape[2:], steps, kernel, spread, more, strict=True)
        ]
        wanted = output_shape
        if wanted is None and windows.auto in ("SAME_UPPER", "SAME_LOWER"):
            wanted = [n * s for n, s in zip(x.shape[2:], steps, strict=True)]
        if wanted is None:
            pads = own_pads or [0] * 2 * dims
            if windows.auto == "VALID":
                pads = [0] * 2 * dims
            low, high = pads[:dims], pads[dims:]
        else:
            totals = [max(0, f - n) for f, n in zip(full, wanted[-dims:], strict=True)]
            upper = windows.auto == "SAME_UPPER"
            low = [t // 2 if upper else t - t // 2 for t in totals]
            if windows.auto == "NOTSET":
                low = [t // 2 for t in totals]
            high = [t - a for t, a in zip(totals, low, strict=True)]
            more = [e + max(0, n - f) for e, f, n in zip(more, full, wanted[-dims:], strict=True)]
            full = [max(f, n) for f, n in zip(full, wanted[-dims:], strict=True)]
        node.check_size([x.shape[0], weight.shape[1] * groups, *full], x.itemsize)
        function = _TRANSPOSED[dims - 1]
        if low == high and all(e < max(s, d) for e, s, d in zip(more, steps, spread, strict=True)):
            return function(x, weight, bias, steps, low, more, groups, spread)
        whole = function(x, weight, None, steps, 0, 0, groups, spread)
        whole = bordered(node, whole, [0] * dims, more)
        for i, (a, b) in enumerate(zip(low, high, strict=True)):
            whole = whole.narrow(i + 2, a, whole.shape[i + 2] - a - b)
        return whole if bias is None else whole + bias.reshape(-1, *[1] * dims)

    return run


@operator("Col2Im", host=(1, 2))
def _col_to_im(node: Node) -> Function:
    windows = Windows(node)

    def run(x: Tensor, image: Any, block: Any) -> Tensor:
        sizes, kernel = [int(n) for n in image], [int(n) for n in block]
        dims = len(kernel)
        low, high = windows.pads(sizes, kernel)
        steps, spread = windows.strides(dims), windows.dilations(dims)
        wide = [n + a + b for n, a, b in zip(sizes, low, high, strict=True)]
        channels = x.shape[1] // max(math.prod(kernel), 1)
        if channels < 1 or min(kernel, default=0) < 1 or len(sizes) != dims:
            raise ValueError(f"blocks of {kernel} in an image of {sizes}")
        node.check_size([x.shape[0], channels, *wide], x.itemsize)
        counts = [
            (n - d * (k - 1) - 1) // s + 1
            for n, d, k, s in zip(wide, spread, kernel, steps, strict=True)
        ]
        columns = x.reshape([x.shape[0], channels, *kernel, *counts])
        result = pc.zeros(x.shape[0], channels, *wide, dtype=x.dtype, device=x.device)
        for place in itertools.product(*(range(k) for k in kernel)):
            part_key: Any = (slice(None), slice(None), *place)
            part = columns[part_key]
            key: list[Any] = [slice(None), slice(None)]
            for i, p in enumerate(place):
                start = p * spread[i]
                key.append(slice(start, start + (counts[i] - 1) * steps[i] + 1, steps[i]))
            whole = pc.zeros_like(result)
            whole[tuple(key)] = part
            result = result + whole
        for i, (a, n) in enumerate(zip(low, sizes, strict=True)):
            result = result.narrow(i + 2, a, n)
        return result

    return run


@operator("DeformConv")
def _deform_conv(node: Node) -> Function:
    windows = Windows(node)
    groups, offset_groups = node.integer("group", 1), node.integer("offset_group", 1)

    def run(
        x: Tensor, weight: Tensor, offset: Tensor, bias: Any = None, mask: Any = None
    ) -> Tensor:
        if x.ndim != 4:
            raise ValueError("2 dimensions are supported")
        n, c, h, w = x.shape
        kernel = list(weight.shape[2:])
        dtype, x = x.dtype, x.to(pc.float64)  # coordinates of the grid are relative to the size
        offset = offset.to(pc.float64)
        (kh, kw), (sh, sw), (dh, dw) = kernel, windows.strides(2), windows.dilations(2)
        low, _ = windows.pads((h, w), kernel)
        oh, ow = offset.shape[2:]
        moved = offset.reshape(n, offset_groups, kh, kw, 2, oh, ow)
        rows = (pc.arange(oh) * sh - low[0])[:, None] + (pc.arange(kh) * dh)[:, None, None, None]
        columns = (pc.arange(ow) * sw - low[1]) + (pc.arange(kw) * dw)[:, None, None]
        y = (moved[:, :, :, :, 0] + rows.to(x.dtype)).reshape(n * offset_groups, -1, ow)
        z = (moved[:, :, :, :, 1] + columns.to(x.dtype)).reshape(n * offset_groups, -1, ow)
        grid = pc.stack([(2 * z + 1) / w - 1, (2 * y + 1) / h - 1], -1)
        parts = x.reshape(n * offset_groups, c // offset_groups, h, w)
        values = F.grid_sample(parts, grid, padding_mode="zeros", align_corners=False)
        values = values.reshape(n, offset_groups, c // offset_groups, kh * kw, oh, ow).to(dtype)
        if mask is not None:
            values = values * mask.reshape(n, offset_groups, 1, kh * kw, oh, ow)
        columns_ = values.reshape(n, groups, c // groups * kh * kw, oh * ow)
        filters = weight.reshape(groups, weight.shape[0] // groups, -1)
        result = pc.matmul(filters, columns_).reshape(n, weight.shape[0], oh, ow)
        return result if bias is None else result + bias.reshape(-1, 1, 1)

    return run


@operator("CausalConvWithState")
def _causal_conv(node: Node) -> Function:
    activation = node.text("activation", "none", ("none", "silu", "swish"))

    def run(x: Tensor, weight: Tensor, bias: Any = None, state: Any = None) -> Any:
        length = weight.shape[-1] - 1
        past = state
        if past is None:
            past = pc.zeros(*x.shape[:2], length, dtype=x.dtype, device=x.device)
        whole = pc.cat([past, x], -1)
        y = F.conv1d(whole, weight, bias, groups=x.shape[1])
        if activation != "none":
            y = F.silu(y)
        return y, whole.narrow(-1, whole.shape[-1] - length, length)

    return run
