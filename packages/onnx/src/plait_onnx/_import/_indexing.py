"""Operators that take, place, select or sort elements by indices."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import plait_core as pc
from plait_abi import operator as operator_of
from plait_core import Tensor
from plait_graph._capture import current_capture
from plait_onnx._import._program import host_value
from plait_onnx._import._registry import Node, operator
from plait_onnx._import._sizes import as_ints

Function = Callable[..., Any]


def _positive(index: Tensor, n: Any) -> Tensor:
    """Return indices of which negative ones count from the end."""
    index = index.to(pc.int64)
    return pc.where(index < 0, index + n, index)


@operator("Gather")
def _gather(node: Node) -> Function:
    axis = node.integer("axis", 0)

    def gather(x: Tensor, index: Tensor) -> Tensor:
        if not -x.ndim <= axis < x.ndim:
            raise ValueError(f"axis {axis} is out of range for {x.ndim} dimensions")
        at = axis % x.ndim
        n = x.shape[at]
        flat = _positive(index, n).reshape(-1)
        rows = pc.index_select(x, at, flat)
        return rows.reshape(*x.shape[:at], *index.shape, *x.shape[at + 1 :])

    return gather


@operator("GatherElements")
def _gather_elements(node: Node) -> Function:
    axis = node.integer("axis", 0)
    return lambda x, index: pc.gather(x, axis, _positive(index, x.shape[axis]))


def _tuples(x: Tensor, index: Tensor, lead: int = 0) -> tuple[Tensor, ...]:
    """Return the columns of an array of indices, for the dimensions after the first ones."""
    count = index.shape[-1]
    return tuple(_positive(index[..., i], x.shape[lead + i]) for i in range(count))


@operator("GatherND")
def _gather_nd(node: Node) -> Function:
    lead = node.integer("batch_dims", 0)

    def run(x: Tensor, index: Tensor) -> Tensor:
        batches = []
        for i in range(lead):
            n = x.shape[i]
            batches.append(pc.arange(n, device=x.device).reshape(n, *[1] * (index.ndim - 2 - i)))
        key = (*batches, *_tuples(x, index, lead))
        result: Tensor = x[key] if key else x
        return result

    return run


def _combine(x: Tensor, axis: int, index: Tensor, updates: Tensor, reduction: str) -> Tensor:
    index = _positive(index, x.shape[axis])
    if reduction == "none":
        return pc.scatter(x, axis, index, updates)
    if reduction == "add":
        return pc.scatter_add(x, axis, index, updates)
    kind = {"mul": "prod", "max": "amax", "min": "amin"}[reduction]
    return pc.scatter_reduce(x, axis, index, updates, kind)


def _are_places(index: Tensor, n: int) -> bool:
    """Return whether all are places in a dimension; a capture cannot tell."""
    if current_capture() is not None or not index.numel():
        return True
    return bool(((index >= 0) & (index < n)).all())


_REDUCTIONS = ("none", "add", "mul", "max", "min")


@operator("Scatter")
@operator("ScatterElements")
def _scatter_elements(node: Node) -> Function:
    axis, reduction = node.integer("axis", 0), node.text("reduction", "none", _REDUCTIONS)
    return lambda x, index, updates: _combine(x, axis, index, updates, reduction)


@operator("ScatterND")
def _scatter_nd(node: Node) -> Function:
    reduction = node.text("reduction", "none", _REDUCTIONS)

    def run(x: Tensor, index: Tensor, updates: Tensor) -> Tensor:
        count = index.shape[-1]
        if count > x.ndim:
            raise ValueError(f"{count} indices for shape {list(x.shape)}")
        rest = tuple(x.shape[count:])
        flat = pc.zeros(tuple(index.shape[:-1]), dtype=pc.int64, device=x.device)
        for column, n in zip(_tuples(x, index), x.shape, strict=False):
            if not _are_places(column, n):
                raise IndexError(f"indices are out of range for shape {list(x.shape)}")
            flat = flat * n + column
        flat = flat.reshape(-1)
        size = math.prod(rest)
        table = x.reshape(-1, size) if x.numel() else x.reshape(math.prod(x.shape[:count]), size)
        rows = updates.reshape(flat.shape[0], size)
        places = flat[:, None].expand(flat.shape[0], size)
        return _combine(table, 0, places, rows, reduction).reshape(x.shape)

    return run


@operator("TensorScatter")
def _tensor_scatter(node: Node) -> Function:
    axis = node.integer("axis", -2)
    mode = node.text("mode", "linear", ("linear", "circular"))

    def run(cache: Tensor, update: Tensor, starts: Tensor | None = None) -> Tensor:
        at, length = axis % cache.ndim, update.shape[axis]
        n = cache.shape[at]
        steps = pc.arange(length, device=cache.device)
        if starts is None:
            places = steps[None].expand(cache.shape[0], length)
        else:
            places = starts.to(pc.int64)[:, None] + steps
        if mode == "circular":
            places = pc.remainder(places, n)
        shape = [1] * cache.ndim
        shape[0], shape[at] = places.shape
        return pc.scatter(cache, at, places.reshape(shape).expand(update.shape), update)

    return run


@operator("OneHot", host=(1,))
def _one_hot(node: Node) -> Function:
    axis = node.integer("axis", -1)

    def run(index: Tensor, depth: Any, values: Tensor) -> Tensor:
        n = int(depth.reshape(-1)[0])
        if n < 0:
            raise ValueError(f"depth must not be negative, got {n}")
        node.check_size([*index.shape, n], values.itemsize)
        at = axis + index.ndim + 1 if axis < 0 else axis
        if not 0 <= at <= index.ndim:
            raise ValueError(f"axis {axis} is out of range for {index.ndim + 1} dimensions")
        classes = pc.arange(n, device=index.device).reshape(n, *[1] * (index.ndim - at))
        whole = index.to(pc.int64).unsqueeze(at)
        hot = pc.where(whole < 0, whole + n, whole) == classes
        return pc.where(hot, values[1], values[0])

    return run


@operator("NonZero")
def _nonzero(_: Node) -> Function:
    return lambda x: pc.nonzero(x).t().contiguous()


@operator("Compress")
def _compress(node: Node) -> Function:
    axis = node.integer("axis", None)

    def run(x: Tensor, condition: Tensor) -> Tensor:
        at = axis
        if at is None:
            x, at = x.reshape(-1), 0
        index = pc.nonzero(condition.reshape(-1)).reshape(-1)
        return pc.index_select(x, at, index)

    return run


@operator("TopK")
def _top_k_1(node: Node) -> Function:
    axis, k = node.integer("axis", -1), node.integer("k")
    return lambda x: tuple(pc.topk(x, k, axis))


@operator("TopK", 10, host=(1,))
def _top_k(node: Node) -> Function:
    axis, largest = node.integer("axis", -1), node.flag("largest", True)
    return lambda x, k: tuple(pc.topk(x, as_ints(k)[0], axis, largest))


@operator("ReverseSequence")
def _reverse_sequence(node: Node) -> Function:
    time, batch = node.integer("time_axis", 0), node.integer("batch_axis", 1)

    def run(x: Tensor, lengths: Tensor) -> Tensor:
        n = x.shape[time]
        steps = pc.arange(n, device=x.device)[:, None]
        ends = lengths.to(pc.int64)[None]
        index = pc.where(steps < ends, ends - 1 - steps, steps)
        index = index if time < batch else index.t()
        shape = [1] * x.ndim
        shape[time], shape[batch] = n, x.shape[batch]
        return pc.gather(x, time, index.reshape(shape).expand(x.shape))

    return run


@operator("Unique")
def _unique(node: Node) -> Function:
    axis, ordered = node.integer("axis", None), node.flag("sorted", True)

    def run(x: Tensor) -> Any:
        values = x.detach().cpu().numpy()
        found, first, inverse, counts = np.unique(
            values, return_index=True, return_inverse=True, return_counts=True, axis=axis
        )
        inverse = inverse.reshape(-1)
        if not ordered:
            order = np.argsort(first)
            rank = np.empty_like(order)
            rank[order] = np.arange(order.size)
            found = found.take(order, 0 if axis is None else axis)
            first, counts, inverse = first[order], counts[order], rank[inverse]
        parts = (found, *(part.astype(np.int64) for part in (first, inverse, counts)))
        return tuple(pc.from_numpy(np.ascontiguousarray(part)).to(x.device) for part in parts)

    return run


# ---- boxes ---------------------------------------------------------------------------------------


def _corners(boxes: Any, by_center: bool) -> Any:
    if by_center:
        x, y, w, h = boxes.T
        return np.stack([y - h / 2, x - w / 2, y + h / 2, x + w / 2])
    a, b, c, d = boxes.T
    return np.stack([np.minimum(a, c), np.minimum(b, d), np.maximum(a, c), np.maximum(b, d)])


def _suppressed(corners: Any, scores: Any, most: int, overlap: float, least: float) -> list[int]:
    """Return boxes by falling scores, of which none overlaps an earlier one by more."""
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] > least] if least > -math.inf else order
    top, left, bottom, right = corners
    area = (bottom - top) * (right - left)
    chosen: list[int] = []
    while order.size and len(chosen) < most:
        i, order = order[0], order[1:]
        chosen.append(int(i))
        height = np.minimum(bottom[i], bottom[order]) - np.maximum(top[i], top[order])
        width = np.minimum(right[i], right[order]) - np.maximum(left[i], left[order])
        common = np.maximum(height, 0) * np.maximum(width, 0)
        union = area[i] + area[order] - common
        ratio = np.divide(common, union, out=np.zeros_like(common), where=union > 0)
        order = order[ratio <= overlap]
    return chosen


def _recorded_suppression(
    boxes: Tensor, scores: Tensor, by_center: bool, limit: int, overlap: float, least: float
) -> Tensor:
    """Return what `NonMaxSuppression` finds, by operators that a graph can have."""
    if by_center:
        middle, half = boxes[..., :2], boxes[..., 2:] / 2
        boxes = pc.cat([middle - half, middle + half], -1)
    else:
        one, other = boxes[..., :2], boxes[..., 2:]
        boxes = pc.cat([pc.minimum(one, other), pc.maximum(one, other)], -1)
    rows = []
    for i, j in itertools.product(range(scores.shape[0]), range(scores.shape[1])):
        rated, corners, places = scores[i, j], boxes[i], None
        if least > -math.inf:
            places = (rated > least).nonzero()[:, 0]
            rated, corners = rated[places], corners[places]
        chosen = operator_of("nms")(corners, rated, overlap)[:limit]
        chosen = chosen if places is None else places[chosen]
        rows.append(pc.stack([pc.full_like(chosen, i), pc.full_like(chosen, j), chosen], 1))
    return pc.cat(rows) if rows else pc.zeros(0, 3, dtype=pc.int64)


@operator("NonMaxSuppression", host=(2, 3, 4))
def _non_max_suppression(node: Node) -> Function:
    by_center = node.flag("center_point_box")

    def number(value: Any, default: float) -> float:
        return default if value is None or not value.size else float(value.reshape(-1)[0])

    def run(
        boxes: Any, scores: Any, most: Any = None, overlap: Any = None, least: Any = None
    ) -> Tensor:
        if boxes.ndim != 3 or scores.ndim != 3 or boxes.shape[2] != 4:
            raise ValueError("boxes must be (batch, n, 4) and scores (batch, classes, n)")
        numbers = int(number(most, 0)), number(overlap, 0.0), number(least, -math.inf)
        if current_capture() is not None:
            return _recorded_suppression(boxes, scores, by_center, *numbers)
        boxes, scores, rows = host_value(boxes), host_value(scores), []
        for i in range(scores.shape[0]):
            corners = _corners(boxes[i], by_center)
            for j in range(scores.shape[1]):
                chosen = _suppressed(corners, scores[i, j], *numbers)
                rows += [(i, j, k) for k in chosen]
        return pc.from_numpy(np.array(rows, np.int64).reshape(-1, 3))

    return run
