"""Operators that rearrange, repeat, join or cut tensors, and those that make them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import plait_core as pc
import plait_nn.functional as F
from plait_abi import operator as operator_of
from plait_core import Tensor
from plait_graph._capture import current_capture
from plait_onnx._import._program import as_tensor, host_value, sizes_array
from plait_onnx._import._registry import Node, operator
from plait_onnx._import._sizes import as_ints, resolved_shape

Function = Callable[..., Any]
_repeat: Function = operator_of("repeat_interleave.tensor")


@operator("Shape")
def _shape(node: Node) -> Function:
    start, end = node.integer("start", None), node.integer("end", None)

    def shape(x: Any) -> Any:
        return sizes_array(list(x.shape)[start:end])

    return shape


@operator("Size")
def _size(_: Node) -> Function:
    def size(x: Any) -> Any:
        return sizes_array([math.prod(x.shape)]).reshape(())

    return size


@operator("Reshape")
def _reshape_1(node: Node) -> Function:
    shape = node.integers("shape")
    return lambda x: x.reshape(resolved_shape(shape, x.shape, False))


@operator("Reshape", 5, host=(1,))
def _reshape(node: Node) -> Function:
    zero = node.flag("allowzero")
    return lambda x, shape: x.reshape(resolved_shape(as_ints(shape), x.shape, zero))


@operator("Flatten")
def _flatten(node: Node) -> Function:
    axis = node.integer("axis", 1)

    def flatten(x: Tensor) -> Tensor:
        at = axis + x.ndim if axis < 0 else axis
        shape = x.shape
        return x.reshape(math.prod(shape[:at]), math.prod(shape[at:]))

    return flatten


@operator("Transpose")
def _transpose(node: Node) -> Function:
    order = node.integers("perm", None)
    return lambda x: x.permute(order if order is not None else list(range(x.ndim))[::-1])


def _squeezed(x: Tensor, axes: list[int] | None) -> Tensor:
    if axes is None:
        axes = [i for i, n in enumerate(x.shape) if n == 1]
    for axis in axes:
        if x.shape[axis] != 1:
            raise ValueError(f"dimension {axis} of shape {list(x.shape)} is not 1")
    return pc.squeeze(x, axes) if axes else x


def _unsqueezed(x: Tensor, axes: list[int]) -> Tensor:
    rank = x.ndim + len(axes)
    places = sorted(axis + rank if axis < 0 else axis for axis in axes)
    if len(set(places)) != len(places):
        raise ValueError(f"axes {axes} name a dimension twice")
    for axis in places:
        x = pc.unsqueeze(x, axis)
    return x


@operator("Squeeze")
def _squeeze_1(node: Node) -> Function:
    axes = node.integers("axes", None)
    return lambda x: _squeezed(x, axes)


@operator("Squeeze", 13, host=(1,))
def _squeeze(_: Node) -> Function:
    return lambda x, axes=None: _squeezed(x, None if axes is None else as_ints(axes))


@operator("Unsqueeze")
def _unsqueeze_1(node: Node) -> Function:
    axes = node.integers("axes")
    return lambda x: _unsqueezed(x, axes)


@operator("Unsqueeze", 13, host=(1,))
def _unsqueeze(_: Node) -> Function:
    return lambda x, axes: _unsqueezed(x, as_ints(axes))


@operator("Concat")
def _concat(node: Node) -> Function:
    axis = node.integer("axis", 1 if node.version < 4 else None)

    def concat(*parts: Tensor) -> Tensor:
        if len(parts) > 1:  # repeated, it would double a value in each node or round
            node.check_size([sum(part.numel() for part in parts)], parts[0].itemsize)
        return pc.cat(parts, axis)

    return concat


@operator("Expand", host=(1,))
def _expand(node: Node) -> Function:
    def expand(x: Tensor, given: Any) -> Tensor:
        shape = pc.broadcast_shapes(tuple(x.shape), tuple(as_ints(given)))
        node.check_size(shape, x.itemsize)
        return pc.broadcast_to(x, shape)

    return expand


@operator("Tile")
def _tile_1(node: Node) -> Function:
    raise node.error("version 1 is not supported; convert the model to opset 6")


@operator("Tile", 6, host=(1,))
def _tile(node: Node) -> Function:
    def tile(x: Tensor, repeats: Any) -> Tensor:
        counts = as_ints(repeats)
        if len(counts) != x.ndim:
            raise ValueError(f"{len(counts)} repeats for shape {list(x.shape)}")
        node.check_size([n * k for n, k in zip(x.shape, counts, strict=True)], x.itemsize)
        return pc.tile(x, counts)

    return tile


# ---- slices --------------------------------------------------------------------------------------


def sliced(
    x: Tensor, starts: list[int], ends: list[int], axes: list[int], steps: list[int]
) -> Tensor:
    """Return the part of a tensor between indices, which are clamped to its sizes."""
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise ValueError(f"{len(starts)} starts, {len(ends)} ends, {len(axes)} axes")
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        n = x.shape[axis]
        if step == 0:
            raise ValueError("a step of 0")
        low, high = (0, n) if step > 0 else (0, n - 1)
        start = min(max(start + n if start < 0 else start, low), high)
        if step > 0:
            end = min(max(end + n if end < 0 else end, 0), n)
            count = max(0, -((start - end) // step))
            x = (
                x.narrow(axis, start, max(end - start, 0))
                if step == 1
                else _step(x, axis, start, step, count)
            )
        else:
            end = min(max(end + n if end < 0 else end, -1), n - 1)
            count = max(0, -((end - start) // -step))
            if count == 0 or n == 0:
                x = x.narrow(axis, 0, 0)
                continue
            last = start + (count - 1) * step
            x = pc.flip(_step(x, axis, last, -step, count), (axis,))
    return x


def _step(x: Tensor, axis: int, start: int, step: int, count: int) -> Tensor:
    index: list[Any] = [slice(None)] * x.ndim
    index[axis] = slice(start, start + step * (count - 1) + 1 if count else start, step)
    part: Tensor = x[tuple(index)]
    return part


@operator("Slice")
def _slice_1(node: Node) -> Function:
    starts, ends = node.integers("starts"), node.integers("ends")
    axes = node.integers("axes", None) or list(range(len(starts)))
    return lambda x: sliced(x, starts, ends, axes, [1] * len(starts))


@operator("Slice", 10, host=(1, 2, 3, 4))
def _slice(_: Node) -> Function:
    def run(x: Tensor, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Tensor:
        first = as_ints(starts)
        return sliced(
            x,
            first,
            as_ints(ends),
            list(range(len(first))) if axes is None else as_ints(axes),
            [1] * len(first) if steps is None else as_ints(steps),
        )

    return run


def split_sizes(n: int, parts: int) -> list[int]:
    """Return sizes of parts, of which the last may be smaller."""
    size = -(-n // parts)
    return [max(0, min(size, n - i * size)) for i in range(parts)]


@operator("Split")
def _split_1(node: Node) -> Function:
    axis, sizes, count = node.integer("axis", 0), node.integers("split", None), len(node.outputs)

    def split(x: Tensor, given: Any = None) -> tuple[Tensor, ...]:
        lengths = sizes if given is None else as_ints(given)
        return tuple(pc.split(x, lengths or split_sizes(x.shape[axis], count), axis))

    return split


@operator("Split", 13, host=(1,))
def _split(node: Node) -> Function:
    axis = node.integer("axis", 0)
    count = node.integer("num_outputs", None) or len(node.outputs)
    if not 0 < count < 100_000:
        raise node.error(f"num_outputs must be positive, got {count}")

    def split(x: Tensor, given: Any = None) -> tuple[Tensor, ...]:
        lengths = as_ints(given) if given is not None else split_sizes(x.shape[axis], count)
        return tuple(pc.split(x, lengths, axis))

    return split


# ---- padding -------------------------------------------------------------------------------------


def padded(node: Node, x: Tensor, pads: list[int], mode: str, value: Any, axes: Any) -> Tensor:
    """Return a tensor with elements around it; negative numbers cut."""
    axes = list(range(x.ndim)) if axes is None else [a % x.ndim for a in axes]
    if len(pads) != 2 * len(axes):
        raise ValueError(f"{len(pads)} pads for {len(axes)} dimensions")
    before = dict(zip(axes, pads[: len(axes)], strict=True))
    after = dict(zip(axes, pads[len(axes) :], strict=True))
    sizes = [n + before.get(i, 0) + after.get(i, 0) for i, n in enumerate(x.shape)]
    node.check_size(sizes, x.itemsize)
    if mode == "constant":
        widths = [n for i in reversed(range(x.ndim)) for n in (before.get(i, 0), after.get(i, 0))]
        if x.dtype == pc.bool:
            return F.pad(x.to(pc.uint8), widths, value=float(value)).to(pc.bool)
        return F.pad(x, widths, value=value)
    for axis in axes:
        low, high = before[axis], after[axis]
        if low == high == 0:
            continue
        index = _border_indices(int(x.shape[axis]), low, high, mode)
        x = pc.index_select(x, axis, pc.from_numpy(index).to(x.device))
    return x


def _border_indices(n: int, low: int, high: int, mode: str) -> Any:
    index = np.arange(-low, n + high)
    if n == 0 and index.size:
        raise ValueError(f"mode {mode} needs elements")
    if mode == "edge":
        return index.clip(0, n - 1)
    if mode == "wrap":
        return index % n
    if n == 1:
        return np.zeros_like(index)
    index = index % (2 * n - 2)
    return np.where(index < n, index, 2 * n - 2 - index)


_MODES = ("constant", "reflect", "edge", "wrap")


@operator("Pad")
def _pad_1(node: Node) -> Function:
    pads = node.integers("pads" if node.has("pads") else "paddings")
    mode, value = node.text("mode", "constant", _MODES), node.number("value", 0.0)
    return lambda x: padded(node, x, pads, mode, value, None)


@operator("Pad", 11, host=(1, 3), constants=(2,))
def _pad(node: Node) -> Function:
    mode = node.text("mode", "constant", _MODES)

    def pad(x: Tensor, pads: Any, value: Any = None, axes: Any = None) -> Tensor:
        sizes, places = as_ints(pads), None if axes is None else as_ints(axes)
        if isinstance(value, Tensor) and current_capture() is not None:
            wide = padded(node, x, sizes, mode, 0, places)
            if mode != "constant":
                return wide
            inside = padded(node, pc.ones_like(x, dtype=pc.bool), sizes, mode, 0, places)
            return pc.where(inside, wide, value.reshape(()).to(x.dtype))
        value = host_value(value)
        fill = 0 if value is None or value.size == 0 else value.reshape(-1)[0].item()
        return padded(node, x, sizes, mode, fill, places)

    return pad


@operator("CenterCropPad", host=(1,))
def _center(node: Node) -> Function:
    axes = node.integers("axes", None)

    def run(x: Tensor, shape: Any) -> Tensor:
        sizes = as_ints(shape)
        places = list(range(len(sizes))) if axes is None else [a % x.ndim for a in axes]
        for axis, size in zip(places, sizes, strict=True):
            n = x.shape[axis]
            if size < n:
                x = x.narrow(axis, (n - size) // 2, size)
            elif size > n:
                low = (size - n) // 2
                x = padded(node, x, [low, size - n - low], "constant", 0, [axis])
        return x

    return run


# ---- blocks --------------------------------------------------------------------------------------


@operator("DepthToSpace")
def _depth_to_space(node: Node) -> Function:
    b, mode = node.integer("blocksize"), node.text("mode", "DCR", ("DCR", "CRD"))
    if b < 1:
        raise node.error(f"blocksize must be positive, got {b}")

    def run(x: Tensor) -> Tensor:
        n, c, h, w = x.shape
        if mode == "DCR":
            y = x.reshape(n, b, b, c // b**2, h, w).permute(0, 3, 4, 1, 5, 2)
        else:
            y = x.reshape(n, c // b**2, b, b, h, w).permute(0, 1, 4, 2, 5, 3)
        return y.reshape(n, c // b**2, h * b, w * b)

    return run


@operator("SpaceToDepth")
def _space_to_depth(node: Node) -> Function:
    b, mode = node.integer("blocksize"), node.text("mode", "DCR", ("DCR", "CRD"))
    if b < 1:
        raise node.error(f"blocksize must be positive, got {b}")

    def run(x: Tensor) -> Tensor:
        n, c, h, w = x.shape
        y = x.reshape(n, c, h // b, b, w // b, b)
        y = y.permute(0, 3, 5, 1, 2, 4) if mode == "DCR" else y.permute(0, 1, 3, 5, 2, 4)
        return y.reshape(n, c * b * b, h // b, w // b)

    return run


# ---- tensors from sizes --------------------------------------------------------------------------


@operator("ConstantOfShape", host=(0,))
def _constant_of_shape(node: Node) -> Function:
    value = node.tensor("value", None)
    if value is None:
        value = pc.zeros(1)
    if value.numel() != 1:
        raise node.error(f"value must have one element, got {value.numel()}")
    number, dtype = value.reshape(-1)[0].item(), value.dtype

    def run(shape: Any) -> Tensor:
        sizes = as_ints(shape)
        node.check_size(sizes, dtype.itemsize)
        return pc.full(sizes, number, dtype=dtype)

    return run


@operator("Range", host=(0, 1, 2))
def _range(node: Node) -> Function:
    def run(*bounds: Any) -> Tensor:
        dtypes = [v.dtype for v in bounds if isinstance(v, Tensor)]
        kinds = [v.dtype.name for v in bounds if type(v) is np.ndarray and v.dtype != object]
        dtype = dtypes[0] if dtypes else getattr(pc, kinds[0]) if kinds else pc.int64
        if dtypes and current_capture() is not None:
            start, end, step = map(as_tensor, bounds)
            return _range_of_tensors(start, end, step, dtype)
        start, end, step = (host_value(v).reshape(-1)[0] for v in bounds)
        if all(isinstance(v, np.generic) for v in (start, end, step)):
            start, end, step = start.item(), end.item(), step.item()
            count = (end - start) / step if step else math.nan
            if not math.isfinite(count):
                raise ValueError(f"{start} to {end} by {step} has no number of elements")
            count = max(0, math.ceil(count))
            node.check_size([count], dtype.itemsize)
            if count == 0:
                return pc.empty(0, dtype=dtype)
        return pc.arange(start, end, step, dtype=dtype)

    return run


def _range_of_tensors(start: Tensor, end: Tensor, step: Tensor, dtype: Any) -> Tensor:
    """Return a range whose length a graph computes: so many ones, added up."""
    count = ((end - start) / step).to(pc.float64).ceil().clamp(min=0).to(pc.int64).reshape(1)
    ones = _repeat(pc.ones(1, dtype=pc.int64, device=start.device), count)
    result: Tensor = (start + (ones.cumsum(0) - 1) * step).reshape(-1).to(dtype)
    return result


@operator("EyeLike")
def _eye_like(node: Node) -> Function:
    k, dtype = node.integer("k", 0), node.dtype("dtype", None)

    def run(x: Tensor) -> Any:
        rows, columns = x.shape
        below = pc.arange(columns, device=x.device) - pc.arange(rows, device=x.device)[:, None]
        return (below == k).to(x.dtype if dtype is None else dtype)

    return run


@operator("Trilu", host=(1,))
def _trilu(node: Node) -> Function:
    function = pc.triu if node.flag("upper", True) else pc.tril
    return lambda x, k=None: function(x, 0 if k is None else int(k.reshape(-1)[0]))
