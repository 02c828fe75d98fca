"""What the translator knows about types: a name, its C++ spelling, how one becomes another.

Types are words: ``int float bool str dtype device generator scalar operand`` for values; ``ints``
for borrowed and ``list`` for own lists of integers; ``tensor`` for borrowed and ``owned`` for
counted tensors; ``tensors`` and ``bag`` for lists of those. A trailing ``?`` says that it may be
absent.
"""

from __future__ import annotations

import dataclasses
import json

from plait_ops.schema import Argument

__all__ = ["CPP", "Typed", "coerce", "declared", "literal", "parameter", "type_of"]

CPP = {
    "int": "int64_t",
    "float": "double",
    "bool": "bool",
    "str": "const char *",
    "dtype": "DType",
    "device": "plait_value",
    "scalar": "plait_value",
    "operand": "plait_value",
    "held": "Held",
    "generator": "plait_value",
    "ints": "Ints",
    "list": "Dims",
    "tensor": "plait_tensor *",
    "owned": "Tensor",
    "tensors": "Tensors",
    "bag": "Bag",
    "int?": "std::optional<int64_t>",
    "float?": "std::optional<double>",
    "dtype?": "std::optional<DType>",
    "ints?": "std::optional<Ints>",
    "tensor?": "plait_tensor *",
    "str?": "const char *",
}

BY_VALUE = ("scalar", "operand", "generator", "device")  # stay plait_value; absent is PLAIT_NONE


@dataclasses.dataclass(frozen=True)
class Typed:
    """A C++ expression and its type."""

    code: str
    type: str


def type_of(argument: Argument) -> str:
    """Return the type in which an argument of the schema is seen by a spec's functions."""
    base = {
        "Tensor": "tensor",
        "Tensor|Scalar": "operand",
        "Tensor[]": "tensors",
        "Scalar": "scalar",
        "int[]": "ints",
        "float[]": "floats",
        "Generator": "generator",
    }.get(argument.type, argument.type)
    return base + ("?" if argument.optional else "")


def parameter(type_: str, value: str) -> str:
    """Return the C++ expression that reads the plait_value ``value`` as ``type_``."""
    base = type_.removesuffix("?")
    if base in BY_VALUE:
        return value
    prefix = "maybe" if type_.endswith("?") and base not in ("tensor", "str") else "as"
    return f"{prefix}_{base}({value})"


def declared(type_: str) -> str:
    """Return the C++ type of a variable."""
    base = type_.removesuffix("?")
    return CPP[base] if base in BY_VALUE else CPP[type_]


def coerce(value: Typed, wanted: str) -> str | None:
    """Return the C++ expression of ``value`` as ``wanted``, or None where that makes no sense."""
    have = value.type
    if have == wanted or wanted == "any":
        return value.code
    if have == "none":
        return absent(wanted)
    if wanted.endswith("?"):
        return coerce(value, wanted.removesuffix("?"))
    if have == "str?":
        return coerce(Typed(value.code, "str"), wanted)
    if have.endswith("?") and have != "tensor?":
        inner = have.removesuffix("?")
        return coerce(Typed(value.code if inner in BY_VALUE else f"(*{value.code})", inner), wanted)
    rules = {
        ("tensor?", "tensor"): "{}",
        ("owned", "tensor"): "{}.get()",
        ("operand", "tensor"): "tensor_of({})",
        ("tensor", "owned"): "Tensor::share({})",
        ("tensor?", "owned"): "Tensor::share({})",
        ("operand", "owned"): "Tensor::share(tensor_of({}))",
        ("tensor", "operand"): "value({})",
        ("tensor?", "operand"): "value({})",
        ("owned", "operand"): "value({})",
        ("scalar", "operand"): "{}",
        ("operand", "scalar"): "{}",
        ("int", "float"): "double({})",
        ("bool", "float"): "double({})",
        ("bool", "int"): "int64_t({})",
        ("ints", "list"): "Dims({})",
        ("list", "ints"): "Ints({})",
        ("empty", "ints"): "Ints({})",
        ("empty", "list"): "{}",
        ("empty", "bag"): "{}",
        ("empty", "tensors"): "{}.span()",
        ("str", "text"): "std::string({})",
        ("bag", "tensors"): "{}.span()",
        ("tensors", "bag"): "Bag({})",
        ("held", "tensor"): "tensor_of({}.get())",
        ("held", "owned"): "Tensor::share(tensor_of({}.get()))",
        ("held", "operand"): "{}.get()",
        ("held", "scalar"): "{}.get()",
        ("scalar", "float"): "as_float({})",
        ("operand", "float"): "as_float({})",
    }
    if have in ("int", "float", "bool") and wanted in ("operand", "scalar"):
        return f"value({CPP[have]}({value.code}))"
    rule = rules.get((have, wanted))
    return rule.format(value.code) if rule else None


def absent(wanted: str) -> str | None:
    """Return what None is for ``wanted``."""
    base = wanted.removesuffix("?")
    if base in BY_VALUE:
        return "none()"
    if base == "owned":
        return "Tensor()"
    if base == "tensor":
        return "nullptr"
    return "std::nullopt" if wanted.endswith("?") else None


def literal(value: object) -> Typed:
    """Return a Python constant in C++."""
    if value is None:
        return Typed("none()", "none")
    if isinstance(value, bool):
        return Typed("true" if value else "false", "bool")
    if isinstance(value, int):
        return Typed(f"int64_t({value})", "int")
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            text = "NAN" if value != value else "INFINITY" if value > 0 else "-INFINITY"
            return Typed(f"double({text})", "float")
        return Typed(repr(value), "float")
    if isinstance(value, str):
        return Typed(json.dumps(value), "str")
    if isinstance(value, tuple):
        return Typed("Dims{" + ", ".join(str(int(item)) for item in value) + "}", "list")
    raise TypeError(f"no C++ for the constant {value!r}")
