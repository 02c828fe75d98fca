"""The current call of the words, and their errors."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

from plait_ops.value_types import Shape

__all__ = ["Call", "current", "Fault", "LIMIT", "MAX_DIMS", "Shape", "calling", "fail", "show"]

MAX_DIMS = 64
LIMIT = 2**63


class Fault(Exception):
    """An error of the call: `kind` is the name of the exception that the host raises."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind, self.text = kind, text


@dataclasses.dataclass
class Call:
    name: str
    values: dict[str, Any]
    warnings: list[str] = dataclasses.field(default_factory=list)


_calls: list[Call] = []


@contextlib.contextmanager
def calling(name: str, values: dict[str, Any]) -> Iterator[None]:
    """A context manager in which words fail and make results for a call of ``name``."""
    _calls.append(Call(name, values))
    try:
        yield
    finally:
        _calls.pop()


def current() -> Call:
    """Return the current call of the words."""
    return _calls[-1]


def fail(kind: str, text: str) -> None:
    name = _calls[-1].name if _calls else "?"
    raise Fault(kind, f"{name}: {text}")


def show(shape: Shape) -> str:
    return str(tuple(int(size) for size in shape))
