"""Methods of tensors in pickles: `torch.Tensor.add` is a name below the class, as in PyTorch."""

from __future__ import annotations

import copyreg
from types import FunctionType
from typing import Any

import plait
from plait_abi import origins
from plait_abi.binding import OperatorMethod

__all__ = ["bind", "unbind"]

_renamed: list[Any] = []


def _reduce(method: Any) -> tuple[Any, ...]:
    """Return a method as ``getattr(torch.Tensor, name)``; one of another class as the operator."""
    for name, value in vars(plait.Tensor).items():
        if value is method:
            return getattr, (plait.Tensor, name)
    result: tuple[Any, ...] = method.__reduce__()
    return result


def bind() -> None:
    """Give the methods names by which pickles find them, here and in PyTorch."""
    copyreg.pickle(OperatorMethod, _reduce)
    for name, value in vars(plait.Tensor).items():
        method = value.__func__ if isinstance(value, staticmethod) else value
        if isinstance(method, FunctionType) and not method.__module__.startswith("torch"):
            is_function = getattr(plait, name, None) is method
            origins.rename(method, "torch", name if is_function else f"Tensor.{name}")
            _renamed.append(method)


def unbind() -> None:
    """Give the methods their own names again."""
    copyreg.dispatch_table.pop(OperatorMethod, None)
    for value in _renamed:
        origins.restore(value)
    _renamed.clear()
