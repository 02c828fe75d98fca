"""A torch module: the names of several modules under one, and a text for what is missing."""

from __future__ import annotations

import dis
import sys
from types import ModuleType
from typing import Any

from plait_abi.imports import import_module
from plait_torch._missing import advice

__all__ = ["Facade", "MissingModule", "MissingName", "explain", "resolve"]

_IMPORT_FROM = dis.opmap["IMPORT_FROM"]
# asked for anew each time, because the answer changes
_CHANGING = frozenset({"default_generator"})


class MissingName(AttributeError):
    """A name of PyTorch that plait has no counterpart for."""


class MissingModule(ModuleNotFoundError):
    """A module of PyTorch that plait has no counterpart for."""


def explain(fullname: str) -> str:
    """Return the text for a missing name: its own name, and the way round where there is one."""
    way = advice(fullname)
    return f"plait_torch: {fullname} is not there" + (f"; {way}" if way else "")


def resolve(source: str) -> ModuleType:
    """Return the module of a source, which may stand in another one: "module:name"."""
    module, _, name = source.partition(":")
    found = import_module(module)
    return getattr(found, name) if name else found


class Facade(ModuleType):
    """Looks names up in its sources, in order, and keeps what it found."""

    def __init__(self, name: str, sources: tuple[str, ...]) -> None:
        super().__init__(name, f"PyTorch's `{name}`, from {', '.join(sources)}.")
        self._sources = sources

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return [each for each in dir(self) if not each.startswith("_")]
        _places = import_module("plait_torch._places")

        fullname = f"{self.__name__}.{name}"
        if name.startswith("__") and name != "__version__" and fullname not in _places.PLACES:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if fullname not in _places.FUNCTIONS and _places.sources(fullname) is not None:
            installed = import_module("plait_torch._installing").installed

            with installed():  # also after the block that this module was imported in
                module = import_module(fullname)
            self.__dict__[name] = module
            return module
        for source in self._sources:
            try:
                value = getattr(resolve(source), name)
            except AttributeError:
                continue
            if name not in _CHANGING:
                self.__dict__[name] = value
            return value
        text = explain(fullname)
        if _is_import_from():
            raise ImportError(text, name=self.__name__)
        raise MissingName(text, name=name, obj=self)

    def __reduce__(self) -> tuple[Any, ...]:
        # functions that a program sends to other processes name their modules
        return _imported, (self.__name__,)

    def __setattr__(self, name: str, value: Any) -> None:
        # the import system sets a module's name in its package
        if isinstance(value, ModuleType):
            _places = import_module("plait_torch._places")

            if f"{self.__name__}.{name}" in _places.FUNCTIONS:
                return
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        _places = import_module("plait_torch._places")

        own = {name for name in self.__dict__ if not name.startswith("_")}
        for source in self._sources:
            module = resolve(source)
            own.update(getattr(module, "__all__", ()))
            if not source.startswith("plait_torch."):
                own.update(name for name in dir(module) if not name.startswith("_"))
        inner = self.__name__ + "."
        for name in _places.PLACES:
            if name.startswith(inner):
                own.add(name[len(inner) :].partition(".")[0])
        return sorted(own)


def _imported(name: str) -> ModuleType:
    """Return a torch module, in a process that may not have the finder yet."""
    install = import_module("plait_torch._installing").install

    install()
    return import_module(name)


def _is_import_from() -> bool:
    """Tell whether the code that asks for the attribute is a ``from ... import``."""
    frame = sys._getframe(2)
    return frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == _IMPORT_FROM
