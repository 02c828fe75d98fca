"""The module path in an error: where in the model it happened.

Each module that an exception leaves through extends one note on it, so that the user reads::

    ShapeError: linear: ...
    in module Net.head.fc: Linear(in_features=4, out_features=2, bias=True)

Nothing is done until there is an exception. Python 3.10 has no notes: the text stays as it is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

__all__ = ["note_module"]

_LONGEST = 200


class _Module(Protocol):
    """What these functions use of a `Module`."""

    @property
    def _modules(self) -> Mapping[str, Any]: ...

    def named_modules(self) -> Iterator[tuple[str, Any]]: ...


class _Place(NamedTuple):
    """What the last module wrote: who it was, the path from it down, and where the note is."""

    module: _Module
    path: str
    description: str
    number: int


def note_module(error: Any, module: _Module) -> None:
    """Say on ``error`` that it passed through ``module``."""
    if not hasattr(error, "add_note") or isinstance(error, RecursionError):
        return
    place: _Place | None = getattr(error, "__plait_place__", None)
    if place is None:
        path, description = "", _describe(module)
        error.add_note("")
        index = len(error.__notes__) - 1
    elif place.module is module:  # forward called super().__call__ or the like
        return
    else:
        name = _name_within(module, place.module)
        path = f".{name}{place.path}" if name else f" > {type(place.module).__name__}{place.path}"
        description, index = place.description, place.number
    notes = error.__notes__
    if index < len(notes):
        notes[index] = f"in module {type(module).__name__}{path}{description}"
    with contextlib.suppress(AttributeError):  # an exception type with __slots__
        error.__plait_place__ = _Place(module, path, description, index)


def _describe(module: _Module) -> str:
    """The module's own arguments, if they fit a line."""
    try:
        text = "" if module._modules else repr(module)
    except Exception:  # the error on its way is the one to see
        return ""
    return "" if "\n" in text or len(text) > _LONGEST else f": {text}"


def _name_within(parent: _Module, child: _Module) -> str:
    try:
        return next((name for name, each in parent.named_modules() if each is child), "")
    except Exception:  # a subclass may break the walk: its error must not hide the one on its way
        return ""
