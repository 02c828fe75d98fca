"""Functions of layers, which are looked up when they are called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from plait_nn import functional as F

__all__ = ["LookedUp", "Unchanged"]


class LookedUp:
    """The function of a layer by its name in `plait_nn.functional`.

    It is looked up at each call, so that a function that a program puts into `functional` counts
    for layers too, as it does in PyTorch.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        return getattr(F, self._name)


class Unchanged:
    """Whether layers call the functions that they called when they were imported.

    Args:
        names: the name of the function in `plait_nn.functional` for each type of layer.
    """

    def __init__(self, names: Mapping[type, str]) -> None:
        self._own = {kind: (name, getattr(F, name)) for kind, name in names.items()}

    def __call__(self, layers: Iterable[object]) -> bool:
        """Return False if a program has put a function of its own in the place of one."""
        found = (self._own[type(layer)] for layer in layers)
        return all(getattr(F, name) is own for name, own in found)
