"""All parameters, arrays of one library, as one vector."""

from __future__ import annotations

from typing import Any

from plait_optim._arithmetic import wide, widened, zeros
from plait_optim._arrays import exposed, library_function, load

__all__ = [
    "add",
    "assign",
    "dot",
    "joined",
    "largest",
    "loaded",
    "total",
]


def joined(arrays: list[Any]) -> Any:
    """Return a copy of all elements as a vector."""
    join = library_function(type(arrays[0]), "concatenate")
    [own] = exposed(arrays)
    return join([wide(array).reshape(-1) for array in own])


def total(params: list[Any]) -> int:
    """Return the number of elements."""
    count = 0
    for param in params:
        size = 1
        for length in param.shape:
            size *= int(length)
        count += size
    return count


def _parts(flat: Any, params: list[Any]) -> list[Any]:
    parts, start = [], 0
    for param in params:
        end = start + total([param])
        parts.append(flat[start:end].reshape(tuple(param.shape)))
        start = end
    return parts


def add(params: list[Any], flat: Any, factor: float) -> None:
    """Add ``factor`` times a vector to the parameters, in place."""
    for param, part in zip(params, _parts(flat, params), strict=True):
        with widened(param) as [values]:
            values += factor * part


def assign(params: list[Any], flat: Any) -> None:
    """Write a vector into the parameters."""
    [targets] = exposed(params)
    for target, part in zip(targets, _parts(flat, params), strict=True):
        target[...] = part


def dot(a: Any, b: Any) -> float:
    """Return the inner product of two vectors."""
    return float(a @ b)


def largest(a: Any) -> float:
    """Return the largest absolute value in a vector."""
    return float(abs(a).max()) if a.shape[0] else 0.0


def loaded(params: list[Any], value: Any) -> Any:
    """Return a copy of a saved vector in the library and dtype of the parameters."""
    flat = zeros(params[0], total(params))
    load(flat, value)
    return flat
