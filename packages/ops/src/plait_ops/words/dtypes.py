"""Words (functions for specs) about dtypes."""

from __future__ import annotations

from plait_ops import promotion
from plait_ops.value_types import AnyDType, Operand, Scalar, TensorList
from plait_ops.words.calling import fail
from plait_ops.words.declaring import word

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
    "int8",
    "is_complex",
    "is_floating",
    "is_integral",
    "itemsize",
    "promote_all",
    "real_dtype",
    "require_common",
    "uint8",
    "wide_dtype",
]


class DType(str):
    """The name of a dtype, as a constant that the translator knows."""


bool_ = DType("bool")
int8, uint8 = DType("int8"), DType("uint8")
int32, int64 = DType("int32"), DType("int64")
float16, bfloat16 = DType("float16"), DType("bfloat16")
float32, float64 = DType("float32"), DType("float64")
complex64, complex128 = DType("complex64"), DType("complex128")


@word()
def is_floating(dtype: AnyDType) -> bool:
    """Whether it is a floating-point dtype (complex is not)."""
    return promotion.category(str(dtype)) == 2


@word()
def is_complex(dtype: AnyDType) -> bool:
    """Whether it is a complex dtype."""
    return str(dtype) in promotion.COMPLEX


@word()
def real_dtype(dtype: AnyDType) -> AnyDType:
    """Return the dtype of a complex dtype's parts; other dtypes are returned as they are."""
    return promotion.real_dtype(str(dtype))


@word()
def complex_dtype(dtype: AnyDType) -> AnyDType:
    """Return the complex dtype with parts of float32, or of float64 if `dtype` is that wide."""
    return "complex128" if str(dtype) in ("float64", "complex128") else "complex64"


@word()
def wide_dtype(dtype: AnyDType) -> AnyDType:
    """Return float32 for float16 and bfloat16, and other dtypes as they are.

    Kernels compute in this dtype, and results that a derivative needs are stored in it.
    """
    return "float32" if str(dtype) in ("float16", "bfloat16") else dtype


@word()
def itemsize(dtype: AnyDType) -> int:
    """Return the number of bytes of an element."""
    digits = str(dtype).split("_")[0].lstrip("abcdefghijklmnopqrstuvwxyz")
    return max(int(digits or 8) // 8, 1)


@word()
def is_integral(dtype: AnyDType) -> bool:
    """Whether it is bool or an integer dtype."""
    return promotion.category(str(dtype)) < 2


@word()
def dtype_of(number: Scalar) -> AnyDType:
    """Return the dtype of a number alone: bool, int64, the default dtype, or the complex dtype with
    parts of the default dtype.
    """
    return promotion.number_dtype(number)


@word()
def accumulated(dtype: AnyDType) -> AnyDType:
    """Return the dtype of a sum: int64 for bool and integers except uint64, else `dtype`."""
    if str(dtype) == "uint64":
        return "uint64"
    return "int64" if is_integral(dtype) else str(dtype)


@word(on_call=True)
def default_dtype() -> AnyDType:
    """Return the default dtype of floating-point results."""
    return promotion.DEFAULT


@word(on_call=True)
def promote_all(argument: str, tensors: TensorList) -> AnyDType:
    """Return the dtype to which a list of tensors promotes; of an empty one, the default dtype."""
    if not tensors:
        return promotion.DEFAULT
    try:
        return promotion.of_operands(tensors)
    except promotion.PromotionError as error:
        fail("DTypeError", f"`{argument}`: {error}")
        raise


@word(on_call=True)
def require_common(name_a: str, a: Operand, name_b: str, b: Operand) -> AnyDType:
    """Return the dtype to which two operands promote."""
    try:
        return promotion.of_operands([a, b])
    except promotion.PromotionError as error:
        fail("DTypeError", f"`{name_a}` and `{name_b}`: {error}")
        raise
