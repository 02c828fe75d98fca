"""Words (functions for specs) about shapes: broadcasting, reductions, and inferred sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from plait_ops.value_types import Anything, Shape
from plait_ops.words.calling import fail, show
from plait_ops.words.declaring import word
from plait_ops.words.failing import max_dims, wrap_dim

__all__ = ["broadcast", "infer_size", "numel", "reduce_dims", "reduced"]


@word(reads_values=False)
def numel(shape: Anything) -> int:
    """Return the number of elements of a shape or tensor."""
    return math.prod(shape if isinstance(shape, Sequence) else shape.shape)


@word(on_call=True)
def broadcast(name_a: str, a: Shape, name_b: str, b: Shape) -> list[int]:
    """Return the shape to which two shapes broadcast."""
    n = max(len(a), len(b))
    out = []
    for i in range(n):
        x = a[i - n + len(a)] if i - n + len(a) >= 0 else 1
        y = b[i - n + len(b)] if i - n + len(b) >= 0 else 1
        if x != y and x != 1 and y != 1:
            fail(
                "ShapeError",
                f"shapes must broadcast; `{name_a}` has {show(a)} and `{name_b}` has {show(b)}, "
                f"which differ in dimension {i - n}",
            )
        out.append(y if x == 1 else x)
    return out


@word(on_call=True)
def reduce_dims(argument: str, dims: Shape | None, shape: Shape) -> list[int]:
    """Return the given dims, counted from the front; all for None or an empty list. Fail for
    repeated ones.
    """
    if dims is None or len(dims) == 0:
        return list(range(len(shape)))
    out: list[int] = []
    for dim in dims:
        at = wrap_dim(argument, dim, shape)
        if at in out:
            fail("ValueError", f"`{argument}` must not repeat a dimension; got {show(dims)}")
        out.append(at)
    return out


@word()
def reduced(shape: Shape, dims: Shape, keepdim: bool) -> list[int]:
    """Return the shape without `dims`, or with size 1 for them."""
    if keepdim:
        return [1 if i in dims else size for i, size in enumerate(shape)]
    return [size for i, size in enumerate(shape) if i not in dims]


@word(on_call=True)
def infer_size(argument: str, size: Shape, shape: Shape) -> list[int]:
    """Return `size` with its -1 replaced, so that it has as many elements as `shape`."""
    have, known, unknown = math.prod(shape), 1, 0
    max_dims(argument, len(size))
    for value in size:
        if value < -1:
            fail(
                "ShapeError",
                f"`{argument}` must not hold negative sizes other than one -1; got {show(size)}",
            )
        unknown += value == -1
        known *= 1 if value == -1 else value
    if unknown > 1:
        fail("ShapeError", f"`{argument}` must hold at most one -1; got {show(size)}")
    if unknown and known == 0:
        fail(
            "ShapeError",
            f"`{argument}` must not hold -1 and 0, as any size would do for -1; got {show(size)} "
            f"for shape {show(shape)}",
        )
    if known != have if not unknown else have % known != 0:
        fail(
            "ShapeError",
            f"`{argument}` {show(size)} must have as many elements as shape {show(shape)}, {have}",
        )
    return [have // known if value == -1 else value for value in size]
