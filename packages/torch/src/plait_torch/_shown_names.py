"""What classes and functions of plait say of themselves while `torch` means plait.

`torch.nn.Linear` is `plait_nn._linear.Linear`, and its `__module__` is "torch.nn.modules.linear",
as programs, pickles and lists of allowed classes expect. The table `shown_names.json` says for each
module of PyTorch which objects it defines, and where plait has them. An object gets its name when
the module that defines it has been imported, and its own name back when `torch` is PyTorch again.
"""

from __future__ import annotations

import functools
import importlib
import importlib.machinery
import json
import pathlib
import sys
import typing
from collections import defaultdict
from types import ModuleType
from typing import Any, NamedTuple

from plait_abi import origins

__all__ = [
    "Shown",
    "apply",
    "bind",
    "functions",
    "homes",
    "import_modules",
    "source_of",
    "table",
    "unbind",
    "watch",
    "with_names",
]

_bound = False
_applied: list[Any] = []


class Shown(NamedTuple):
    """An object of plait, and its name in PyTorch.

    Attributes:
        path: the dotted name in the module of plait that defines it.
        module, qualname: what the object says.
    """

    path: str
    module: str
    qualname: str


@functools.cache
def _file() -> Any:
    text = pathlib.Path(__file__).with_name("shown_names.json").read_text(encoding="utf-8")
    return json.loads(text)


@functools.cache
def table() -> dict[str, dict[str, tuple[str, str]]]:
    """Return by module of PyTorch and name what is there: the module of plait, and the path in it.

    Example:
        >>> from plait_torch._shown_names import table
        >>> table()["torch.nn.modules.linear"]["Bilinear"]
        ('plait_nn._linear', 'Bilinear')
    """
    result: dict[str, Any] = {}
    for module, places in _file()["modules"].items():
        names = result[module] = {}
        for home, entries in places.items():
            for entry in entries.split():
                path, _, qualname = entry.partition("=")
                names[qualname or path] = home, path
    return result


@functools.cache
def homes() -> dict[str, list[Shown]]:
    """Return the objects that get names, by the module of plait that defines them.

    Example:
        >>> from plait_torch._shown_names import homes
        >>> homes()["plait_nn._parameter"][0]
        Shown(path='Buffer', module='torch.nn.parameter', qualname='Buffer')
    """
    result = defaultdict(list)
    for module, names in table().items():
        for qualname, (home, path) in names.items():
            result[home].append(Shown(path, module, qualname))
    return dict(result)


# ---- giving the names


def apply(home: str) -> None:
    """Give the objects that a module defines their names, if `torch` means plait."""
    module = sys.modules.get(home)
    if not _bound or module is None:
        return
    for shown in homes().get(home, ()):
        value = _found(module, shown.path)
        if value is not None:
            _keep_annotations(value, home)
            origins.rename(value, shown.module, shown.qualname)
            _applied.append(value)


def _found(module: ModuleType, path: str) -> Any:
    """Return what a module holds under a dotted name; None if it is not there yet."""
    first, *rest = path.split(".")
    result = module.__dict__.get(first)
    for part in rest:
        result = getattr(result, part, None)
    return result


_annotations: list[tuple[type, dict[str, Any]]] = []


def _keep_annotations(value: Any, home: str) -> None:
    """Let annotations that are texts mean what they mean in the module of plait.

    `typing.get_type_hints` evaluates texts in the module that a class names as its own.
    """
    if not isinstance(value, type):
        return
    own = getattr(value, "__annotations__", None)
    if own and any(isinstance(each, str) for each in own.values()):
        _annotations.append((value, own))
        value.__annotations__ = {
            name: typing.ForwardRef(each, module=home, is_class=True)
            if isinstance(each, str)
            else each
            for name, each in own.items()
        }


def bind() -> None:
    """Give the names to what is imported, and from now on to what will be."""
    global _bound
    _bound = True
    for home in homes():
        apply(home)


def unbind() -> None:
    """Restore the names before `bind`."""
    global _bound
    _bound = False
    for value in _applied:
        origins.restore(value)
    for kind, own in _annotations:
        kind.__annotations__ = own
    _applied.clear()
    _annotations.clear()


def watch(spec: importlib.machinery.ModuleSpec | None) -> None:
    """Let the objects of a module of plait get their names after its import."""
    loader: Any = getattr(spec, "loader", None)
    if loader is None:
        return
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        apply(module.__name__)

    loader.exec_module = exec_module


# ---- the modules that the names are in


def import_modules() -> None:
    """Import the modules of PyTorch whose names loaded objects say, as `import torch` does there.

    `inspect` and others look for them in `sys.modules`.
    """
    for home, entries in homes().items():
        if home in sys.modules:
            for module in {each.module for each in entries} - set(sys.modules):
                importlib.import_module(module)


def source_of(module: str) -> str | None:
    """Return the texts of the modules of plait that define a module of PyTorch, for `inspect`."""
    places = dict.fromkeys(home for home, _ in table().get(module, {}).values())
    texts = []
    for home in places:
        spec: Any = getattr(sys.modules.get(home), "__spec__", None)
        get_source = getattr(getattr(spec, "loader", None), "get_source", None)
        texts.append(get_source(home) if get_source else None)
    return "\n".join(text for text in texts if text) or None


class _Names(ModuleType):
    """The names of the table in one module of PyTorch, as a source of that module."""

    def __init__(self, place: str) -> None:
        super().__init__(f"{__name__}:{place}")
        self._place = place
        self.__all__ = [name for name in table()[place] if "." not in name]

    def __getattr__(self, name: str) -> Any:
        if name not in table()[self._place]:
            raise AttributeError(name)
        home, path = table()[self._place][name]
        try:
            result: Any = importlib.import_module(home)
        except ModuleNotFoundError:  # of a package that is not installed
            raise AttributeError(name) from None
        for part in path.split("."):
            result = getattr(result, part)
        return result


@functools.cache
def _packages() -> frozenset[str]:
    """Return the modules above those that only this table has."""
    return frozenset(_file()["packages"])


@functools.cache
def _beside() -> frozenset[str]:
    """Return the modules in which the table's names are looked up first."""
    return frozenset(_file()["beside"])


def with_names(module: str, places: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return where the names of a torch module are looked up, with this table if it is needed.

    Example:
        >>> from plait_torch._shown_names import with_names
        >>> with_names("torch.optim.sparse_adam", None)
        ('plait_torch._shown_names:torch.optim.sparse_adam',)
    """
    if places is None:
        if module in table():
            return (f"{__name__}:{module}",)
        return ("plait_torch._packages",) if module in _packages() else None
    if module in _beside():
        return (f"{__name__}:{module}", *places)
    # a module of plait that stands for a torch module cannot have others below it
    return (*places, "plait_torch._packages") if module in _packages() else places


def functions() -> frozenset[str]:
    """Return the modules whose name in their package means a function or class."""
    return frozenset(_file()["functions"])


def __getattr__(name: str) -> Any:
    if name in table():
        result = sys.modules[__name__].__dict__[name] = _Names(name)
        return result
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
