"""Words of dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plait_ops import promotion
from plait_ops.words.calling import fail, word
from plait_ops.words.values import is_tensor

__all__ = [
    "DType",
    "accumulated",
    "bfloat16",
    "bool_",
    "complex128",
    "complex64",
    "complex_dtype",
    "default_dtype",
    "dtype_of",
    "float16",
    "float32",
    "float64",
    "int32",
    "int64",
    "is_complex",
    "is_floating",
    "is_integral",
    "promote_all",
    "real_dtype",
    "require_common",
    "uint8",
]


class DType(str):
    """The name of a dtype, as a constant that the translator knows."""


bool_ = DType("bool")
uint8, int32, int64 = DType("uint8"), DType("int32"), DType("int64")
float16, bfloat16 = DType("float16"), DType("bfloat16")
float32, float64 = DType("float32"), DType("float64")
complex64, complex128 = DType("complex64"), DType("complex128")


@word("dtype -> bool")
def is_floating(dtype: Any) -> bool:
    """Whether it is a floating-point dtype (complex is not)."""
    return promotion.category(str(dtype)) == 2


@word("dtype -> bool")
def is_complex(dtype: Any) -> bool:
    """Whether it is a complex dtype."""
    return str(dtype) in promotion.COMPLEX


@word("dtype -> dtype")
def real_dtype(dtype: Any) -> str:
    """Return the dtype of a complex dtype's parts; others are their own."""
    return promotion.real_dtype(str(dtype))


@word("dtype -> dtype")
def complex_dtype(dtype: Any) -> str:
    """Return the complex dtype whose parts are float32 or float64, as `dtype` is at least."""
    return "complex128" if str(dtype) in ("float64", "complex128") else "complex64"


@word("dtype -> bool")
def is_integral(dtype: Any) -> bool:
    """Whether it is bool or an integer dtype."""
    return promotion.category(str(dtype)) < 2


@word("scalar -> dtype")
def dtype_of(number: Any) -> str:
    """Return the dtype that a number becomes where nothing else decides: bool, int64, the default
    dtype, or the complex dtype of its width.
    """
    return promotion.number_dtype(number)


@word("dtype -> dtype")
def accumulated(dtype: Any) -> str:
    """Return the dtype of a sum: int64 for bool and integers (uint64 for itself), else the same."""
    if str(dtype) == "uint64":
        return "uint64"
    return "int64" if is_integral(dtype) else str(dtype)


@word("@ -> dtype")
def default_dtype() -> str:
    """Return the dtype of floats that are made of integers or of nothing."""
    return promotion.DEFAULT


@word("@str tensors -> dtype")
def promote_all(argument: str, tensors: Sequence[Any]) -> str:
    """Return the dtype to which a list of tensors promotes; of none, the default dtype."""
    if not tensors:
        return promotion.DEFAULT
    levels: tuple[list[str], list[str]] = ([], [])
    for tensor in tensors:
        levels[tensor.ndim == 0].append(str(tensor.dtype))
    try:
        return promotion.result_type(*levels, [])
    except promotion.PromotionError as error:
        fail("DTypeError", f"`{argument}`: {error}")
        raise


@word("@str operand str operand -> dtype")
def require_common(name_a: str, a: Any, name_b: str, b: Any) -> str:
    """Return the dtype to which two operands promote."""
    levels: tuple[list[str], list[str], list[str]] = ([], [], [])
    for value in (a, b):
        if not is_tensor(value):
            levels[2].append(promotion.number_dtype(value))
        else:
            levels[value.ndim == 0].append(str(value.dtype))
    try:
        return promotion.result_type(*levels)
    except promotion.PromotionError as error:
        fail("DTypeError", f"`{name_a}` and `{name_b}`: {error}")
        raise
