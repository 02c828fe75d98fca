"""`torch.overrides`: asking arguments and modes about calls, from functions written in Python."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import plait
from plait_abi import Operator
from plait_core import overrides
from plait_torch import _asking_functions, _fx_names, _torch_function
from plait_torch._torch_function import TorchFunctionMode

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "redispatch_torch_function",
    "resolve_name",
    "wrap_torch_function",
]

_get_current_function_mode_stack = _torch_function.modes


def _get_current_function_mode() -> Any:
    """Return the innermost mode of this thread, or None."""
    modes = _torch_function.modes()
    return modes[-1] if modes else None


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Return whether the class of an argument, or a mode, sees the call.

    Example:
        >>> import plait, plait_torch
        >>> from plait_torch._overrides import has_torch_function
        >>> has_torch_function([plait.ones(2), 3])
        False
    """
    level = overrides.switch_off(0)
    overrides.switch_off(level)
    if level < overrides.NOBODY and _torch_function.modes():
        return True
    return bool(overrides.asking(relevant_args))


def has_torch_function_unary(argument: Any) -> bool:
    """Return whether the class of the argument, or a mode, sees the call."""
    return has_torch_function((argument,))


def has_torch_function_variadic(*arguments: Any) -> bool:
    """Return whether the class of one of the arguments, or a mode, sees the call."""
    return has_torch_function(arguments)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Return the answer of modes and classes to ``public_api(*args, **kwargs)``.

    Args:
        public_api: the function.
        relevant_args: the arguments whose classes may see the call.

    Raises:
        TypeError: no class or mode answered.

    Example:
        >>> import plait_torch
        >>> from plait_torch._overrides import handle_torch_function
        >>> class Shy:
        ...     @classmethod
        ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
        ...         return f"{func.__name__} of {cls.__name__}"
        >>> with plait_torch.installed():
        ...     handle_torch_function(abs, (Shy(),), Shy())
        'abs of Shy'
    """
    asking = overrides.asking(relevant_args)
    answer = _torch_function.handle(public_api, asking, args, kwargs)
    if answer is NotImplemented:
        raise TypeError(
            f"no implementation found for {public_api!r}: no argument has __torch_function__"
        )
    return answer


def redispatch_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Return the answer of modes and classes; another name of `handle_torch_function`."""
    return handle_torch_function(public_api, relevant_args, *args, **kwargs)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[..., Any]:
    """Return a decorator of functions in Python, which then ask.

    Args:
        dispatcher: a function of the same arguments that returns those to ask.

    Example:
        >>> from plait_torch._overrides import wrap_torch_function
        >>> @wrap_torch_function(lambda a: (a,))
        ... def twice(a):
        ...     return a + a
        >>> twice(2)
        4
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Return whether the object is a tensor, or its class has ``__torch_function__``.

    Example:
        >>> import plait
        >>> from plait_torch._overrides import is_tensor_like
        >>> is_tensor_like(plait.ones(2)), is_tensor_like([1.0])
        (True, False)
    """
    return type(inp) is plait.Tensor or hasattr(inp, "__torch_function__") or plait.is_tensor(inp)


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """Return the functions whose results `Tensor.__torch_function__` leaves as they are."""
    return set(_torch_function.kept_as_they_are())


def _accessors() -> Iterator[tuple[str, Any]]:
    """Yield the names and ``__get__`` of the attributes of tensors that are no methods."""
    for name, value in vars(plait.Tensor).items():
        if not name.startswith("__") and not callable(value) and hasattr(value, "__get__"):
            yield name, value.__get__


@functools.cache
def _methods() -> dict[Any, str]:
    results: dict[Any, str] = {}
    skipped = ("__class__", "__dict__", "__doc__", "__module__", "__weakref__", "__init_subclass__")
    for name in dir(plait.Tensor):
        value = getattr(plait.Tensor, name)
        hashable = getattr(value, "__hash__", None) is not None
        if name not in skipped and hashable and callable(value) and not isinstance(value, type):
            results.setdefault(value, name)
    for name, value in _accessors():
        results.setdefault(value, name)
    return results


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Return whether the function is an attribute of `Tensor`, or reads or writes one.

    Example:
        >>> import plait
        >>> from plait_torch._overrides import is_tensor_method_or_property
        >>> is_tensor_method_or_property(plait.Tensor.numel), is_tensor_method_or_property(len)
        (True, False)
    """
    return func in _methods() or getattr(func, "__name__", "") == "__get__"


def resolve_name(f: Callable[..., Any]) -> str | None:
    """Return the name under which `torch` shows a function, or None.

    Example:
        >>> import plait
        >>> from plait_torch._overrides import resolve_name
        >>> resolve_name(plait.nn.functional.softmax)
        'torch.nn.functional.softmax'
    """
    known = _fx_names.functions().get(id(f))
    if known is not None:
        return known[1]
    place, _, rest = getattr(f, "__name__", "").partition("_")
    if place in ("linalg", "fft", "special") and isinstance(f, Operator):
        return f"torch.{place}.{rest}"
    name = _methods().get(f)
    return None if name is None else f"torch.Tensor.{name}"


def get_ignored_functions() -> set[Callable[..., Any]]:
    """Return functions of `torch` that call no handlers."""
    asking = {id(f) for f, _ in _asking_functions.functions()}
    names = _fx_names.functions().values()
    return {f for f, _ in names if inspect.isfunction(f) and id(f) not in asking}


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """Return the functions that ask, by the namespace that shows them."""
    ignored = get_ignored_functions()
    results: dict[Any, list[Callable[..., Any]]] = {}
    for function, name in _fx_names.functions().values():
        if function not in ignored:
            place = name.rpartition(".")[0].replace("torch._C._nn", "torch.nn.functional")
            module = importlib.import_module(place) if _is_installed() else place
            results.setdefault(module, []).append(function)
    results[plait.Tensor] = list(_methods())
    return results


def _is_installed() -> bool:
    from plait_torch import _finder

    return _finder.is_installed()


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """Return a function of the same arguments for each function that calls handlers; it returns
    -1.
    """

    def stand_in(function: Any) -> Callable[..., Any]:
        def replacement(*args: Any, **kwargs: Any) -> int:
            return -1

        return functools.update_wrapper(replacement, function, updated=())

    return {f: stand_in(f) for group in get_overridable_functions().values() for f in group}


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls every function as it is."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


@contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """A context without effect: ``__torch_dispatch__`` may call functions of `torch` here."""
    yield
