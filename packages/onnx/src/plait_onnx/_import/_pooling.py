"""Poolings."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import plait_core as pc
import plait_nn.functional as F
from plait_core import Tensor
from plait_onnx._import._convolution import Windows, bordered
from plait_onnx._import._registry import Node, operator

Function = Callable[..., Any]


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
    node.check_count(math.prod(pooling.kernel))
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
        node.check_size(full, x.itemsize)
        wanted = full if shape is None else [int(n) for n in shape]
        node.check_size(wanted, x.itemsize)
        # indices are those of the input that was pooled, which has the inferred sizes
        flat = pc.zeros(math.prod(full), dtype=x.dtype, device=x.device)
        flat = flat.scatter(0, index.reshape(-1), x.reshape(-1)).reshape(full)
        more = [n - m for n, m in zip(wanted[2:], sizes, strict=True)]
        return bordered(node, flat, [0] * dims, more)

    return run
