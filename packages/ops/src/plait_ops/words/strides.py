"""Words of strides: the order of elements in memory, and possible views."""

from __future__ import annotations

import math
from typing import Any

from plait_ops.value_types import Shape, Tensor
from plait_ops.words.calling import fail, show
from plait_ops.words.declaring import word

__all__ = [
    "contiguous_strides",
    "dense_strides",
    "format_strides",
    "is_contiguous",
    "is_in_format",
    "view_strides",
    "viewable",
]


@word()
def contiguous_strides(shape: Shape) -> list[int]:
    """Return the strides of C order."""
    strides, step = [0] * len(shape), 1
    for i in reversed(range(len(shape))):
        strides[i] = step
        step *= max(shape[i], 1)
    return strides


@word()
def dense_strides(tensor: Tensor) -> list[int]:
    """Return the strides of a new tensor with this tensor's order of dimensions in memory."""
    order = list(range(tensor.ndim))  # outermost first
    for i in reversed(range(tensor.ndim)):
        at = i
        for j in range(i + 1, tensor.ndim):  # expanded dimensions stay where they are
            stride, other = abs(tensor.strides[order[at]]), abs(tensor.strides[order[j]])
            if stride and other and stride > other:
                break
            if stride and other and stride < other:
                order[at], order[j] = order[j], order[at]
                at = j
    strides, step = [0] * tensor.ndim, 1
    for i in reversed(order):
        strides[i] = step
        step *= max(tensor.shape[i], 1)
    return strides


@word(on_call=True)
def format_strides(memory_format: str, shape: Shape, preserved: Shape) -> list[int]:
    """Return the strides of a new tensor in a memory format; `preserved` are those for
    "preserve_format".
    """
    if memory_format == "preserve_format":
        return list(preserved)
    if memory_format == "contiguous_format":
        return contiguous_strides(shape)
    ndim = {"channels_last": 4, "channels_last_3d": 5}.get(memory_format)
    if ndim is None:
        fail(
            "ValueError",
            "`memory_format` must be contiguous_format, preserve_format, channels_last or "
            f"channels_last_3d; got {memory_format}",
        )
    if len(shape) != ndim:
        fail(
            "ShapeError",
            f"`memory_format` {memory_format} requires {ndim} dimensions, got shape {show(shape)}",
        )
    order = [0, *range(2, len(shape)), 1]
    dense = contiguous_strides([shape[i] for i in order])
    return [dense[order.index(i)] for i in range(len(shape))]


@word(on_call=True)
def is_in_format(memory_format: str, tensor: Tensor) -> bool:
    """Return whether the elements have no gaps and the order of a memory format."""
    if memory_format == "contiguous_format":
        return is_contiguous(tensor)
    want = format_strides(memory_format, tensor.shape, tensor.strides)
    size = getattr(tensor, "itemsize", 1) if hasattr(tensor, "flags") else 1
    return all(
        n == 1 or a == b * size for n, a, b in zip(tensor.shape, tensor.strides, want, strict=True)
    )


def _view_strides(tensor: Any, shape: Shape) -> list[int] | None:
    """Compare both shapes from the back and match runs of dimensions that are contiguous."""
    if math.prod(shape) == 0 or tensor.ndim == 0:
        return contiguous_strides(shape)
    strides = [0] * len(shape)
    at, step, run = len(shape) - 1, tensor.strides[-1], 1
    count = 1
    for i in reversed(range(tensor.ndim)):
        run *= tensor.shape[i]
        if i and (tensor.shape[i - 1] == 1 or tensor.strides[i - 1] == run * step):
            continue
        while at >= 0 and (count < run or shape[at] == 1):
            strides[at] = count * step
            count *= shape[at]
            at -= 1
        if count != run:
            return None
        if i:
            step, run, count = tensor.strides[i - 1], 1, 1
    return strides if at < 0 else None


@word()
def is_contiguous(tensor: Tensor) -> bool:
    """Return whether the elements are in C order without gaps."""
    flags = getattr(tensor, "flags", None)
    if flags is not None:
        return bool(flags["C_CONTIGUOUS"])
    want = 1
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.strides), strict=True):
        if size == 0:
            return True
        if size != 1 and stride != want:
            return False
        want *= size
    return True


@word()
def viewable(tensor: Tensor, shape: Shape) -> bool:
    """Return whether a view with `shape`, which has as many elements, exists."""
    return _view_strides(tensor, shape) is not None


@word()
def view_strides(tensor: Tensor, shape: Shape) -> list[int]:
    """Return the strides of that view; call it only if `viewable`."""
    return _view_strides(tensor, shape) or [0] * len(shape)
