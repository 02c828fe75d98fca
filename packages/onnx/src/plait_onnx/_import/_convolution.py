"""Convolutions and poolings."""

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

    def run(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
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


# ---- poolings ------------------------------------------------------------------------------------


def _count(n: Any, k: int, s: int, d: int, low: Any, high: Any, ceil: bool) -> Any:
    """Return the number of windows; one that begins after the input does not count."""
    span = n + low + high - d * (k - 1) - 1
    count = (-(-span // s) if ceil else span // s) + 1
    if ceil and (count - 1) * s >= n + low:
        count -= 1
    return count


class _Pooling:
    """Windows of a pooling, and the borders with which they are whole."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.windows = Windows(node)
        self.kernel = node.integers("kernel_shape")
        if any(k < 1 for k in self.kernel):
            raise node.error(f"kernel_shape must be positive, got {self.kernel}")
        self.dims = len(self.kernel)
        self.ceil = node.flag("ceil_mode")

    def borders(self, x: Tensor) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
        """Return borders as given, what the last windows need besides, and numbers of windows."""
        if x.ndim != self.dims + 2:
            raise ValueError(f"x must have {self.dims + 2} dimensions, got {x.ndim}")
        sizes = x.shape[2:]
        low, high = self.windows.pads(sizes, self.kernel)
        steps, spread = self.windows.strides(self.dims), self.windows.dilations(self.dims)
        rest, counts = [], []
        for i, n in enumerate(sizes):
            k, s, d = self.kernel[i], steps[i], spread[i]
            count = _count(n, k, s, d, low[i], high[i], self.ceil)
            if count < 1:
                raise ValueError(f"a window of {k} is larger than the input of {n}")
            rest.append((count - 1) * s + d * (k - 1) + 1 - n - low[i] - high[i])
            counts.append(count)
        return low, high, rest, counts


@operator("MaxPool")
def _max_pool(node: Node) -> Function:
    pooling = _Pooling(node)
    dims, with_indices = pooling.dims, len(node.outputs) > 1 and bool(node.outputs[1])
    order = node.integer("storage_order", 0)
    functions = (F.max_pool1d, F.max_pool2d, F.max_pool3d)

    def run(x: Tensor) -> Any:
        steps = pooling.windows.strides(dims)
        spread = pooling.windows.dilations(dims)
        low, high, rest, _ = pooling.borders(x)
        if not 1 <= dims <= 3:
            raise ValueError(f"{dims} dimensions; 1 to 3 are supported")
        plain = low == high and all(
            2 * p <= k and r <= 0 for p, k, r in zip(low, pooling.kernel, rest, strict=True)
        )
        if plain and not with_indices:
            return functions[dims - 1](x, pooling.kernel, steps, low, spread)
        least = -math.inf if x.is_floating_point() else pc.iinfo(x.dtype).min
        after = [b + max(r, 0) for b, r in zip(high, rest, strict=True)]
        whole = bordered(node, x, low, after, least)
        if not with_indices:
            return functions[dims - 1](whole, pooling.kernel, steps, 0, spread)
        values, index = functions[dims - 1](
            whole, pooling.kernel, steps, 0, spread, return_indices=True
        )
        return values, _original_index(x, whole, low, index, order)

    return run


def _original_index(x: Tensor, whole: Tensor, low: list[Any], index: Tensor, order: int) -> Tensor:
    """Return indices in the flat input for those in images with borders."""
    sizes, wide = list(x.shape[2:]), list(whole.shape[2:])
    places: list[Tensor] = []
    for n in reversed(wide):
        places.insert(0, pc.remainder(index, n))
        index = pc.div(index, n, rounding_mode="trunc")
    places = [p - a for p, a in zip(places, low, strict=True)]
    dims = range(len(sizes))
    flat = pc.zeros_like(places[0])
    for i in reversed(dims) if order else dims:
        flat = flat * sizes[i] + places[i]
    planes = x.shape[0] * x.shape[1]
    first = pc.arange(planes, device=x.device) * math.prod(sizes)
    return flat + first.reshape(x.shape[0], x.shape[1], *[1] * len(sizes))


@operator("AveragePool")
def _average_pool(node: Node) -> Function:
    pooling = _Pooling(node)
    include = node.flag("count_include_pad")
    functions = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)

    def run(x: Tensor) -> Tensor:
        dims = pooling.dims
        steps = pooling.windows.strides(dims)
        spread = pooling.windows.dilations(dims)
        low, high, rest, _ = pooling.borders(x)
        simple = not any(r > 0 for r in rest) and low == high and all(d == 1 for d in spread)
        if simple and all(2 * p <= k for p, k in zip(low, pooling.kernel, strict=True)):
            return functions[dims - 1](
                x, pooling.kernel, steps, low, count_include_pad=include or not any(low)
            )
        if all(d == 1 for d in spread) and dims <= 3:
            after = [max(r, 0) for r in rest]
            both = [b + a for b, a in zip(high, after, strict=True)]
            sums = functions[dims - 1](bordered(node, x, low, both), pooling.kernel, steps)
            ones = pc.ones((1, 1, *x.shape[2:]), dtype=x.dtype, device=x.device)
            if include:
                ones = bordered(node, ones, low, high, 1.0)
                ones = bordered(node, ones, [0] * dims, after)
            else:
                ones = bordered(node, ones, low, both)
            return sums / functions[dims - 1](ones, pooling.kernel, steps)
        return _dilated_mean(node, x, pooling, low, high, rest, include)

    return run


def _patches(
    node: Node, x: Tensor, pooling: _Pooling, low: Any, high: Any, rest: Any, value: float = 0.0
) -> list[Tensor]:
    """Return the elements at each place of all windows."""
    dims = pooling.dims
    steps, spread = pooling.windows.strides(dims), pooling.windows.dilations(dims)
    after = [b + max(r, 0) for b, r in zip(high, rest, strict=True)]
    whole = bordered(node, x, low, after, value)
    counts = [
        (whole.shape[i + 2] - spread[i] * (pooling.kernel[i] - 1) - 1) // steps[i] + 1
        for i in range(dims)
    ]
    parts = []
    for place in itertools.product(*(range(k) for k in pooling.kernel)):
        index: list[Any] = [slice(None), slice(None)]
        for i, p in enumerate(place):
            start = p * spread[i]
            index.append(slice(start, start + (counts[i] - 1) * steps[i] + 1, steps[i]))
        parts.append(whole[tuple(index)])
    return parts


def _dilated_mean(
    node: Node, x: Tensor, pooling: _Pooling, low: Any, high: Any, rest: Any, include: bool
) -> Tensor:
    total = pc.stack(_patches(node, x, pooling, low, high, rest)).sum(0)
    ones = pc.ones((1, 1, *x.shape[2:]), dtype=x.dtype, device=x.device)
    zero = [0] * pooling.dims
    if include:
        ones = bordered(node, ones, low, high, 1.0)
        low, high = zero, zero
    return total / pc.stack(_patches(node, ones, pooling, low, high, rest)).sum(0)


@operator("LpPool")
def _lp_pool(node: Node) -> Function:
    pooling = _Pooling(node)
    p = node.integer("p", 2) if node.version > 1 else node.number("p", 2.0)

    def run(x: Tensor) -> Tensor:
        low, high, rest, _ = pooling.borders(x)
        parts = _patches(node, x, pooling, low, high, rest)
        return pc.pow(pc.stack([pc.pow(pc.abs(part), p) for part in parts]).sum(0), 1.0 / p)

    return run


def _spatial(x: Tensor) -> list[int]:
    return list(range(2, x.ndim))


@operator("GlobalAveragePool")
def _global_average(_: Node) -> Function:
    return lambda x: pc.mean(x, _spatial(x), keepdim=True)


@operator("GlobalMaxPool")
def _global_max(_: Node) -> Function:
    return lambda x: pc.amax(x, _spatial(x), True)


@operator("GlobalLpPool")
def _global_lp(node: Node) -> Function:
    p = node.integer("p", 2) if node.version > 1 else node.number("p", 2.0)
    return lambda x: pc.pow(pc.sum(pc.pow(pc.abs(x), p), _spatial(x), keepdim=True), 1.0 / p)


@operator("MaxUnpool", host=(2,))
def _max_unpool(node: Node) -> Function:
    kernel = node.integers("kernel_shape")
    windows = Windows(node)

    def run(x: Tensor, index: Tensor, shape: Any = None) -> Tensor:
        dims = len(kernel)
        low, high = windows.pads(x.shape[2:], kernel)
        sizes = [
            (n - 1) * s + k - a - b
            for n, s, k, a, b in zip(
                x.shape[2:], windows.strides(dims), kernel, low, high, strict=True
            )
        ]
        full = [*x.shape[:2], *sizes]
        wanted = full if shape is None else [int(n) for n in shape]
        node.check_size(wanted, x.itemsize)
        # indices are those of the input that was pooled, which has the inferred sizes
        flat = pc.zeros(math.prod(full), dtype=x.dtype, device=x.device)
        flat = flat.scatter(0, index.reshape(-1), x.reshape(-1)).reshape(full)
        more = [n - m for n, m in zip(wanted[2:], sizes, strict=True)]
        return bordered(node, flat, [0] * dims, more)

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
        channels = x.shape[1] // math.prod(kernel)
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
