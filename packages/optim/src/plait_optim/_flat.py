"""All parameters as one vector, in the arithmetic of their own library.

For optimizers that need more than one fused pass. The arrays must be of one library that has
``concatenate`` and arithmetic: NumPy's, torch's, plait's.
"""

from __future__ import annotations

from typing import Any

import plait_abi
from plait_optim._arrays import exposed, filled_like, library_function, type_name
from plait_optim._component import operator

__all__ = [
    "add",
    "assign",
    "check_arithmetic",
    "dot",
    "joined",
    "largest",
    "loaded",
    "own_gradients",
    "total",
    "zeros",
]


def check_arithmetic(optimizer: object, params: list[Any]) -> None:
    """Refuse arrays that can't be computed with."""
    for param in params:
        if library_function(type(param), "concatenate") is None:
            raise TypeError(
                f"{type(optimizer).__name__} computes with its parameters, and there is no "
                f"`concatenate` beside {type_name(param)}: give it arrays of NumPy, torch or plait"
            )


def joined(arrays: list[Any]) -> Any:
    """Return a copy of all elements, in one dimension."""
    join = library_function(type(arrays[0]), "concatenate")
    return join([array.reshape(-1) for array in exposed(arrays)])


def total(params: list[Any]) -> int:
    """Return how many elements there are."""
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
    for param, part in zip(exposed(params), _parts(flat, params), strict=True):
        param += factor * part


def assign(params: list[Any], flat: Any) -> None:
    """Write a vector into the parameters."""
    for param, part in zip(exposed(params), _parts(flat, params), strict=True):
        param[...] = part


def dot(a: Any, b: Any) -> float:
    """Return the inner product of two vectors."""
    return float(a @ b)


def largest(a: Any) -> float:
    """Return the largest magnitude in a vector."""
    return float(abs(a).max()) if a.shape[0] else 0.0


def loaded(params: list[Any], value: Any) -> Any:
    """Return a copy of a saved vector in the library and dtype of the parameters."""
    flat = zeros(params[0], total(params))
    operator("optimizer_state_load")(*exposed([flat, value]))
    return flat


def zeros(param: Any, shape: Any) -> Any:
    """Return zeros of a shape in the library and dtype of a parameter."""
    return library_function(type(param), "zeros")(shape, dtype=param.dtype)


def own_gradients(optimizer: object, params: list[Any], grads: list[Any]) -> list[Any]:
    """Return copies of the gradients, each in the library and dtype of its parameter."""
    copies = []
    for i, (param, grad) in enumerate(zip(params, grads, strict=True)):
        shapes = tuple(param.shape), tuple(grad.shape) if hasattr(grad, "shape") else None
        if shapes[1] is not None and shapes[0] != shapes[1]:
            raise plait_abi.ShapeError(
                f"{type(optimizer).__name__}: `grads[{i}]` must have the shape of `params[{i}]`, "
                f"{shapes[0]}; got {shapes[1]}"
            )
        copy = filled_like(param)
        operator("optimizer_state_load")(*exposed([copy, grad]))
        copies.append(copy)
    return copies
