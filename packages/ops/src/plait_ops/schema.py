"""The schema grammar of docs/design/0003, for the emitters and the tests.

The runtime parses the same strings again in C++; `tests/test_schema.py` compares the two.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from typing import Any

__all__ = ["Argument", "Result", "Schema", "SchemaError", "parse"]

BASES = (
    "Tensor|Scalar",
    "Tensor",
    "Scalar",
    "int",
    "float",
    "bool",
    "str",
    "dtype",
    "device",
    "Generator",
)
DTYPE_NAMES = ("bool", "uint8", "int32", "int64", "float32", "float64")
_TYPE = re.compile(
    r"(?P<base>" + "|".join(re.escape(base) for base in BASES) + r")"
    r"(?:\((?P<alias>[a-z])\))?(?P<writes>!)?(?P<inner>\?)?(?P<list>\[(?P<length>\d*)\])?"
    r"(?P<all>!)?"
    r"(?P<optional>\?)?(?P<varargs>\*)?"
)
_ITEM = re.compile(
    _TYPE.pattern + r" (?P<name>[A-Za-z_]\w*)(?:\|(?P<second>[A-Za-z_]\w*))?(?:=(?P<default>.+))?"
)
# a second name of arguments in every operator, as in PyTorch, and the names that it stands for
_OTHER_NAMES = {
    "input": ("self", "A", "x"),
    **dict.fromkeys(("x", "a", "x1"), ("self", "input", "A")),
    "x2": ("other",),
    "axis": ("dim",),
    "keepdims": ("keepdim",),
}
_SELF = re.compile(r"(\(Tensor(?:\(\w\)!?)?(?:\|Scalar)? self)(?=[,)])")
_HEAD = re.compile(
    r"(?P<base>[A-Za-z_]\w*)(?:\.(?P<overload>\w+))?\((?P<items>.*)\) -> (?P<results>.+)"
)


class SchemaError(ValueError):
    """A schema string that does not follow the grammar."""


@dataclasses.dataclass(frozen=True)
class Argument:
    """One argument: ``type`` is the base type, with ``[]`` for lists."""

    name: str
    type: str
    second: str | None = None
    optional: bool = False
    optional_items: bool = False
    writes: bool = False
    alias: str | None = None
    keyword_only: bool = False
    varargs: bool = False
    length: int | None = None
    has_default: bool = False
    default: Any = None

    @property
    def is_tensor(self) -> bool:
        """Whether the argument has a position among the bits of `need` (see cpp/words.hpp)."""
        return self.type in ("Tensor", "Tensor|Scalar", "Tensor[]")


@dataclasses.dataclass(frozen=True)
class Result:
    """One result: ``Tensor`` or ``Tensor[]``; `name` is empty if the schema gives it none."""

    type: str
    alias: str | None = None
    writes: bool = False
    name: str = ""


@dataclasses.dataclass(frozen=True)
class Schema:
    """A parsed schema; ``text`` is what it was parsed from."""

    text: str
    base: str
    overload: str | None
    arguments: tuple[Argument, ...]
    results: tuple[Result, ...]

    @property
    def name(self) -> str:
        return f"{self.base}.{self.overload}" if self.overload else self.base

    @property
    def identifier(self) -> str:
        """The name as an identifier in C++ and Python: ``max_dim``."""
        return self.name.replace(".", "_")

    def argument(self, name: str) -> Argument:
        """Return the argument called ``name``."""
        for argument in self.arguments:
            if argument.name == name:
                return argument
        raise SchemaError(f"{self.name}: there is no argument `{name}` in `{self.text}`")

    def position(self, name: str) -> int:
        """Return the position of the argument called ``name``."""
        return self.arguments.index(self.argument(name))

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return a value for each argument, as the runtime's binding does; ``TypeError`` if they do
        not fit.
        """
        values: dict[str, Any] = {}
        for at, value in enumerate(args):
            positional = [argument for argument in self.arguments if not argument.keyword_only]
            if at < len(positional) and positional[at].varargs and isinstance(value, int):
                values[positional[at].name] = tuple(args[at:])
                break
            if at >= len(positional):
                raise TypeError(
                    f"{self.base}: at most {len(positional)} positional arguments, got {len(args)}"
                )
            values[positional[at].name] = value
        for key, value in kwargs.items():
            matches = [a for a in self.arguments if key in (a.name, a.second)]
            own = _OTHER_NAMES.get(key, ())
            matches = matches or [a for a in self.arguments if a.name in own]
            if not matches:
                raise TypeError(f"{self.base}: unexpected keyword `{key}`")
            if matches[0].name in values:
                raise TypeError(f"{self.base}: `{key}` was given twice")
            values[matches[0].name] = value
        for argument in self.arguments:
            if argument.name not in values:
                if not argument.has_default:
                    raise TypeError(f"{self.base}: missing argument `{argument.name}`")
                values[argument.name] = argument.default
            elif argument.type == "int[]" and isinstance(values[argument.name], int):
                values[argument.name] = (values[argument.name],) * (argument.length or 1)
        return {argument.name: values[argument.name] for argument in self.arguments}


