"""The module that defines a class or function, also while the object goes by another name.

A package may give objects of the others the names that programs expect; it restores them later. A
test such as ``cls.__module__.startswith("plait_nn.")`` would then fail, so that packages ask here.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from plait_abi.binding import Function

__all__ = ["module_of", "rename", "restore"]

# the objects, which keeps their ids theirs, and the module and name that they had, by identity
_renamed: dict[int, tuple[Any, str, str]] = {}


def rename(value: Any, module: str, qualname: str) -> None:
    """Let a class, function or operator say other words as `__module__` and `__qualname__`.

    Args:
        value: the object, whose type must let both be set.
        module: the new ``__module__``.
        qualname: the new ``__qualname__``.

    Raises:
        TypeError: if the type of the object does not let them be set.

    Example:
        >>> from plait_abi.origins import module_of, rename, restore
        >>> class Layer: ...
        >>> before = Layer.__module__
        >>> rename(Layer, "torch.nn", "Layer")
        >>> Layer, module_of(Layer) == before
        (<class 'torch.nn.Layer'>, True)
        >>> restore(Layer)
        >>> Layer.__module__ == before
        True
    """
    value = _plain(value)
    before = value.__module__, value.__qualname__
    _set(value, module, qualname)
    if id(value) not in _renamed:
        _renamed[id(value)] = value, *before


def restore(value: Any) -> None:
    """Give an object the names back that it had before `rename`; do nothing for others.

    Example:
        >>> from plait_abi.origins import rename, restore
        >>> def double(x): ...
        >>> rename(double, "torch", "twice")
        >>> restore(double)
        >>> double.__qualname__
        'double'
    """
    value = _plain(value)
    _, module, qualname = _renamed.pop(id(value), (None, "", ""))
    if module:
        _set(value, module, qualname)


def _plain(value: Any) -> Any:
    """Return the function in Python of one that does not bind; other objects as they are."""
    return value.__wrapped__ if isinstance(value, Function) else value


def _set(value: Any, module: str, qualname: str) -> None:
    value.__module__ = module
    if value.__qualname__ != qualname:
        value.__qualname__ = qualname
        if isinstance(value, (type, FunctionType)):
            value.__name__ = qualname.rpartition(".")[2]


def module_of(value: Any) -> str:
    """Return the name of the module that defines a class or function.

    Example:
        >>> from plait_abi.origins import module_of
        >>> module_of(module_of)
        'plait_abi.origins'
    """
    entry = _renamed.get(id(_plain(value)))
    result: str = (value.__module__ if entry is None else entry[1]) or ""
    return result
