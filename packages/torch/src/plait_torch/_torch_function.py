"""``__torch_function__``: the classes and modes that see calls of `torch`, and their order.

Plait's core finds the arguments whose class has the attribute (`plait_core.overrides`); this module
answers for them: first the modes of the thread, the innermost first, then the arguments.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import plait
import plait_core as core
from plait_abi import Operator
from plait_abi.binding import Function
from plait_core import overrides
from plait_torch import _asking_functions, _parameters, _torch_dispatch

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "TorchFunctionMode",
    "bind",
    "_rebuild_from_type_v2",
    "canonical",
    "disabled",
    "handle",
    "kept_as_they_are",
    "modes",
    "unbind",
]


class _Thread(threading.local):
    def __init__(self) -> None:
        self.modes: list[Any] = []


_thread = _Thread()


def modes() -> list[Any]:
    """Return the modes of this thread, the innermost last."""
    return _thread.modes


def disabled(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Return ``func(*args, **kwargs)``. A class with this ``__torch_function__`` sees no calls.

    A subclass that overrides it may call it for its own arguments: they see no calls meanwhile.
    """
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


@functools.cache
def _operators() -> dict[str, Any]:
    """Return the operators that `torch` shows, by name: functions, and methods without one."""
    from plait_nn import functional

    results: dict[str, Any] = {}
    for place in (core, functional, core.linalg, core.fft, core.special, core.Tensor):
        for value in vars(place).values():
            if isinstance(value, Operator):
                results.setdefault(value.__name__, value)
    return results


def canonical(function: Any) -> Any:
    """Return the object by which `torch` shows a function: plait's modules have operators of their
    own, which are other objects.
    """
    if type(function) is not Operator:  # a method is an attribute of Tensor
        tensor: Any = core.Tensor
        return tensor.__rdiv__ if function is tensor.__rtruediv__ else function
    return _operators().get(function.__name__, function)


@contextmanager
def _without_innermost() -> Iterator[Any]:
    """Remove the innermost mode while its function runs."""
    stack = modes()
    mode = stack.pop()
    count = overrides.count_modes
    count(-1)
    try:
        yield mode
    finally:
        stack.append(mode)
        count(1)


def handle(function: Any, asking: tuple[Any, ...], args: Any, kwargs: Any) -> Any:
    """Return the answer of modes and arguments to a call, or NotImplemented if there are none."""
    if not asking and not modes():
        return NotImplemented
    function = canonical(function)
    if isinstance(function, (FunctionType, Function)):
        args, kwargs = _asking_functions.arguments(function, args, kwargs)
    elif asking and not _asking_functions.are_asking():
        _asking_functions.keep()  # a class that is no tensor is new
    types = tuple(type(each) for each in asking)
    if modes():
        with _without_innermost() as mode:
            answer = mode.__torch_function__(function, types, args, kwargs)
        if answer is not NotImplemented:
            return answer
    for each in asking:
        answer = each.__torch_function__(function, types, args, kwargs)
        if answer is not NotImplemented:
            return answer
    name = f"{getattr(function, '__module__', None)}.{getattr(function, '__name__', function)}"
    raise TypeError(
        f"no implementation found for {name!r} on types that implement __torch_function__: "
        f"{[f'{kind.__module__}.{kind.__qualname__}' for kind in types]}"
    )


class _Disabled:
    """A context in which classes of arguments, or modes too, see no calls; it can be nested."""

    level = "MODES"

    def __init__(self) -> None:
        self._before: list[int] = []

    def __enter__(self) -> None:
        before = overrides.switch_off(overrides.NOBODY)
        overrides.switch_off(max(before, getattr(overrides, self.level)))
        self._before.append(before)

    def __exit__(self, *exception: object) -> None:
        overrides.switch_off(self._before.pop())


class DisableTorchFunctionSubclass(_Disabled):
    """A context in which the classes of arguments see no calls.

    Example:
        >>> from plait_torch._torch_function import DisableTorchFunctionSubclass
        >>> with DisableTorchFunctionSubclass():
        ...     pass
    """


class DisableTorchFunction(_Disabled):
    """A context in which neither modes nor the classes of arguments see calls."""

    level = "NOBODY"