def _split(text: str) -> list[str]:
    """Split at the commas outside of brackets and strings."""
    parts, depth, quoted, start = [], 0, False, 0
    for at, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        elif not quoted and letter in "([":
            depth += 1
        elif not quoted and letter in ")]":
            depth -= 1
        elif letter == "," and depth == 0 and not quoted:
            parts.append(text[start:at].strip())
            start = at + 1
    if text[start:].strip():
        parts.append(text[start:].strip())
    return parts


def _default(text: str, argument_type: str, length: int | None) -> Any:
    if argument_type == "dtype" and text in DTYPE_NAMES:
        return text
    if text in ("inf", "-inf"):
        return float(text)
    value = ast.literal_eval(text)
    if length and isinstance(value, int):
        return (value,) * length
    if argument_type == "float" and isinstance(value, int):
        return float(value)
    return value


def _argument(text: str, keyword_only: bool, schema: str) -> Argument:
    match = _ITEM.fullmatch(text)
    if not match:
        raise SchemaError(f"schema `{schema}`: cannot read the argument `{text}`")
    part = match.groupdict()
    is_list = part["list"] is not None
    length = int(part["length"]) if part["length"] else None
    kind = part["base"] + ("[]" if is_list else "")
    default = part["default"]
    return Argument(
        name=part["name"],
        type=kind,
        second=part["second"],
        optional=bool(part["optional"]) or (bool(part["inner"]) and not is_list),
        optional_items=bool(part["inner"]) and is_list,
        writes=bool(part["writes"] or part["all"]),
        alias=part["alias"],
        keyword_only=keyword_only,
        varargs=bool(part["varargs"]),
        length=length,
        has_default=default is not None,
        default=None if default is None else _default(default, kind, length),
    )


def _result(text: str, schema: str) -> Result:
    match = _TYPE.match(text)
    if (
        not match
        or match["base"] != "Tensor"
        or not re.fullmatch(r"( [A-Za-z_]\w*)?", text[match.end() :])
    ):
        raise SchemaError(f"schema `{schema}`: cannot read the result `{text}`")
    return Result(
        "Tensor[]" if match["list"] is not None else "Tensor",
        match["alias"],
        bool(match["writes"]),
        text[match.end() :].strip(),
    )


def parse(text: str) -> Schema:
    """Parse a schema string.

    A first tensor called ``self`` is also called ``input``, as functions have it.

    >>> [a.second for a in parse("sum(Tensor self, int[]? dim|axis=None) -> Tensor").arguments]
    ['input', 'axis']
    """
    if not re.search(r"\binput\b", text):
        text = _SELF.sub(r"\1|input", text)
    head = _HEAD.fullmatch(text)
    if not head:
        raise SchemaError(f"schema `{text}`: expected `name(arguments) -> results`")
    arguments: list[Argument] = []
    keyword_only = False
    for item in _split(head["items"]):
        if item == "*":
            keyword_only = True
        else:
            arguments.append(_argument(item, keyword_only, text))
    results = head["results"].strip()
    inner = _split(results[1:-1]) if results.startswith("(") else [results]
    names = [argument.name for argument in arguments]
    if len(set(names)) != len(names):
        raise SchemaError(f"schema `{text}`: an argument name stands twice")
    return Schema(
        text,
        head["base"],
        head["overload"],
        tuple(arguments),
        tuple(_result(r, text) for r in inner),
    )
