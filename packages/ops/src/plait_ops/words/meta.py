"""Tensors without values, and shape functions run on them."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from plait_ops.words.calling import calling
from plait_ops.words.strides import contiguous_strides

__all__ = ["Meta", "Size", "infer"]


class Size(tuple[int, ...]):
    """A shape that behaves as in C++: it can be added to lists and compared with them."""

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


@dataclasses.dataclass
class Meta:
    """A tensor without values; a 0-d one may be a number of the host."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    strides: tuple[int, ...] | None = None
    offset: int = 0
    wrapped_number: bool = False

    def __post_init__(self) -> None:
        self.shape = Size(self.shape)
        self.strides = Size(
            contiguous_strides(self.shape) if self.strides is None else self.strides
        )

    @property
    def ndim(self) -> int:
        return len(self.shape)


def infer(function: Callable[..., Any], name: str, values: dict[str, Any]) -> list[Any]:
    """Run a shape function on values whose tensors are `Meta`; return its results."""
    values = {key: Size(value) if type(value) is tuple else value for key, value in values.items()}
    with calling(name, values):
        parameters = inspect.signature(function).parameters
        results = function(**{key: value for key, value in values.items() if key in parameters})
    return list(results) if isinstance(results, (tuple, list)) else [results]
