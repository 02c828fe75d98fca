"""The operators that code of TorchScript calls: ``torch.add``, ``ops.prim.dtype``.

A name is looked up in the tables of numbers, texts and containers, then in the table of operators
that are written otherwise here, then among plait's registered operators. Nothing else of plait can
be reached, so that an archive cannot open files or change the process.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import plait
import plait.nn.functional as F
from plait_abi import binding
from plait_torch import _layer_functions, _native_functions
from plait_torch._torchscript import _numbers, _rewritten
from plait_torch._torchscript._codes import with_options
from plait_torch._torchscript._late import late

_NAMESPACES = ("linalg", "fft", "special")


def _function(name: str) -> Callable[..., Any] | None:
    """Return the function of plait for a registered operator, in the form of PyTorch's."""
    if name.endswith("_copy") and not _registered(name):
        view = _rewritten.TABLE.get(name[:-5]) or _function(name[:-5])
        return None if view is None else _copied(view)
    for module in (_layer_functions, _native_functions):
        if name in module.__all__:
            return getattr(module, name)  # type: ignore[no-any-return]
    base = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    if not _registered(base) and not _registered(name):
        return None
    for place in (plait, plait.Tensor, F):
        found = getattr(place, name, None)
        if callable(found):
            return found  # type: ignore[no-any-return]
    for each in _NAMESPACES:
        if name.startswith(f"{each}_"):
            found = getattr(getattr(plait, each), name.removeprefix(f"{each}_"), None)
            if callable(found):
                return found  # type: ignore[no-any-return]
    try:
        return binding.operator(name)
    except AttributeError:
        return None


def _copied(view: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of which the results share no memory with the arguments."""

    def call(*args: Any, **kwargs: Any) -> Any:
        result = view(*args, **kwargs)
        if isinstance(result, (list, tuple)):
            return type(result)(each.clone() for each in result)
        return result.clone()

    return call


@functools.cache
def _registered(base: str) -> bool:
    return base in _registry()


@functools.cache
def _registry() -> frozenset[str]:
    plait.empty(0)  # the operators are there from the first tensor on
    return frozenset(name.partition(".")[0] for name, *_ in binding.operator_names())


def _kinds(args: Any) -> str:
    """Return what arguments are, for an error."""
    return ", ".join(
        f"Tensor{list(each.shape)}" if isinstance(each, plait.Tensor) else type(each).__name__
        for each in args
    )


def _checked(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with keywords as code writes them."""

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **(with_options(kwargs) if kwargs else kwargs))
        except AttributeError as error:
            raise TypeError(f"{name}: {_kinds(args)} do not fit: {error}") from error

    call.__qualname__ = call.__name__ = name
    return call


@functools.cache
def operator_function(*names: str) -> Any:
    """Return what ``torch.NAME`` or ``ops.NAMESPACE.NAME`` calls, or None.

    Example:
        >>> operator_function("floordiv")(7, 2)
        3
    """
    if len(names) == 2 and names[0] not in ("aten", "prim"):
        return _of_library(*names)
    name = names[-1]
    if len(names) == 2 and names[0] == "prim":
        return _numbers.PRIMITIVES.get(name)
    of_tensors = _rewritten.TABLE.get(name) or _function(name)
    of_values = _numbers.TABLE.get(name)
    if of_values is None:
        return None if of_tensors is None else _checked(name, of_tensors)
    if of_tensors is None:
        return of_values
    return _either(name, of_values, _checked(name, of_tensors))


def _either(name: str, of_values: Any, of_tensors: Any) -> Callable[..., Any]:
    """Return a function that calls one of two, by whether a tensor is among the arguments."""
    tensor = plait.Tensor

    def call(*args: Any, **kwargs: Any) -> Any:
        for each in args:
            if isinstance(each, tensor):
                return of_tensors(*args, **kwargs)
        return of_values(*args, **kwargs)

    call.__qualname__ = call.__name__ = name
    return call


late.operator_function = operator_function


def _of_library(namespace: str, name: str) -> Callable[..., Any]:
    """Return a call of an operator that a library registers: ``torch.ops.torchvision.nms``."""

    def call(*args: Any, **kwargs: Any) -> Any:
        from plait_torch import _library

        return getattr(getattr(_library.ops, namespace), name)(*args, **kwargs)

    call.__qualname__ = call.__name__ = f"{namespace}.{name}"
    return call