class TorchFunctionMode:
    """A context that sees every call of a function of `torch` in its thread.

    Example:
        >>> import plait, plait_torch
        >>> from plait_torch._torch_function import TorchFunctionMode
        >>> class Log(TorchFunctionMode):
        ...     def __torch_function__(self, func, types, args=(), kwargs=None):
        ...         print(func.__name__)
        ...         return func(*args, **(kwargs or {}))
        >>> with plait_torch.installed(), Log():
        ...     y = plait.ones(2).sum() * 2
        ones
        sum
        mul
    """

    inner: TorchFunctionMode

    def __init__(self) -> None:
        """Make a mode; it is entered by ``with``."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        push(self)
        return self

    def __exit__(self, *exception: object) -> None:
        pop()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """Return a new mode; an older name of the call."""
        return cls(*args, **kwargs)


def push(mode: Any) -> None:
    """Add a mode to those of this thread."""
    _asking_functions.begin()
    modes().append(mode)
    overrides.count_modes(1)


def pop() -> Any:
    """Remove the innermost mode of this thread, and return it."""
    if not modes():
        raise RuntimeError("torch function mode: there is none in this thread")
    overrides.count_modes(-1)
    mode = modes().pop()
    _asking_functions.end()
    return mode


@functools.cache
def kept_as_they_are() -> Any:
    """Return the functions whose results keep their class."""
    tensor: Any = plait.Tensor
    return {tensor._base.__get__, tensor.grad.__get__}


def convert(result: Any, cls: Any) -> Any:
    """Return tensors of a result as instances of a class derived from Tensor."""
    tensor = plait.Tensor
    if cls is tensor:
        return result
    if isinstance(result, tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        parts = [convert(each, cls) for each in result]
        if hasattr(result, "_fields"):
            return type(result)(*parts)
        return type(result)(parts)
    return result


_convert = convert  # PyTorch's name


def _torch_function(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Call the function on the tensors themselves; tensors of the result become instances of this
    class, as do those of functions that classes derived from Tensor do not define.
    """
    if not all(issubclass(cls, each) for each in types):
        return NotImplemented
    result = _composed(func, types, args, kwargs)
    if func in kept_as_they_are():
        return result
    return convert(result, cls)


def _composed(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Return ``func(*args, **kwargs)`` for a class that has only ``__torch_dispatch__``.

    Such a class sees the functions of which PyTorch composes this one.
    """
    with DisableTorchFunctionSubclass():
        return _torch_dispatch.composed(func, args)(*args, **(kwargs or {}))


_NOT_ASKED = ("Parameter", "Buffer")


def _init_subclass(cls: Any, /, **options: Any) -> None:
    super(plait.Tensor, cls).__init_subclass__(**options)
    if cls.__module__.startswith("plait_nn.") and cls.__name__ in _NOT_ASKED:
        cls.__torch_function__ = staticmethod(disabled)
        if cls.__name__ == "Parameter":
            _parameters.change(cls)
    own = cls.__dict__.get("__torch_function__")
    plain = own is None or getattr(own, "__func__", own) is disabled
    if not plain and not hasattr(cls, "__plait_function__"):
        _asking_functions.keep()
    result = cls.__torch_function__
    if getattr(result, "__func__", result) is disabled and _torch_dispatch.sees_calls(cls):
        cls.__torch_function__ = staticmethod(_composed)
    _torch_dispatch.watch(cls)


def _not_asked() -> list[Any]:
    """Return the classes of plait that see no calls, as far as they are imported."""
    module = sys.modules.get("plait_nn")
    return [] if module is None else [getattr(module, name) for name in _NOT_ASKED]


def _rdiv(self: Any, other: Any) -> Any:
    """Return ``other / self``."""
    return self.__rtruediv__(other)


_rdiv.__name__ = "__rdiv__"  # PyTorch's name of the reflected division
_METHODS = {
    "__init_subclass__": classmethod(_init_subclass),
    "__rdiv__": _rdiv,
    "__torch_function__": classmethod(_torch_function),
}


def bind() -> None:
    """Let classes with ``__torch_function__`` see calls from now on."""
    for name, method in _METHODS.items():
        setattr(plait.Tensor, name, method)
    for kind in _not_asked():
        kind.__torch_function__ = staticmethod(disabled)
    _parameters.bind()
    overrides.set_protocol("__torch_function__", handle, disabled)


def unbind() -> None:
    """Restore the state before `bind`."""
    _asking_functions.forget()
    overrides.set_protocol(None)
    _parameters.unbind()
    for kind in _not_asked():
        del kind.__torch_function__
    for name in _METHODS:
        delattr(plait.Tensor, name)


def _rebuild_from_type_v2(func: Any, new_type: Any, args: Any, state: Any) -> Any:
    """Return ``func(*args)`` as a tensor of another class, with its state: a dict of attributes,
    or that and the values of ``__slots__``. Pickles of subclasses call it.

    Example:
        >>> import plait
        >>> from plait_torch._torch_function import _rebuild_from_type_v2
        >>> class Named(plait.Tensor):
        ...     pass
        >>> x = _rebuild_from_type_v2(plait.ones, Named, (2,), {"name": "a"})
        >>> type(x).__name__, x.name
        ('Named', 'a')
    """
    result = func(*args)
    if type(result) is not new_type:
        result = result.as_subclass(new_type)
    if hasattr(type(result), "__setstate__"):
        result.__setstate__(state)
        return result
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    for name, value in {**(attributes or {}), **(slots or {})}.items():
        setattr(result, name, value)
    return result
