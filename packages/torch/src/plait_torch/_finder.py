"""The finder that answers for `torch` and every name below it."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

from plait_torch import _places
from plait_torch._facade import Facade, MissingModule, explain, resolve
from plait_torch._missing import advice
from plait_torch._version import __version__

__all__ = ["Finder"]

_HERE = os.path.dirname(os.path.abspath(__file__))


class Finder(importlib.metadata.DistributionFinder):
    """Maps the names of PyTorch's modules to plait's, and knows the distribution `torch`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "torch" and not fullname.startswith("torch."):
            return None
        sources = _places.sources(fullname)
        if sources is None:
            if advice(fullname):
                raise MissingModule(explain(fullname), name=fullname)
            return None
        spec = importlib.util.spec_from_loader(fullname, _Loader(sources), is_package=True)
        if spec is not None and fullname == "torch":
            spec.origin = os.path.join(_HERE, "__init__.py")
        return spec

    def find_distributions(
        self, context: importlib.metadata.DistributionFinder.Context | None = None
    ) -> Iterable[importlib.metadata.Distribution]:
        if context is None or context.name in (None, "torch"):
            return [_Distribution()]
        return []


def _is_alias(sources: tuple[str, ...]) -> bool:
    """Tell whether the torch module is a module of plait's itself, and no facade of additions."""
    own = sources[0].startswith("plait_torch.") and ":" not in sources[0]
    return len(sources) == 1 and not own


class _Loader(importlib.abc.Loader):
    def __init__(self, sources: tuple[str, ...]) -> None:
        self._sources = sources

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        if _is_alias(self._sources):
            return None
        facade = Facade(spec.name, self._sources)
        facade.__file__ = os.path.join(_HERE, "__init__.py")
        return facade

    def exec_module(self, module: ModuleType) -> None:
        if _is_alias(self._sources):
            # the import system returns what stands here, not the empty module it made
            sys.modules[module.__name__] = resolve(self._sources[0])
        elif module.__name__ in _places.LOOKED_THROUGH:
            for name in dir(module):
                getattr(module, name)  # a facade keeps what it found


class _Distribution(importlib.metadata.Distribution):
    """What `importlib.metadata` says of the distribution `torch`."""

    def read_text(self, filename: str) -> str | None:
        if filename == "METADATA":
            return f"Metadata-Version: 2.1\nName: torch\nVersion: {__version__}\n"
        return None

    def locate_file(self, path: Any) -> Any:
        return os.path.join(_HERE, str(path))
