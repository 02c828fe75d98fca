"""Words that make results."""

from __future__ import annotations

from plait_ops.value_types import AnyDType, ArgumentName, MadeResult, Shape, Tensor
from plait_ops.words.calling import MAX_DIMS, current, fail
from plait_ops.words.declaring import word
from plait_ops.words.dtypes import is_complex
from plait_ops.words.failing import max_dims
from plait_ops.words.meta import Meta

__all__ = ["cast_argument", "result", "result_as", "view", "view_parts"]


@word(on_call=True)
def result(shape: Shape, dtype: AnyDType) -> MadeResult:
    """Make a result in C order."""
    if len(shape) > MAX_DIMS:
        fail("ShapeError", f"a tensor has at most {MAX_DIMS} dimensions; got {len(shape)}")
    return Meta(tuple(shape), str(dtype))


@word(on_call=True)
def result_as(shape: Shape, dtype: AnyDType, strides: Shape) -> MadeResult:
    """Make a dense result with another order of dimensions in memory."""
    return Meta(tuple(shape), str(dtype), tuple(strides))


@word(on_call=True)
def view(base: Tensor, shape: Shape, strides: Shape, offset: int = 0) -> MadeResult:
    """Make a result that is a view of `base`, beginning `offset` elements after its first."""
    max_dims("shape", len(shape))
    return Meta(tuple(shape), str(base.dtype), tuple(strides), getattr(base, "offset", 0) + offset)


@word(on_call=True)
def view_parts(
    base: Tensor, dtype: AnyDType, shape: Shape, strides: Shape, offset: int = 0
) -> MadeResult:
    """Make a view of the parts of complex numbers, or of pairs of parts as complex numbers; strides
    and `offset` count elements of `dtype`.
    """
    max_dims("shape", len(shape))
    before = getattr(base, "offset", 0)
    first = before * 2 if is_complex(base.dtype) else before // 2
    return Meta(tuple(shape), str(dtype), tuple(strides), first + offset)


@word(on_call=True)
def cast_argument(argument: ArgumentName, dtype: AnyDType) -> None:
    """Cast an argument for the kernel to `dtype`."""
    value = current().values[argument]
    for tensor in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(tensor, Meta):
            tensor.dtype = str(dtype)
