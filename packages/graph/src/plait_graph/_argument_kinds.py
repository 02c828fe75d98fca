"""Which arguments fit which parameters of schemas, and how errors name the kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plait_abi
from plait_graph._values import Argument, Number, SizeExpression, SizeQuotient, Value
from plait_ops.schema import Argument as Parameter

__all__ = ["fits", "kind_text", "to_argument"]


def _is_number(argument: Argument, *kinds: type) -> bool:
    """Return whether an argument is of one of the types, or a number of the graph.

    A bool is no int here.
    """
    if isinstance(argument, SizeExpression):
        return int in kinds
    if isinstance(argument, SizeQuotient):
        return float in kinds
    return isinstance(argument, Number) or type(argument) in kinds


_FITS: dict[str, Callable[[Argument], bool]] = {
    "Tensor": lambda a: isinstance(a, Value),
    "Tensor|Scalar": lambda a: isinstance(a, Value) or _is_number(a, bool, int, float, complex),
    "Scalar": lambda a: _is_number(a, bool, int, float, complex),
    "int": lambda a: _is_number(a, int),
    "float": lambda a: _is_number(a, int, float),
    "bool": lambda a: type(a) is bool,
    "str": lambda a: isinstance(a, str),
    "dtype": lambda a: isinstance(a, plait_abi.dtype),
    "device": lambda a: isinstance(a, plait_abi.device),
    "Generator": lambda a: False,
}
_WORDS = {
    "Tensor": "a tensor",
    "Tensor|Scalar": "a tensor or a number",
    "Scalar": "a number",
    "int": "an int",
    "float": "a float",
    "bool": "a bool",
    "str": "a str",
    "dtype": "a dtype",
    "device": "a device",
    "Tensor[]": "a list of tensors",
    "int[]": "a list of ints",
    "float[]": "a list of floats",
}


def fits(argument: Argument, parameter: Parameter) -> bool:
    """Return whether an argument of a node has the kind that the schema requires."""
    if argument is None:
        return parameter.optional
    if not parameter.type.endswith("[]"):
        return _FITS[parameter.type](argument)
    each_fits = _FITS[parameter.type[:-2]]
    return (
        isinstance(argument, tuple)
        and all(each_fits(a) or (a is None and parameter.optional_items) for a in argument)
        and parameter.length in (None, len(argument))
    )


def kind_text(parameter: Parameter) -> str:
    """Return what a parameter accepts, for errors: ``a list of 2 ints``, ``a tensor or None``."""
    if parameter.type == "Generator":
        return "None, as a graph has no generators"
    text = _WORDS[parameter.type]
    if parameter.length is not None:
        text = text.replace("list of ", f"list of {parameter.length} ")
    return f"{text} or None" if parameter.optional else text


def to_argument(value: Any, parameter: Parameter) -> Argument:
    """Return what a node has for a value of a call: lists as tuples, dtypes as objects."""
    if isinstance(value, list):
        value = tuple(value)
    if parameter.type == "dtype" and isinstance(value, str):
        return plait_abi.dtype(value)
    if parameter.type == "device" and isinstance(value, str):
        return plait_abi.device(value)
    if parameter.type.endswith("[]") and isinstance(
        value, (int, float, Number, SizeExpression, SizeQuotient)
    ):
        return (value,) * (parameter.length or 1)
    return value  # type: ignore[no-any-return]
