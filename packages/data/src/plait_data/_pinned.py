"""Batches in page-locked memory, which an accelerator copies while the host continues."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["PinnedIterator", "has_accelerator", "pinned"]

_LIBRARIES = ("plait_core", "torch")  # those whose tensors have `pin_memory`


def has_accelerator() -> bool:
    """Whether a library of tensors that the program has loaded has an accelerator."""
    accelerators = (getattr(sys.modules.get(name), "accelerator", None) for name in _LIBRARIES)
    return any(each is not None and each.is_available() for each in accelerators)


def pinned(value: Any, device: str = "") -> Any:
    """The value with the tensors of the CPU in pinned memory, in nested containers too.

    A tensor is what has the method ``pin_memory``; other objects with that method do it themselves.

    Args:
        value: a batch.
        device: the device that will copy; empty for the current one.
    """
    if callable(getattr(value, "pin_memory", None)):
        if not getattr(value, "is_cpu", True):
            return value  # it is where it has to go
        return value.pin_memory(device) if device else value.pin_memory()
    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, tuple):
        parts = [pinned(each, device) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, Mapping):
        return _refilled(value, {key: pinned(each, device) for key, each in value.items()})
    if isinstance(value, Sequence):
        return _refilled(value, dict(enumerate(pinned(each, device) for each in value)))
    return value


def _refilled(container: Any, items: dict[Any, Any]) -> Any:
    """A copy of the container with these items; the container's type is kept if it can be."""
    try:
        clone = copy.copy(container)
        for key, item in items.items():
            clone[key] = item
        return clone
    except TypeError:  # one that cannot be written to
        return dict(items) if isinstance(container, Mapping) else list(items.values())


class PinnedIterator(Iterator[Any]):
    """An iterator over the batches of another, pinned."""

    __slots__ = ("_batches", "_device")

    def __init__(self, batches: Iterator[Any], device: str) -> None:
        self._batches = batches
        self._device = device

    def __next__(self) -> Any:
        return pinned(next(self._batches), self._device)
