"""Complex parameters: optimizers see their real and imaginary parts as elements of their own.

The state keeps the shape and the dtype of the parameter, as PyTorch's does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import plait_abi
from plait_optim._arrays import sort_of

__all__ = ["any_complex", "is_complex", "real", "real_parts"]


def is_complex(array: Any) -> bool:
    """Return whether an array is a complex tensor of plait's."""
    return sort_of(type(array)) == "plait" and array.dtype.is_complex


def any_complex(groups: Sequence[dict[str, Any]]) -> bool:
    """Return whether a group has a complex parameter."""
    return any(is_complex(param) for group in groups for param in group["params"])


def real(array: Any) -> Any:
    """Return a complex tensor as a real one on the same memory; other arrays as they are."""
    if not is_complex(array):
        return array
    return plait_abi.operator("view_as_real")(array.detach())


def _complex(array: Any, shape: tuple[int, ...]) -> Any:
    """Return a new state of a real tensor's shape as a complex one."""
    is_state = sort_of(type(array)) == "plait" and tuple(array.shape) == (*shape, 2)
    return plait_abi.operator("view_as_complex")(array) if is_state else array


@contextmanager
def real_parts(
    params: list[Any], grads: list[Any], states: list[dict[str, Any]]
) -> Iterator[tuple[list[Any], list[Any], list[dict[str, Any]]]]:
    """A context manager with parameters, gradients and states as real arrays.

    New values of the states are stored as complex ones at its end.
    """
    parts = [
        {name: real(value) for name, value in state.items()} if is_complex(param) else state
        for param, state in zip(params, states, strict=True)
    ]
    before = [dict(part) for part in parts]
    yield [real(param) for param in params], [real(grad) for grad in grads], parts
    for param, state, part, old in zip(params, states, parts, before, strict=True):
        if part is not state:
            shape = tuple(param.shape)
            new = {name: value for name, value in part.items() if value is not old.get(name)}
            state.update({name: _complex(value, shape) for name, value in new.items()})
