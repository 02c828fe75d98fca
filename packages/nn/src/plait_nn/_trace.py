"""The path of the module in which an error was raised, as a note on the error.

Each module that an exception passes through extends the note, so that the user reads::

    ShapeError: linear: ...
    in module Net.head.fc: Linear(in_features=4, out_features=2, bias=True)

Nothing is done until there is an exception. Python 3.10 has no notes, so errors are unchanged
there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

__all__ = ["note_module"]

_LONGEST = 200


class _Module(Protocol):
    """The members of `Module` that these functions use."""

    @property
    def _modules(self) -> Mapping[str, Any]: ...

    def named_modules(self) -> Iterator[tuple[str, Any]]: ...


class _Location(NamedTuple):
    """The last module that extended the note: the module, the path below it, and the note's
    position.
    """

    module: _Module
    path: str
    description: str
    number: int


def note_module(error: Any, module: _Module) -> None:
    """Extend the note on ``error``, which passed through ``module``."""
    if not hasattr(error, "add_note") or isinstance(error, RecursionError):
        return
    location: _Location | None = getattr(error, "__plait_location__", None)
    if location is None:
        path, description = "", _describe(module)
        error.add_note("")
        index = len(error.__notes__) - 1
    elif location.module is module:  # forward called super().__call__, for example
        return
    else:
        name = _name_within(module, location.module)
        path = (
            f".{name}{location.path}"
            if name
            else f" > {type(location.module).__name__}{location.path}"
        )
        description, index = location.description, location.number
    notes = error.__notes__
    if index < len(notes):
        notes[index] = f"in module {type(module).__name__}{path}{description}"
    with contextlib.suppress(AttributeError):  # an exception class with __slots__
        error.__plait_location__ = _Location(module, path, description, index)


def _describe(module: _Module) -> str:
    """Return the module's own arguments, if they fit on a line."""
    try:
        text = "" if module._modules else repr(module)
    except Exception:  # the original error must be shown
        return ""
    return "" if "\n" in text or len(text) > _LONGEST else f": {text}"


def _name_within(parent: _Module, child: _Module) -> str:
    try:
        return next((name for name, each in parent.named_modules() if each is child), "")
    except Exception:  # an error in a subclass's methods must not hide the original one
        return ""
