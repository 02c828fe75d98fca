"""Tensor methods that change dtype or device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_abi import _binding
from plait_core import _dtypes
from plait_core._core import Tensor, is_tensor

__all__ = ["METHODS", "to"]


def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Return the tensor in another dtype or on another device; itself if nothing changes.

    The forms are ``to(dtype)``, ``to(device, dtype=None)`` and ``to(other)``, with the keywords
    ``dtype``, ``device``, ``copy`` and ``non_blocking``.

    Raises:
        TypeError: if an argument is none of these.

    Example:
        >>> import plait_core as pc
        >>> pc.tensor([1.5, 2.5]).to(pc.int64)
        tensor([1, 2])
    """
    dtype, device, copy = _targets(args, kwargs)
    if device is not None and device != self.device:
        return _elsewhere(self, dtype or self.dtype, device)
    if dtype is not None and dtype is not self.dtype:
        return self._cast(dtype)
    return self.clone() if copy else self


def _targets(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[_binding.dtype | None, _binding.device | None, bool]:
    allowed = {"dtype", "device", "copy", "non_blocking", "other", "memory_format"}
    unknown = sorted(set(kwargs) - allowed)
    if unknown:
        raise TypeError(f"to: unexpected keyword `{unknown[0]}`")
    dtype, device, copy = kwargs.get("dtype"), kwargs.get("device"), bool(kwargs.get("copy"))
    values = [*args, kwargs["other"]] if "other" in kwargs else list(args)
    for position, value in enumerate(values):
        if is_tensor(value):
            dtype, device = value.dtype, value.device
        elif isinstance(value, (str, _binding.device)) and not position and not _is_dtype(value):
            device = value
        elif value is None:
            continue
        elif isinstance(value, bool):  # to(device, dtype, non_blocking, copy)
            copy = value if position == len(values) - 1 and position > 2 else copy
        else:
            dtype = value
    if len(values) > 4:
        raise TypeError(f"to: at most 4 positional arguments are accepted, got {len(values)}")
    return (
        None if dtype is None else _binding.dtype(dtype),
        None if device is None else _binding.device(device),
        copy,
    )


def _is_dtype(value: Any) -> bool:
    return isinstance(value, str) and any(value == known.name for known in _binding.dtypes)


def _elsewhere(self: Tensor, dtype: _binding.dtype, device: _binding.device) -> Tensor:
    result = _binding.operator("empty")(tuple(self.shape), dtype=dtype, device=device)
    if device.type == "meta":
        return result  # type: ignore[no-any-return]
    return result.copy_(self)  # type: ignore[no-any-return]


def _cast_to(name: str, dtype: _binding.dtype) -> Callable[[Tensor], Tensor]:
    def method(self: Tensor) -> Tensor:
        return self if self.dtype is dtype else self._cast(dtype)

    method.__name__ = name
    method.__qualname__ = f"Tensor.{name}"
    method.__doc__ = f"Return the tensor as {dtype.name}; itself if it is that already."
    return method


def type_(self: Tensor, dtype: Any = None) -> Any:
    """Return the name of the dtype, or the tensor in another dtype."""
    return f"plait.{self.dtype.name}" if dtype is None else to(self, dtype)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """Return the tensor in the dtype of another."""
    return to(self, other.dtype)


def cpu(self: Tensor) -> Tensor:
    """Return the tensor on the CPU."""
    return to(self, device="cpu")


METHODS: dict[str, Callable[..., Any]] = {
    "to": to,
    "type": type_,
    "type_as": type_as,
    "cpu": cpu,
    **{
        name: _cast_to(name, dtype)
        for name, dtype in {
            "bfloat16": _dtypes.bfloat16,
            "bool": _dtypes.bool_,
            "byte": _dtypes.uint8,
            "cdouble": _dtypes.complex128,
            "cfloat": _dtypes.complex64,
            "char": _dtypes.int8,
            "double": _dtypes.float64,
            "float": _dtypes.float32,
            "half": _dtypes.float16,
            "int": _dtypes.int32,
            "long": _dtypes.int64,
            "short": _dtypes.int16,
        }.items()
    },
}
