"""The method `__setstate__` of loaders and samplers, which only unpickling sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["OnUnpickling"]


class OnUnpickling:
    """A method that an object has while it has no attributes, as pickle and copy make it.

    Later the object does not have it: PyTorch's loaders and samplers have no `__setstate__`, and an
    adapter that passes unknown attributes on to a loader must be restored itself.

    Example:
        >>> from plait_data import DataLoader
        >>> hasattr(DataLoader([1, 2]), "__setstate__")
        False
    """

    def __init__(self, function: Callable[[Any, dict[str, Any]], None]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self.function
        if instance.__dict__:
            raise AttributeError("__setstate__: only an object without attributes is restored")
        return self.function.__get__(instance, owner)
