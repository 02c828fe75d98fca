"""Type promotion, by category as PyTorch documents it.

`cpp/promotion.cpp` does the same for calls in C++; tests compare the two for all dtypes and kinds
of operands (`tests/test_words_in_cpp.py`).

Tensors with dimensions decide first, then 0-d tensors, then numbers: the later only count if their
category (bool < int < float < complex) is higher. Within a level the result is the smallest dtype
that holds the values of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

__all__ = [
    "ALL",
    "ANY",
    "COMPLEX",
    "DEFAULT",
    "FLOAT8",
    "FLOATING",
    "GROUPS",
    "HALF",
    "INTEGER",
    "PromotionError",
    "category",
    "group",
    "holds",
    "number_dtype",
    "of_operands",
    "promote",
    "promote_types",
    "real_dtype",
    "result_type",
]

UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
SIGNED = ("int8", "int16", "int32", "int64")
INTEGER = UNSIGNED + SIGNED
HALF = ("float16", "bfloat16")
FLOATING = (*HALF, "float32", "float64")
COMPLEX = ("complex64", "complex128")
FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
"""Dtypes that are moved and converted; no operator computes with them."""
ALL = ("bool", *INTEGER, *FLOATING)
DEFAULT = "float32"  # the initial value of the runtime's default dtype, which a host may change
ANY = (*ALL, *COMPLEX)


class PromotionError(TypeError):
    """Two dtypes for whose values there is no common dtype."""


GROUPS = {
    "any": ANY,
    "all": ALL,
    "arithmetic": (*INTEGER, *FLOATING, *COMPLEX),
    "numeric": (*INTEGER, *FLOATING),
    "inexact": (*FLOATING, *COMPLEX),
    "floating": FLOATING,
    "integral": ("bool", *INTEGER),
    "integer": INTEGER,
    "bool": ("bool",),
}
"""Sets of dtypes by name, for operators and arguments."""


def group(name: str) -> tuple[str, ...]:
    """Return the dtypes of a group."""
    return GROUPS[name]


def category(dtype: str) -> int:
    """Return 0 for bool, 1 for integers, 2 for floating point, 3 for complex."""
    if dtype == "bool":
        return 0
    if dtype in INTEGER:
        return 1
    return 3 if dtype in COMPLEX else 2


def real_dtype(dtype: str) -> str:
    """Return the dtype of a complex dtype's parts; other dtypes are returned as they are."""
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def number_dtype(value: object) -> str:
    """Return the dtype for a number of the host."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int64"
    if isinstance(value, complex):
        return "complex128" if DEFAULT == "float64" else "complex64"
    return DEFAULT


def _bits(dtype: str) -> int:
    return {"bfloat16": 16}.get(dtype) or int(
        "".join(letter for letter in dtype if letter.isdigit())
    )


def promote_types(a: str, b: str) -> str:
    """Return the smallest dtype that holds the values of both."""
    if a != b and (a in FLOAT8 or b in FLOAT8):
        raise PromotionError(
            f"{a} and {b} have no common dtype: float8 is not promoted; convert it before, as with "
            "x.float() or x.bfloat16()"
        )
    if category(a) > category(b):
        a, b = b, a
    low, high = category(a), category(b)
    if a == b or low == 0:
        return b
    if high == 1:
        return _promote_integers(a, b)
    if high == 3:
        # a complex of twice the bits of what both parts need
        need = (
            max(_bits(b) // 2, _bits(a) if low == 2 else 0)
            if low != 3
            else max(_bits(a), _bits(b)) // 2
        )
        return "complex128" if need > 32 else "complex64"
    if low == 1:
        return b
    if _bits(a) == _bits(b):  # float16 and bfloat16
        return "float32"
    return a if _bits(a) > _bits(b) else b


def _promote_integers(a: str, b: str) -> str:
    if (a in SIGNED) == (b in SIGNED):
        return a if _bits(a) > _bits(b) else b
    unsigned, signed = (a, b) if a in UNSIGNED else (b, a)
    if _bits(signed) > _bits(unsigned):
        return signed
    if unsigned == "uint64":
        raise PromotionError(f"uint64 and {signed} have no common integer dtype; cast one of them")
    return f"int{2 * _bits(unsigned)}"


def holds(dtype: str, number: int) -> bool:
    """Return whether a dtype of integers has a number."""
    bits = int(dtype.lstrip("uint"))
    return number >> bits == 0 if dtype in UNSIGNED else number >> (bits - 1) in (0, -1)


def promote(dtypes: Sequence[str]) -> str:
    """Return `promote_types` over several dtypes."""
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = promote_types(result, dtype)
    return result


def _combine(higher: str | None, lower: str | None) -> str | None:
    """Combine two levels: the lower one counts if its category is higher."""
    if higher is None or lower is None:
        return higher or lower
    if category(lower) <= category(higher):
        return higher
    if category(lower) == 3 and category(higher) == 2:  # as wide as the floats were
        return "complex128" if higher == "float64" else "complex64"
    return lower


def result_type(dimensioned: Sequence[str], zero_dim: Sequence[str], numbers: Sequence[str]) -> str:
    """Return the dtype for operands of three levels; at least one operand is required.

    >>> result_type(["float32"], ["float64"], ["int64"])
    'float32'
    """
    levels = [promote(level) if level else None for level in (dimensioned, zero_dim, numbers)]
    result = _combine(levels[0], _combine(levels[1], levels[2]))
    if result is None:
        raise PromotionError("no operands")
    return result


def of_operands(operands: Iterable[Any]) -> str:
    """Return the dtype for tensors (objects with a shape and a dtype) and numbers; a 0-d tensor
    made from a number of the host counts as a number.
    """
    levels: tuple[list[str], list[str], list[str]] = ([], [], [])
    for operand in operands:
        if not hasattr(operand, "shape"):
            levels[2].append(number_dtype(operand))
        elif getattr(operand, "wrapped_number", False):
            levels[2].append(str(operand.dtype))
        else:
            levels[len(operand.shape) == 0].append(str(operand.dtype))
    return result_type(*levels)
