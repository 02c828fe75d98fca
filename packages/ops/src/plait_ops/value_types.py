"""The types of values in functions of a spec, for the words' signatures and the translator.

A function of a spec is Python without annotations; the translator infers one of these types for
each expression. Numbers, strings and dtypes are as in Python. Lists and tensors have two types
each: *borrowed*, which something else keeps alive, and *own*.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import types
import typing
from typing import Annotated, Any

__all__ = [
    "INT",
    "FLOAT",
    "BOOL",
    "STR",
    "TEXT",
    "DTYPE",
    "DEVICE",
    "SCALAR",
    "OPERAND",
    "HELD",
    "INTS",
    "LIST",
    "TENSOR",
    "OWNED",
    "TENSORS",
    "BAG",
    "EMPTY",
    "NONE",
    "ARGUMENT",
    "RESULT",
    "RESULTS",
    "AnyDType",
    "Anything",
    "ArgumentName",
    "HeldOperand",
    "Kind",
    "MadeResult",
    "Message",
    "Operand",
    "Scalar",
    "Shape",
    "Tensor",
    "TensorList",
    "Type",
    "of_annotation",
]


class Kind(enum.Enum):
    """A kind of value: its name in errors, and its meaning."""

    INT = "int", "an integer of 64 bits"
    FLOAT = "float", "a float64"
    BOOL = "bool", "a truth value"
    STR = "str", "a string"
    TEXT = "text", "a message, made of strings and values"
    DTYPE = "dtype", "a dtype"
    DEVICE = "device", "a device"
    GENERATOR = "generator", "a generator of random numbers"
    SCALAR = "scalar", "a number of any type"
    OPERAND = "operand", "a tensor or a number"
    HELD = "held", "an operand, or a tensor that the function made"
    INTS = "ints", "a list of integers that the caller keeps"
    FLOATS = "floats", "a list of floats that the caller keeps"
    LIST = "list", "a list of integers that may be changed"
    TENSOR = "tensor", "a tensor that the caller keeps"
    OWNED = "owned", "a tensor that is kept while the variable lives"
    TENSORS = "tensors", "a list of tensors that the caller keeps"
    BAG = "bag", "a list of tensors that may be appended to"
    EMPTY = "empty", "an empty list whose kind of items is not yet known"
    NONE = "none", "None"
    ANY = "any", "a list of integers or a tensor"
    ARGUMENT = "argument", "the name of an argument of the operator"
    RESULT = "result", "a result, which a shape function returns"
    RESULTS = "results", "the results of an operator that has several"

    def __init__(self, text: str, meaning: str) -> None:
        self.text, self.meaning = text, meaning


@dataclasses.dataclass(frozen=True)
class Type:
    """A type; an optional one has None among its values."""

    kind: Kind
    optional: bool = False

    @property
    def base(self) -> Type:
        """The type without None."""
        return Type(self.kind)

    @property
    def or_none(self) -> Type:
        """The type with None."""
        return Type(self.kind, optional=True)

    def __str__(self) -> str:
        return self.kind.text + ("?" if self.optional else "")


INT = Type(Kind.INT)
FLOAT = Type(Kind.FLOAT)
BOOL = Type(Kind.BOOL)
STR = Type(Kind.STR)
TEXT = Type(Kind.TEXT)
DTYPE = Type(Kind.DTYPE)
DEVICE = Type(Kind.DEVICE)
SCALAR = Type(Kind.SCALAR)
OPERAND = Type(Kind.OPERAND)
HELD = Type(Kind.HELD)
INTS = Type(Kind.INTS)
LIST = Type(Kind.LIST)
TENSOR = Type(Kind.TENSOR)
OWNED = Type(Kind.OWNED)
TENSORS = Type(Kind.TENSORS)
BAG = Type(Kind.BAG)
EMPTY = Type(Kind.EMPTY)
NONE = Type(Kind.NONE)
ARGUMENT = Type(Kind.ARGUMENT)
RESULT = Type(Kind.RESULT)
RESULTS = Type(Kind.RESULTS)


# ---- what the words' annotations are written with, beside int, float, bool and str ---------------
Shape = collections.abc.Sequence[int]
AnyDType = Annotated[Any, DTYPE]
Scalar = Annotated[Any, SCALAR]
Operand = Annotated[Any, OPERAND]
HeldOperand = Annotated[Any, HELD]
Tensor = Annotated[Any, TENSOR]
TensorList = Annotated[collections.abc.Sequence[Any], TENSORS]
Anything = Annotated[Any, Type(Kind.ANY)]
Message = Annotated[str, TEXT]
ArgumentName = Annotated[str, ARGUMENT]
MadeResult = Annotated[Any, RESULT]

PLAIN = {
    int: Kind.INT,
    float: Kind.FLOAT,
    bool: Kind.BOOL,
    str: Kind.STR,
    type(None): Kind.NONE,
    collections.abc.Sequence[int]: Kind.INTS,
    list[int]: Kind.LIST,
}


def of_annotation(hint: Any) -> Type:
    """Return the type for a word's annotation; ``TypeError`` if there is none."""
    if typing.get_origin(hint) is Annotated:
        return next(each for each in typing.get_args(hint)[1:] if isinstance(each, Type))
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        inner = [each for each in typing.get_args(hint) if each is not type(None)]
        if len(inner) == 1:
            return of_annotation(inner[0]).or_none
    elif hint in PLAIN:
        return Type(PLAIN[hint])
    raise TypeError(f"no type of the spec language is written {hint}")
