"""Calls of operators for the functions of the standard."""

from __future__ import annotations

import functools
from typing import Any

from plait_abi import binding
from plait_core._core import Tensor


@functools.cache
def _operator(name: str) -> Any:
    return binding.operator(name)


def call(operator: str, *args: Any, **kwargs: Any) -> Tensor:
    """Call an operator of the registry by its name."""
    result: Tensor = _operator(operator)(*args, **kwargs)
    return result


def several(operator: str, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
    """Call an operator that has more than one result."""
    results: tuple[Tensor, ...] = tuple(_operator(operator)(*args, **kwargs))
    return results


def wrap_axis(name: str, axis: int, ndim: int) -> int:
    """Return `axis` counted from the front.

    Raises:
        IndexError: if there is no such axis.
    """
    if not -ndim <= axis < ndim:
        raise IndexError(f"{name}: `axis` must be in [{-ndim}, {ndim - 1}], got {axis}")
    return axis % ndim if ndim else 0


def axes_of(name: str, axis: int | tuple[int, ...] | None, ndim: int) -> tuple[int, ...]:
    """Return one axis, several or all (None) as a tuple of axes counted from the front."""
    if axis is None:
        return tuple(range(ndim))
    listed = (axis,) if isinstance(axis, int) else tuple(axis)
    axes = tuple(wrap_axis(name, each, ndim) for each in listed)
    if len(set(axes)) != len(axes):
        raise ValueError(f"{name}: `axis` must not repeat an axis, got {axis}")
    return axes
