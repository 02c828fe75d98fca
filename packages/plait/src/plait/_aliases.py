"""`plait.nn.functional` is `plait_nn.functional`: the same module object, at any depth.

A finder before the others finds names below ``plait.`` that are aliases of a component. It
puts the real module into ``sys.modules`` under the second name, so that classes exist once and
pickles carry the name of the package.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import CodeType, ModuleType
from typing import Any

from plait_abi.components import DEFAULTS, choose, require

# names below plait. with component and module in it; others have the component's name
_PLACES = {"utils.data": ("data", ""), "utils.checkpoint": ("autograd", ".checkpointing")}
# packages that are not components, so they cannot be replaced
_OUTER = {
    "abi": "plait_abi",
    "mpi": "plait_mpi",
    "onnx": "plait_onnx",
    "ray": "plait_ray",
    "ucx": "plait_ucx",
}
# what some of them need from other projects
_NEEDED = {"mpi": "mpi4py", "onnx": "onnx", "ray": "ray"}
# modules of the component core with a name below plait.
_OF_CORE = ("accelerator", "array_api", "cuda", "fft", "linalg", "sparse", "special", "testing")
# modules of one package, which another package for the same component need not have
_PARTS = {
    "distributions": "plait_nn.distributions",
    "utils.tensorboard": "plait_torch._tensorboard",
}


# what readers of PyTorch's programs import, and what to import here
_ELSEWHERE = {
    "plait.nn.parallel": "DataParallel is plait.nn.DataParallel, DistributedDataParallel is "
    "plait.distributed.DistributedDataParallel",
}


def names() -> list[str]:
    """Return the attributes of `plait` that are other packages."""
    outer = [*(name for name in DEFAULTS if name != "data"), *_OUTER, *_PARTS, *_OF_CORE, "utils"]
    return sorted(name for name in outer if "." not in name)


def is_alias(name: str) -> bool:
    """Return whether ``plait.<name>`` is a package: an alias, or `plait.utils`."""
    return name in names()


def is_installed(name: str) -> bool:
    """Return whether the package of ``plait.<name>`` and what it needs from other projects are
    installed, without importing them.
    """
    real = target(f"plait.{name}")
    if real is None:
        return name == "utils"
    needed = (real.partition(".")[0], _NEEDED.get(name))
    return all(importlib.util.find_spec(each) is not None for each in needed if each)


def target(fullname: str) -> str | None:
    """Return the module of an alias below ``plait.``; None if the name is not an alias."""
    inner = fullname.removeprefix("plait.")
    if inner == fullname:
        return None
    for place, (component, within) in _PLACES.items():
        if inner == place or inner.startswith(place + "."):
            return choose(component) + within + inner[len(place) :]
    for place, real in _PARTS.items():
        if inner == place or inner.startswith(place + "."):
            return real + inner[len(place) :]
    first, dot, rest = inner.partition(".")
    if first in _OUTER:
        return _OUTER[first] + dot + rest
    if first in _OF_CORE:
        return f"{choose('core')}.{inner}"
    if first not in DEFAULTS or first == "data":
        return None
    return choose(first) + dot + rest


def find_module(real: str) -> importlib.machinery.ModuleSpec | None:
    """Return the spec of a module, None if there is none or a package that it is in is missing.

    Nothing is imported: Python before 3.12 asks a finder while the thread holds the lock of all
    imports, and another thread that imports the package needs it.
    """
    name, *rest = real.split(".")
    spec = importlib.util.find_spec(name)
    for inner in rest:
        if spec is None or spec.submodule_search_locations is None:
            return None
        name = f"{name}.{inner}"
        spec = importlib.machinery.PathFinder.find_spec(name, spec.submodule_search_locations)
    return spec


def _is_package(real: str) -> bool:
    """Return whether a module has modules in it; ``python -m`` runs other ones directly."""
    spec = find_module(real) if "." in real else None
    # the import of one that is missing tells what is
    return spec is None or spec.submodule_search_locations is not None


def _packages_of(real: str) -> list[str]:
    """Return the packages that a module is in, the outermost first."""
    parts = real.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


# Without importlib.abc's base classes, whose import takes a tenth of that of plait.
class _Finder:
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, module: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        real = target(fullname)
        if real is None:
            return None
        if fullname in _ELSEWHERE:
            text = f"no module named {fullname!r}; {_ELSEWHERE[fullname]}"
            raise ModuleNotFoundError(text, name=fullname)
        loader: Any = _Loader(real)  # typeshed asks for load_module, the import system does not
        return importlib.util.spec_from_loader(fullname, loader, is_package=_is_package(real))


class _Loader:
    def __init__(self, real: str) -> None:
        self._real = real

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        try:
            # packages first: another thread that imports one may wait for a module in it
            for package in _packages_of(self._real):
                importlib.import_module(package)
            real = importlib.import_module(self._real)
        except ModuleNotFoundError as error:
            inner = name.removeprefix("plait.")
            if inner in _PARTS and error.name == self._real.partition(".")[0]:
                raise _not_installed(self._real) from None
            first = inner.partition(".")[0]
            if first in _OUTER and not str(error.name).startswith("plait"):
                raise _unusable(name, _OUTER[first], error) from None
            if error.name != self._real or "." in self._real:
                raise
            if inner in _OUTER:
                raise _not_installed(self._real) from None
            real = require(inner.replace("utils.", ""))
        if self._real == choose("data"):
            from plait import _batches

            _batches.register(real)
        # the import system returns the entry of sys.modules, not the empty module that it made
        sys.modules[name] = real

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the real module's code, for ``python -m plait.torch``."""
        spec = importlib.util.find_spec(self._real)
        if spec is None:
            raise _not_installed(self._real)
        get_code = getattr(spec.loader, "get_code", None)
        code: CodeType | None = get_code(self._real) if get_code else None
        return code


def _unusable(name: str, module: str, error: ModuleNotFoundError) -> ModuleNotFoundError:
    """Return the error of an installed package that lacks a package of another project."""
    package = module.replace("_", "-")
    return ModuleNotFoundError(
        f"{name}: {package} needs {error.name}, which is not installed (pip install {package} "
        "brings it)",
        name=error.name,
    )


def _not_installed(module: str) -> ModuleNotFoundError:
    package = module.partition(".")[0].replace("_", "-")
    return ModuleNotFoundError(
        f"plait: the package {package} is not installed (pip install {package})", name=module
    )


def install() -> None:
    """Insert the finder before the others, once."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
