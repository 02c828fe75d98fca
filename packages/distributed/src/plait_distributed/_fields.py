"""Checks of the JSON messages of a job's processes: also one that knows the secret may be
of another version, and must not end a thread that others wait for.
"""

from __future__ import annotations

import types
import typing
from typing import Any, TypeVar

T = TypeVar("T")


def read_fields(kind: type[T], message: Any) -> T:
    """Return the dataclass whose fields a message has.

    Raises:
        ValueError: a field is missing, unknown or of another type.
    """
    if not isinstance(message, dict):
        raise ValueError(f"the fields of {kind.__name__} are required, got {message!r}")
    hints = typing.get_type_hints(kind)
    for name, value in message.items():
        if name not in hints or not _fits(value, hints[name]):
            raise ValueError(f"{kind.__name__} has no field {name} that may be {value!r}")
    try:
        return kind(**message)
    except TypeError as error:
        raise ValueError(str(error)) from None


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value of JSON, where tuples are lists, has a type."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, each) for each in inner)
    if origin is list or inner[1:] == (Ellipsis,):
        return isinstance(value, (list, tuple)) and all(_fits(each, inner[0]) for each in value)
    if origin is tuple:
        is_list = isinstance(value, (list, tuple)) and len(value) == len(inner)
        return is_list and all(map(_fits, value, inner))
    return type(value) is hint
