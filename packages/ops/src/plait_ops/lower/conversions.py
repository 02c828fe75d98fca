"""Conversions between types, and their C++ expressions."""

from __future__ import annotations

from plait_ops.lower.ir import Convert, Expression, Literal, Present
from plait_ops.value_types import (
    BAG,
    BOOL,
    EMPTY,
    FLOAT,
    HELD,
    INT,
    INTS,
    LIST,
    NONE,
    OPERAND,
    OWNED,
    SCALAR,
    STR,
    TENSOR,
    TENSORS,
    TEXT,
    Kind,
    Type,
)

__all__ = ["BY_VALUE", "CONVERSIONS", "NOTHING", "NUMBERS", "convert"]

NUMBERS = (Kind.INT, Kind.FLOAT, Kind.BOOL)
# These are a plait_value in C++, which may be absent by itself.
BY_VALUE = (Kind.SCALAR, Kind.OPERAND, Kind.GENERATOR, Kind.DEVICE)

MAYBE_TENSOR = TENSOR.or_none
NOTHING = Literal(None, NONE)

CONVERSIONS: dict[tuple[Type, Type], str] = {
    (MAYBE_TENSOR, TENSOR): "{}",
    (OWNED, TENSOR): "{}.get()",
    (OPERAND, TENSOR): "tensor_of({})",
    (TENSOR, OWNED): "Tensor::share({})",
    (MAYBE_TENSOR, OWNED): "Tensor::share({})",
    (OPERAND, OWNED): "Tensor::share(tensor_of({}))",
    (TENSOR, OPERAND): "value({})",
    (MAYBE_TENSOR, OPERAND): "value({})",
    (OWNED, OPERAND): "value({})",
    (SCALAR, OPERAND): "{}",
    (OPERAND, SCALAR): "{}",
    (INT, FLOAT): "double({})",
    (BOOL, FLOAT): "double({})",
    (BOOL, INT): "int64_t({})",
    (INTS, LIST): "Dims({})",
    (LIST, INTS): "Ints({})",
    (EMPTY, INTS): "Ints({})",
    (EMPTY, LIST): "{}",
    (EMPTY, BAG): "{}",
    (EMPTY, TENSORS): "{}.span()",
    (STR, TEXT): "std::string({})",
    (BAG, TENSORS): "{}.span()",
    (TENSORS, BAG): "Bag({})",
    (HELD, TENSOR): "tensor_of({}.get())",
    (HELD, OWNED): "Tensor::share(tensor_of({}.get()))",
    (HELD, OPERAND): "{}.get()",
    (HELD, SCALAR): "{}.get()",
    (SCALAR, FLOAT): "as_float({})",
    (OPERAND, FLOAT): "as_float({})",
    **{(number, OPERAND): "value({})" for number in (INT, FLOAT, BOOL)},
    **{(number, SCALAR): "value({})" for number in (INT, FLOAT, BOOL)},
}


def _absent(target: Type) -> bool:
    """Return whether None is a value of the type, or a valid value of its C++ type."""
    return target.optional or target.kind in (*BY_VALUE, Kind.OWNED, Kind.TENSOR)


def convert(value: Expression, target: Type) -> Expression | None:
    """Return the expression of ``value`` as ``wanted``, or None if there is no such conversion."""
    have = value.type
    if have == target or target.kind is Kind.ANY:
        return value
    if have.kind is Kind.NONE:
        return Convert(NOTHING, target) if _absent(target) else None
    if target.optional:
        return convert(value, target.base)
    if have.optional and have != MAYBE_TENSOR:
        return convert(Present(value), target)
    return Convert(value, target) if (have, target) in CONVERSIONS else None
