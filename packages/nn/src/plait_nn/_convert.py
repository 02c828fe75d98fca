"""The conversions of `Module.to` and similar methods for one tensor."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import plait_core as pc
from plait_core import Tensor, engine


def without_grad(fn: Callable[[Tensor], Tensor], tensor: Tensor) -> Tensor:
    """Return ``fn(tensor)``, not recorded."""
    with not_recorded():
        return fn(tensor)


def not_recorded() -> AbstractContextManager[object]:
    """Return a context in which no operators are recorded."""
    no_grad = engine.loaded_part("no_grad")  # without an engine nothing is
    return contextlib.nullcontext() if no_grad is None else no_grad()


def floating(dtype: Any) -> Callable[[Tensor], Tensor]:
    """Return the conversion of floating-point tensors to ``dtype``; others stay as they are."""

    def convert(tensor: Tensor) -> Tensor:
        return tensor.to(dtype) if tensor.is_floating_point() else tensor

    return convert


def conversion(*args: Any, **kwargs: Any) -> Callable[[Tensor], Tensor]:
    """Return the conversion for the arguments of ``Module.to``."""
    memory_format = kwargs.pop("memory_format", None)
    non_blocking = _non_blocking(args, kwargs)
    device, dtype = _device_and_dtype(args, kwargs)
    if dtype is not None:
        dtype = pc.empty(0, dtype=dtype).dtype  # also accepts a name or a NumPy dtype
        probe = pc.empty(0, dtype=dtype)
        if not (probe.is_floating_point() or probe.is_complex()):
            raise TypeError(f"Module.to: `dtype` must be floating point or complex; got {dtype}")

    def convert(tensor: Tensor) -> Tensor:
        if device is not None:
            tensor = tensor.to(device, non_blocking=non_blocking)
        if dtype is not None and (tensor.is_floating_point() or tensor.is_complex()):
            tensor = tensor.to(dtype)
        if memory_format is not None and tensor.ndim in (4, 5):
            tensor = tensor.contiguous(memory_format=memory_format)
        return tensor

    return convert


def _non_blocking(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    flags = [value for value in args[1:] if isinstance(value, bool)]
    return bool(kwargs.pop("non_blocking", flags[-1] if flags else False))


def _device_and_dtype(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    device, dtype, other = (kwargs.pop(k, None) for k in ("device", "dtype", "tensor"))
    if kwargs:
        raise TypeError(f"Module.to: unexpected keyword `{next(iter(kwargs))}`")
    for position, value in enumerate(args):
        if isinstance(value, Tensor):
            other = value
        elif (isinstance(value, bool) and position > 0) or value is None:  # non_blocking
            continue
        elif _is_device(value):
            device = value
        else:
            dtype = value
    if other is not None:
        device, dtype = other.device, other.dtype
    return device, dtype


def _is_device(value: Any) -> bool:
    if isinstance(value, str):
        return not _is_dtype(value)
    return type(value) is int or isinstance(value, pc.device)


def _is_dtype(name: str) -> bool:
    return isinstance(getattr(pc, name, None), pc.dtype)
