"""The operators: a module for each family, in folders. `all()` imports them and iterates."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from plait_ops.spec import REGISTRY, Operator

__all__ = ["all", "find", "load"]


def load() -> None:
    """Import all families; `all` and `find` do it."""
    names = [info.name for info in pkgutil.walk_packages(__path__, f"{__name__}.")]
    for name in sorted(names, key=lambda name: name.rpartition(".")[2]):
        importlib.import_module(name)


def all() -> Iterator[Operator]:
    """Iterate over all operators, in order of definition; needs nothing compiled, and no NumPy."""
    load()
    yield from list(REGISTRY.values())


def find(name: str) -> Operator:
    """Return the operator called ``name``, for example ``max.dim``; ``KeyError`` if there is none."""
    load()
    return REGISTRY[name]
