"""Words that make results."""

from __future__ import annotations

from typing import Any

from plait_ops.words.calling import MAX_DIMS, Meta, Shape, current, fail, word
from plait_ops.words.dtypes import is_complex
from plait_ops.words.failing import max_dims

__all__ = ["cast_argument", "result", "result_as", "view", "view_parts"]


@word("@result ints dtype -> made")
def result(shape: Shape, dtype: Any) -> Meta:
    """Make a result in C order."""
    if len(shape) > MAX_DIMS:
        fail("ShapeError", f"a tensor has at most {MAX_DIMS} dimensions; got {len(shape)}")
    return Meta(tuple(shape), str(dtype))


@word("@result ints dtype ints -> made")
def result_as(shape: Shape, dtype: Any, strides: Shape) -> Meta:
    """Make a result whose dimensions lie in another order."""
    return Meta(tuple(shape), str(dtype), tuple(strides))


@word("@result tensor ints ints int -> made")
def view(base: Any, shape: Shape, strides: Shape, offset: int = 0) -> Meta:
    """Make a result that looks at the bytes of `base`, `offset` elements after its first."""
    max_dims("shape", len(shape))
    return Meta(tuple(shape), str(base.dtype), tuple(strides), getattr(base, "offset", 0) + offset)


@word("@result tensor dtype ints ints int -> made")
def view_parts(base: Any, dtype: Any, shape: Shape, strides: Shape, offset: int = 0) -> Meta:
    """As `view`, of the parts of complex numbers or of pairs of parts; strides and `offset` count
    elements of `dtype`.
    """
    max_dims("shape", len(shape))
    before = getattr(base, "offset", 0)
    first = before * 2 if is_complex(base.dtype) else before // 2
    return Meta(tuple(shape), str(dtype), tuple(strides), first + offset)


@word("@str dtype -> none")
def cast_argument(argument: str, dtype: Any) -> None:
    """Let the kernel see an argument in `dtype`."""
    value = current().values[argument]
    for tensor in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(tensor, Meta):
            tensor.dtype = str(dtype)
