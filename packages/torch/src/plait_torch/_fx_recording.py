"""While a program is traced: the functions of `torch` record calls on proxies.

Operators ask proxies themselves (``__plait_function__``). Functions in Python do not, so wrappers
stand in their places in all modules while at least one trace runs. A wrapper looks for a proxy in
its arguments and calls the function if there is none, so other threads compute as before. Two
traces may run at once: the first one places the wrappers, the last one takes them back.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FunctionType, ModuleType
from typing import Any

from plait import nn
from plait_abi.binding import Function
from plait_torch import _fx_names

current: ContextVar[Any] = ContextVar("tracer", default=None)  # the tracer of this thread

_lock = threading.RLock()
_traces = 0
_wrapped: list[tuple[dict[str, Any], str]] = []  # what `wrap` marked: namespaces and names
_wrappers: dict[int, Any] = {}  # by the id of the function
_originals: dict[int, Any] = {}  # by the id of the wrapper
_undo: list[Callable[[], None]] = []


def wrap(fn_or_name: Any) -> Any:
    """Mark a function of the calling module, or its name: calls on proxies are recorded as one
    node, and its inside is not traced. Call it at the top of a module.

    Example:
        >>> from plait_torch._fx_recording import wrap
        >>> wrap("len")
        'len'
    """
    frame = inspect.currentframe()
    if frame is None or frame.f_back is None or not (
        callable(fn_or_name) or isinstance(fn_or_name, str)
    ):  # fmt: skip
        raise RuntimeError("wrap: a function or its name is required")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    _wrapped.append((frame.f_back.f_globals, name))
    return fn_or_name


def tracer_of(args: Any, kwargs: Any = ()) -> Any:
    """Return the tracer of the first proxy in the arguments, or None."""
    values = [*args, *kwargs.values()] if kwargs else list(args)
    while values:
        value = values.pop()
        if isinstance(value, (tuple, list)):
            values.extend(value)
        elif isinstance(value, dict):
            values.extend(value.values())
        elif isinstance(value, slice):
            values.extend((value.start, value.stop, value.step))
        else:
            tracer = getattr(type(value), "_is_fx_proxy", False) and value.tracer
            if tracer:
                return tracer
    return None


def arguments(function: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return the arguments as PyTorch's functions in Python record them: those with defaults are
    keywords, and all are there.
    """
    name = _fx_names.qualified(function)
    if not name.startswith(("torch.nn.functional.", "torch.functional.")):
        return args, kwargs
    return all_arguments(function, args, kwargs)


def all_arguments(function: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return all arguments of a call, those with defaults as keywords."""
    if function.__name__ == "einsum" and len(args) == 2 and isinstance(args[1], (list, tuple)):
        args = (args[0], *args[1])  # PyTorch's calls itself with the operands of a list
    try:
        signature = inspect.signature(function)
        bound = signature.bind(*args, **kwargs)
    except (TypeError, ValueError):
        return args, kwargs
    bound.apply_defaults()
    first: list[Any] = []
    rest: dict[str, Any] = {}
    for key, parameter in signature.parameters.items():
        value = bound.arguments[key]
        if parameter.kind is parameter.VAR_POSITIONAL:
            first.extend(value)
        elif parameter.kind is parameter.VAR_KEYWORD:
            rest.update(value)
        elif parameter.default is parameter.empty and parameter.kind is not parameter.KEYWORD_ONLY:
            first.append(value)
        else:
            rest[key] = value
    return tuple(first), rest


def recorder(function: Any) -> Any:
    """Return a function that records calls on proxies and makes all others."""

    def record(*args: Any, **kwargs: Any) -> Any:
        tracer = tracer_of(args, kwargs)
        if tracer is None:
            return function(*args, **kwargs)
        return tracer.create_proxy("call_function", function, *arguments(function, args, kwargs))

    try:
        return functools.wraps(function)(record)
    except AttributeError:
        return record


def _add(function: Any) -> Any:
    result = _wrappers.get(id(function))
    if result is None:
        result = _wrappers[id(function)] = recorder(function)
        _originals[id(result)] = function
    return result


def _swap(names: dict[str, Any], new: dict[int, Any]) -> None:
    """Replace values of a namespace by identity."""
    for name, value in list(names.items()):
        result = new.get(id(value))
        if result is not None:
            names[name] = result


@contextmanager
def swapped(*namespaces: dict[str, Any]) -> Iterator[None]:
    """Let functions in more namespaces record: attributes of modules, globals of functions."""
    for each in namespaces:
        _swap(each, _wrappers)
    try:
        yield
    finally:
        for each in namespaces:
            _swap(each, _originals)


def _all_modules(new: dict[int, Any]) -> None:
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType) and not module.__name__.startswith("plait_torch._fx"):
            _swap(vars(module), new)


def _place(extra: Any) -> None:
    for function, _ in _fx_names.functions().values():
        if isinstance(function, (FunctionType, Function)):
            _add(function)
    for function in extra:
        _add(function)
    for names, name in _wrapped:
        if name in names:
            _add(_originals.get(id(names[name]), names[name]))
        elif hasattr(builtins, name):
            names[name] = recorder(getattr(builtins, name))
            _undo.append(functools.partial(names.pop, name, None))
    _all_modules(_wrappers)
    for names, _ in _wrapped:
        _swap(names, _wrappers)
        _undo.append(functools.partial(_swap, names, _originals))
    _watch_modules()


def _watch_modules() -> None:
    """Let calls of modules and reads of parameters ask the tracer of their thread."""
    call, read = nn.Module.__call__, nn.Module.__getattr__
    in_python = read_in_python(nn.Module)

    def traced_call(self: Any, *args: Any, **kwargs: Any) -> Any:
        tracer = current.get()
        if tracer is None:
            return call(self, *args, **kwargs)
        return tracer.call_module(self, functools.partial(call, self), args, kwargs)

    def traced_read(self: Any, name: str) -> Any:
        value = read(self, name)
        tracer = current.get()
        return value if tracer is None else tracer.read(name, value)

    module_class: Any = nn.Module
    module_class.__call__ = traced_call
    module_class.__getattr__ = traced_read

    def restore() -> None:
        module_class.__call__ = call
        module_class.__getattr__ = read
        read_in_c(nn.Module, read, in_python)

    _undo.append(restore)


def _with_subclasses(cls: Any) -> list[Any]:
    results = [cls]
    for each in results:
        results += [kind for kind in each.__subclasses__() if kind not in results]
    return results


def read_in_python(cls: Any) -> set[Any]:
    """Return the class and those derived from it whose attributes Python looks up."""
    try:
        from plait_core.attribute_lookup import installed
    except ImportError:
        return set()
    return {each for each in _with_subclasses(cls) if not installed(each)}


def read_in_c(cls: Any, read: Any, but: Collection[Any] = ()) -> None:
    """Look attributes up in C again, in all classes but some: Python's lookup came with the
    assignment.
    """
    try:
        from plait_core.attribute_lookup import install
    except ImportError:
        return
    for each in _with_subclasses(cls):
        if each not in but:
            install(each, read)


@contextmanager
def recording(tracer: Any = None, extra: Any = ()) -> Iterator[None]:
    """A context in which functions record; with a tracer also modules, for this thread."""
    global _traces
    with _lock:
        _traces += 1
        if _traces == 1:
            _place([f for each in (math,) for f in vars(each).values() if callable(f)] + [*extra])
    token = current.set(tracer)
    try:
        yield
    finally:
        current.reset(token)
        with _lock:
            _traces -= 1
            if _traces == 0:
                _all_modules(_originals)
                while _undo:
                    _undo.pop()()
