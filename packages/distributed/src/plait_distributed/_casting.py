"""A module that computes in another dtype than its parameters have."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any


def map_tensors(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return containers with changed tensors."""
    if hasattr(value, "requires_grad") and hasattr(value, "is_floating_point"):
        return change(value)
    if isinstance(value, dict):
        return {key: map_tensors(each, change) for key, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(map_tensors(each, change) for each in value))
    if isinstance(value, (list, tuple)):
        return type(value)(map_tensors(each, change) for each in value)
    return value


@contextlib.contextmanager
def casting(module: Any, dtypes: Any) -> Iterator[Callable[[Any], Any]]:
    """A context in which a module's parameters and buffers are cast ones, with their history.

    Args:
        module: whose parameters are replaced meanwhile; gradients go to the real ones.
        dtypes: with `param_dtype` and `buffer_dtype`; None: their own.

    Returns:
        What casts inputs.
    """
    before: list[tuple[dict[str, Any], str, Any]] = []
    cast: dict[int, Any] = {}

    def replace(table: dict[str, Any], dtype: Any) -> None:
        for name, value in table.items():
            if dtype is None or value is None or not value.is_floating_point():
                continue
            before.append((table, name, value))
            if id(value) not in cast:
                cast[id(value)] = value.to(dtype)
            table[name] = cast[id(value)]

    def inputs(values: Any) -> Any:
        dtype = dtypes.param_dtype
        if dtype is None:
            return values
        return map_tensors(values, lambda x: x.to(dtype) if x.is_floating_point() else x)

    try:
        for each in module.modules():
            replace(each._parameters, dtypes.param_dtype)
            replace(each._buffers, dtypes.buffer_dtype)
        yield inputs
    finally:
        for table, name, value in before:
            _keep(value, table[name])
            table[name] = value


def _keep(value: Any, now: Any) -> None:
    """Bring what the module wrote into a buffer's copy back, as running statistics."""
    if not value.requires_grad and not now.requires_grad and now._version:
        value.copy_(now)
