"""The modules of multiprocessing under this package's name, if it has no module of that name."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import multiprocessing
import sys
from collections.abc import Sequence
from types import ModuleType

_OURS = __name__.rpartition(".")[0] + "."


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """A module finder that returns multiprocessing's modules for names in this package."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        name = fullname.removeprefix(_OURS)
        # `spawn` is a function here; names with an underscore are private.
        if name == fullname or name == "spawn" or name.startswith("_"):
            return None
        if importlib.util.find_spec(f"{multiprocessing.__name__}.{name}") is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        real = importlib.import_module(multiprocessing.__name__ + "." + name.removeprefix(_OURS))
        # the import system returns the entry of sys.modules, not the empty module that it made
        sys.modules[name] = real


def install() -> None:
    """Add the finder after the others."""
    sys.meta_path.append(_Finder())
