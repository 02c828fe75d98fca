"""The import of `torch`: the finder, the modules that it makes, and its installation."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import inspect
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from plait_abi import binding
from plait_torch import _dir_names, _module_names, _shown_names, _star_names
from plait_torch._cpython import is_import_from
from plait_torch._missing import MissingModule, MissingName, advice, explain
from plait_torch._version import __version__

__all__ = ["Facade", "Finder", "install", "installed", "resolve", "uninstall"]

_HERE = os.path.dirname(os.path.abspath(__file__))
# names that are looked up each time, because their values change
_CHANGING = frozenset({"_initialized", "_is_profiler_enabled", "_worker_info", "default_generator"})
_NOTHING = object()


def _is_inner_module(value: Any) -> bool:
    """Return whether a value is a private module of plait, whose name means another thing there."""
    return isinstance(value, ModuleType) and value.__name__.startswith("plait_")


def resolve(source: str) -> ModuleType:
    """Return the module of a source, which may be an attribute of another module: "module:name"."""
    module, _, name = source.partition(":")
    result = importlib.import_module(module)
    return getattr(result, name) if name else result


class Facade(ModuleType):
    """A module that looks names up in its sources, in order, and caches them."""

    def __init__(self, name: str, sources: tuple[str, ...]) -> None:
        super().__init__(name, f"PyTorch's `{name}`, from {', '.join(sources)}.")
        self._sources = sources
        # functions that a program has replaced: the module where layers read them, and what it had
        self._replaced: dict[str, tuple[ModuleType, Any]] = {}
        self._assigned: set[str] = set()  # names that a program has set

    def _import_sources(self) -> None:
        """Import all modules in which this one looks names up.

        Called before processes are forked, so that not each of them imports what it uses.
        """
        for source in self._sources:
            resolve(source)

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            names = _star_names.left_by(self.__name__, dir(self))
            left = self.__dict__[name] = [each for each in names if self._has(each)]
            return left
        fullname = f"{self.__name__}.{name}"
        if name.startswith("__") and name != "__version__" and fullname not in _module_names.PLACES:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = self._found(name)
        if value is not _NOTHING:
            return value
        text = explain(fullname)
        if is_import_from(sys._getframe(1)):
            raise ImportError(text, name=self.__name__)
        raise MissingName(text, name=name, obj=self)

    def _found(self, name: str) -> Any:
        """Return what a name means, and keep it; `_NOTHING` if no source has it."""
        fullname = f"{self.__name__}.{name}"
        if fullname not in _module_names.FUNCTIONS and _module_names.sources(fullname) is not None:
            with installed():  # also used after `uninstall`
                module = importlib.import_module(fullname)
            self.__dict__[name] = module
            return module
        if name == "torch" and "torch" in sys.modules:  # which modules of PyTorch import
            return sys.modules[name]
        for source in self._sources:
            try:
                value = getattr(resolve(source), name)
            except AttributeError:
                continue
            if name.startswith("_") and _is_inner_module(value):
                continue
            if name not in _CHANGING:
                self.__dict__[name] = value
            return value
        return _NOTHING

    def _has(self, name: str) -> bool:
        try:
            return name in self.__dict__ or self._found(name) is not _NOTHING
        except ImportError:  # a module that needs a package that is not there
            return False

    def __reduce__(self) -> tuple[Any, ...]:
        # functions that are sent to other processes refer to their modules by name
        return _imported, (self.__name__,)

    def __setattr__(self, name: str, value: Any) -> None:
        # the import system sets a module's name in its package
        if isinstance(value, ModuleType) and f"{self.__name__}.{name}" in _module_names.FUNCTIONS:
            return
        if not name.startswith("_"):
            self._replace_for_layers(name, value)
            self._assigned.add(name)
        super().__setattr__(name, value)

    def _replace_for_layers(self, name: str, value: Any) -> None:
        if name not in self._replaced:
            layers = _read_by_layers(self.__name__, name)
            if layers is None:
                return
            self._replaced[name] = layers, getattr(layers, name)
        setattr(self._replaced[name][0], name, value)

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)  # a name means again what it meant before it was replaced
        if name in self._replaced:
            layers, original = self._replaced.pop(name)
            setattr(layers, name, original)

    def __dir__(self) -> list[str]:
        listed = _dir_names.of(self.__name__)
        if listed is not None:
            return sorted(self._assigned | {name for name in listed if self._has(name)})
        own = {name for name in self.__dict__ if not name.startswith("_")}
        for source in self._sources:
            module = resolve(source)
            own.update(getattr(module, "__all__", ()))
            if not source.startswith("plait_torch."):
                own.update(name for name in dir(module) if not name.startswith("_"))
        inner = self.__name__ + "."
        for name in _module_names.PLACES:
            if name.startswith(inner):
                own.add(name[len(inner) :].partition(".")[0])
        return sorted(own)


def _imported(name: str) -> ModuleType:
    """Return a torch module, also in a process without the finder."""
    install()
    return importlib.import_module(name)


# functions of `torch` that layers call, where others call those of `torch.nn.functional`
_CALLED_BY_LAYERS = ("sigmoid", "tanh")


def _read_by_layers(module: str, name: str) -> ModuleType | None:
    """Return the module where layers look a function of a torch module up when they call it.

    Libraries replace functions for a while: those of `torch.nn.functional` to count operations, and
    those that make tensors to make parameters of another dtype or on another device.
    """
    place = {"torch": "plait_core", "torch.nn.functional": "plait_nn.functional"}.get(module)
    if place is None:
        return None
    result = importlib.import_module(place)
    function = getattr(result, name, None)
    if module == "torch":
        is_read = name in _CALLED_BY_LAYERS or _makes_tensors(function)
    else:
        is_read = function is not None
    return result if is_read else None


def _makes_tensors(function: Any) -> bool:
    """Return whether a function makes a tensor of no other tensor, as `empty` does."""
    if isinstance(function, type):
        return False
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    return "device" in parameters and "self" not in parameters


class Finder(importlib.metadata.DistributionFinder):
    """A finder that maps the names of PyTorch's modules to plait's, and finds the distribution
    `torch`.
    """

    # the module that installs it in a worker process, which `plait_data` starts
    installed_by = "plait_torch._preload"

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname in _shown_names.homes():
            spec = self._of_others(fullname, path, target)
            _shown_names.watch(spec)
            return spec
        if fullname.partition(".")[0] not in _module_names.ROOTS:
            return None
        sources = _module_names.sources(fullname)
        if sources is None:
            if advice(fullname):
                raise MissingModule(explain(fullname), name=fullname)
            return None
        spec = importlib.util.spec_from_loader(fullname, _Loader(sources), is_package=True)
        if spec is not None and fullname == "torch":
            spec.origin = os.path.join(_HERE, "__init__.py")
        return spec

    def _of_others(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> importlib.machinery.ModuleSpec | None:
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: importlib.machinery.ModuleSpec | None = find(fullname, path, target)
            if spec is not None:
                return spec
        return None

    def find_distributions(
        self, context: importlib.metadata.DistributionFinder.Context | None = None
    ) -> Iterable[importlib.metadata.Distribution]:
        if context is None or context.name in (None, "torch"):
            return [_Distribution()]
        return []


def _is_alias(sources: tuple[str, ...]) -> bool:
    """Return whether the torch module is a module of plait itself and not a facade."""
    own = sources[0].startswith("plait_torch.") and ":" not in sources[0]
    if len(sources) == 1 and sources[0].endswith(":config"):
        return True  # settings, which one object holds
    return len(sources) == 1 and not own


class _Loader(importlib.abc.Loader):
    def __init__(self, sources: tuple[str, ...]) -> None:
        self._sources = sources

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        if _is_alias(self._sources):
            return None
        facade = Facade(spec.name, self._sources)
        facade.__file__ = os.path.join(_HERE, "__init__.py")
        if spec.name in _shown_names.table() and spec.name != "torch":
            # no file: `inspect` asks `get_source`
            facade.__file__ = os.path.join(_HERE, *spec.name.split(".")[1:]) + ".py"
        return facade

    def get_source(self, fullname: str) -> str | None:
        """Return the text that defines the classes of a torch module."""
        return _shown_names.source_of(fullname)

    def exec_module(self, module: ModuleType) -> None:
        if _is_alias(self._sources):
            # the import system returns the entry of sys.modules, not the empty module that it made
            sys.modules[module.__name__] = resolve(self._sources[0])
        elif module.__name__ in _module_names.LOOKED_THROUGH:
            for name in dir(module):
                getattr(module, name)  # facades cache names
        if module.__name__ == "torch":
            _shown_names.import_modules()


class _Distribution(importlib.metadata.Distribution):
    """The metadata of the distribution `torch` for `importlib.metadata`."""

    def read_text(self, filename: str) -> str | None:
        if filename == "METADATA":
            return f"Metadata-Version: 2.1\nName: torch\nVersion: {__version__}\n"
        return None

    def locate_file(self, path: Any) -> Any:
        return os.path.join(_HERE, str(path))


_finder = Finder()


def _process_context() -> Any:
    """Return the start method of processes if it is "fork": then loaders' workers are forks, as in
    PyTorch. Otherwise None: plait's own new interpreters, which import `torch` as plait.
    """
    import plait_multiprocessing

    context = plait_multiprocessing.get_context()
    return context if context.get_start_method() == "fork" else None


def is_installed() -> bool:
    """Return whether `torch` means plait."""
    return _finder in sys.meta_path


def install() -> None:
    """Make ``import torch`` mean plait until `uninstall`. Further calls do nothing.

    Raises:
        RuntimeError: if PyTorch is imported already.

    Example:
        >>> import importlib.util, plait_torch
        >>> plait_torch.install()
        >>> importlib.util.find_spec("torch.nn") is not None
        True
        >>> plait_torch.uninstall()
    """
    if is_installed():
        return
    there = sys.modules.get("torch")
    if there is not None:
        origin = getattr(there, "__file__", None) or there.__name__
        raise RuntimeError(f"plait_torch.install: torch is imported already, from {origin}")
    import plait.utils.data  # noqa: F401 -- which lets plait_data make batches of tensors
    from plait_data._default_context import set_default_context

    sys.meta_path.insert(0, _finder)
    for each in _bound():
        each.bind()
    binding.shown_module("torch")
    set_default_context(_process_context)
    importlib.invalidate_caches()


def _bound() -> tuple[Any, ...]:
    """Return the modules that change plait's classes while `torch` means plait."""
    from plait_torch import (
        _compiler,
        _generator,
        _method_pickles,
        _node_names,
        _rebuilding,
        _sampler_draws,
        _shown_names,
        _spawned,
        _tensor_methods,
        _torch_dispatch,
        _torch_function,
    )

    methods = _tensor_methods, _torch_function, _torch_dispatch
    names = _rebuilding, _node_names, _shown_names, _method_pickles
    return (*methods, _compiler, _generator, _sampler_draws, *names, _spawned)


def uninstall() -> None:
    """Remove the finder, so that ``import torch`` has its original meaning."""
    if not is_installed():
        return
    from plait_data._default_context import set_default_context

    sys.meta_path.remove(_finder)
    for each in reversed(_bound()):
        each.unbind()
    binding.shown_module("plait")
    set_default_context(None)
    for name in _names():
        del sys.modules[name]


@contextmanager
def installed() -> Iterator[None]:
    """A context manager that calls `install` and `uninstall`; modules that were imported in it
    remain usable.

    Example:
        >>> import plait_torch
        >>> with plait_torch.installed():
        ...     import torch
        >>> torch.zeros(2)
        tensor([0., 0.])
    """
    before = is_installed()
    install()
    try:
        yield
    finally:
        if not before:
            uninstall()


def _names() -> list[str]:
    return [name for name in sys.modules if name.partition(".")[0] in _module_names.ROOTS]
