"""Words that check conditions, and fail or warn."""

from __future__ import annotations

import math

from plait_ops import promotion
from plait_ops.value_types import AnyDType, Message, Operand, Shape, Tensor
from plait_ops.words.calling import LIMIT, MAX_DIMS, current, fail, show
from plait_ops.words.declaring import word

__all__ = [
    "KINDS",
    "check",
    "fits",
    "fits_as_factor",
    "in_range",
    "max_dims",
    "require",
    "require_same",
    "sizes",
    "warn",
    "warn_of_freedom",
    "warn_of_real",
    "wrap_dim",
    "wrap_index",
]


KINDS = (
    "ShapeError",
    "DTypeError",
    "ValueError",
    "IndexError",
    "TypeError",
    "NotImplementedError",
    "LinAlgError",
    "RuntimeError",
)
"""The kinds of errors that `check` may fail with."""


@word(on_call=True)
def check(condition: bool, message: Message, kind: str = "ShapeError") -> None:
    """Fail with `kind` and `message` unless the condition holds."""
    if not condition:
        fail(kind, message)


@word(on_call=True)
def warn(condition: bool, text: str) -> None:
    """Warn with `text` if the condition holds; one that begins with ``()`` follows the name of the
    operator.
    """
    if condition:
        current().warnings.append(current().name + text if text.startswith("()") else text)


@word(on_call=True)
def warn_of_freedom(shape: Shape, dims: Shape, correction: float) -> None:
    """Warn if a variance over `dims` divides by 0 or less."""
    n = math.prod(shape[d] for d in dims if d < len(shape))
    warn(
        n - correction <= 0,
        "(): degrees of freedom is <= 0. `correction` must be less than the number of elements "
        "that are reduced to one; the result is nan or inf",
    )


@word(on_call=True)
def warn_of_real(dtype: AnyDType, to: AnyDType) -> None:
    """Warn if a conversion drops imaginary parts; True for all but 0 needs them."""
    lost = dtype in promotion.COMPLEX and to not in promotion.COMPLEX and to != "bool"
    warn(lost, "Casting complex values to real discards the imaginary part")


@word(on_call=True)
def wrap_dim(argument: str, dim: int, shape: Shape) -> int:
    """Return `dim` counted from the front; a 0-d shape has the dims -1 and 0."""
    room = max(len(shape), 1)
    if not -room <= dim < room:
        fail(
            "IndexError",
            f"`{argument}` must be in [{-room}, {room - 1}] for shape {show(shape)}; got {dim}. "
            "Dimension out of range",
        )
    return dim + room if dim < 0 else dim


@word(on_call=True)
def wrap_index(argument: str, index: int, size: int) -> int:
    """Return `index` counted from the front of `size` elements."""
    if not -size <= index < size:
        fail(
            "IndexError",
            f"`{argument}` must be in [{-size}, {size - 1}] for a dimension of size {size}; got "
            f"{index}. index out of range",
        )
    return index + size if index < 0 else index


@word(on_call=True)
def sizes(argument: str, shape: Shape) -> None:
    """Fail unless `shape` can be the shape of a new tensor."""
    if len(shape) > MAX_DIMS:
        fail(
            "ShapeError", f"`{argument}` must have at most {MAX_DIMS} dimensions; got {len(shape)}"
        )
    if any(size < 0 for size in shape):
        fail("ShapeError", f"`{argument}` must not hold negative sizes; got {show(shape)}")
    # the product of the other sizes must fit even if one is 0
    if math.prod(size for size in shape if size) >= LIMIT:
        fail("ShapeError", f"`{argument}` must name fewer than 2**63 elements; got {show(shape)}")


@word(on_call=True)
def max_dims(argument: str, ndim: int) -> None:
    """Fail if a result of `ndim` dimensions has too many."""
    if ndim > MAX_DIMS:
        fail(
            "ShapeError",
            f"`{argument}` would give a result of {ndim} dimensions; at most {MAX_DIMS} are "
            f"supported",
        )


@word(on_call=True)
def require(argument: str, dtype: AnyDType, group: str) -> None:
    """Fail unless `dtype` belongs to the group (see `plait_ops.promotion.GROUPS`)."""
    if str(dtype) in promotion.group(group):
        return
    what = {
        "arithmetic": "an integer, floating-point or complex dtype",
        "numeric": "an integer or floating-point dtype",
        "inexact": "a floating-point or complex dtype",
        "floating": "a floating-point dtype",
        "integral": "an integer dtype or bool",
        "integer": "an integer dtype",
        "bool": "bool",
    }.get(group, "a real number: bool, an integer or floating-point dtype")
    fail("DTypeError", f"`{argument}` must be {what}; got {dtype}")


def _check_fits(argument: str, number: Operand, dtype: AnyDType, wraps: bool) -> None:
    """Fail unless a number fits in `dtype`; with `wraps`, negative ones may also be of unsigned
    integers.
    """
    if hasattr(number, "shape") or str(dtype) in promotion.COMPLEX:
        return
    if isinstance(number, complex):
        fail("DTypeError", f"`{argument}` must be a real number for {dtype}; got {number}")
    group = str(dtype)
    if not group.startswith(("int", "uint")) or isinstance(number, bool):
        return
    unsigned, bits = group[0] == "u", int(group.lstrip("uint"))
    limit = 2**bits if unsigned else 2 ** (bits - 1)
    least = -limit
    if unsigned:
        least = 1 - limit if wraps else 0
    if not math.isfinite(number) or not least <= math.trunc(number) < limit:
        fail("ValueError", f"`{argument}` must fit in {dtype}; got {number}")


@word(on_call=True)
def fits(argument: str, number: Operand, dtype: AnyDType) -> None:
    """Fail unless a number, without its fraction, can be stored in `dtype`; tensors pass."""
    _check_fits(argument, number, dtype, False)


@word(on_call=True)
def fits_as_factor(argument: str, number: Operand, dtype: AnyDType) -> None:
    """Fail unless a number, without its fraction, can multiply tensors of `dtype`. A negative one
    can multiply unsigned integers, which wrap around. Tensors pass.
    """
    _check_fits(argument, number, dtype, True)


LARGEST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38}


@word(on_call=True)
def in_range(argument: str, number: Operand, dtype: AnyDType) -> None:
    """Check like `fits`, and also fail for a finite number that would become infinite in a floating
    dtype.
    """
    fits(argument, number, dtype)
    largest = LARGEST.get(str(dtype))
    if largest is None or hasattr(number, "shape"):
        return
    if math.isfinite(number) and abs(number) > largest:
        fail("ValueError", f"`{argument}` must fit in {dtype}; got {number}")


@word(on_call=True)
def require_same(name_a: str, a: Tensor, name_b: str, b: Tensor) -> None:
    """Fail unless the two tensors have the same dtype."""
    if str(a.dtype) != str(b.dtype):
        fail(
            "DTypeError",
            f"`{name_a}` and `{name_b}` must have the same dtype; got {a.dtype} and {b.dtype}",
        )
