"""The call on whose behalf words work: how they fail and see tensors without values."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from plait_ops.value_types import Shape
from plait_ops.words.declaring import word

__all__ = [
    "Call",
    "current",
    "Fault",
    "LIMIT",
    "MAX_DIMS",
    "Meta",
    "Shape",
    "Size",
    "calling",
    "contiguous_strides",
    "fail",
    "infer",
    "show",
]

MAX_DIMS = 64
LIMIT = 2**63


class Fault(Exception):
    """An error of the call: `kind` is the name of the exception that the host raises."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind, self.text = kind, text


class Size(tuple[int, ...]):
    """A shape as C++ has it: it joins with lists and equals them."""

    def __add__(self, other: Sequence[int]) -> Size:  # type: ignore[override]
        return Size(tuple(self) + tuple(other))

    def __radd__(self, other: Sequence[int]) -> Size:
        return Size(tuple(other) + tuple(self))

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, (list, tuple)) else False

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __getitem__(self, at: Any) -> Any:
        value = tuple(self)[at]
        return Size(value) if isinstance(at, slice) else value

    def __repr__(self) -> str:
        return repr(tuple(self))


@word()
def contiguous_strides(shape: Shape) -> list[int]:
    """Return the strides of C order."""
    strides, step = [0] * len(shape), 1
    for i in reversed(range(len(shape))):
        strides[i] = step
        step *= max(shape[i], 1)
    return strides


@dataclasses.dataclass
class Meta:
    """A tensor without values."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    strides: tuple[int, ...] | None = None
    offset: int = 0

    def __post_init__(self) -> None:
        self.shape = Size(self.shape)
        self.strides = Size(
            contiguous_strides(self.shape) if self.strides is None else self.strides
        )

    @property
    def ndim(self) -> int:
        return len(self.shape)


@dataclasses.dataclass
class Call:
    name: str
    values: dict[str, Any]


_calls: list[Call] = []


@contextlib.contextmanager
def calling(name: str, values: dict[str, Any]) -> Iterator[None]:
    """Make the words within fail and give results on behalf of the operator ``name``."""
    _calls.append(Call(name, values))
    try:
        yield
    finally:
        _calls.pop()


def current() -> Call:
    """Return the call on whose behalf words work."""
    return _calls[-1]


def fail(kind: str, text: str) -> None:
    name = _calls[-1].name if _calls else "?"
    raise Fault(kind, f"{name}: {text}")


def show(shape: Shape) -> str:
    return str(tuple(int(size) for size in shape))


def infer(function: Callable[..., Any], name: str, values: dict[str, Any]) -> list[Any]:
    """Run a shape function on values whose tensors are `Meta`; return its results."""
    values = {key: Size(value) if type(value) is tuple else value for key, value in values.items()}
    with calling(name, values):
        wanted = inspect.signature(function).parameters
        made = function(**{key: value for key, value in values.items() if key in wanted})
    return list(made) if isinstance(made, (tuple, list)) else [made]
