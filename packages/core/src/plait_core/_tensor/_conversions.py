"""Tensor methods that change dtype, device or memory format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from plait_abi import binding
from plait_core import _dtypes
from plait_core._core import Tensor
from plait_core._docstrings import example
from plait_core._tensor._memory_formats import memory_format as memory_format_type, preserve_format


class _Targets(NamedTuple):
    dtype: binding.dtype | None
    device: binding.device | None
    copy: bool
    memory_format: str
    non_blocking: bool


def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Return the tensor in another dtype, on another device or in another memory format.

    The forms are ``to(dtype)``, ``to(device, dtype=None)`` and ``to(other)``, each followed by
    ``non_blocking=False`` and ``copy=False``, and the keyword ``memory_format``. If nothing changes
    and ``copy`` is False, the result is the tensor itself.

    With ``non_blocking`` the host does not wait for a copy between pinned memory and a device. A
    result on the CPU is pinned then, and has its values when the stream of the device is done:
    ``plait.accelerator.synchronize()``, or an `Event`.

    Raises:
        TypeError: if an argument is none of these.

    Example:
        >>> import plait_core as pc
        >>> pc.tensor([1.5, 2.5]).to(pc.int64)
        tensor([1, 2])
        >>> pc.zeros(1, 2, 3, 4).to(memory_format=pc.channels_last).stride()
        (24, 1, 8, 2)
    """
    if len(args) == 1 and (not kwargs or tuple(kwargs) == ("non_blocking",)):  # most calls
        first = args[0]
        kind = type(first)
        if kind is binding.dtype:
            cast: Tensor = self if first is self.dtype else self._cast(first)
            return cast
        if (kind is binding.device and first == self.device) or (
            kind is str and first == "cpu" and self.device.type == "cpu"
        ):
            return self
    targets = _targets(args, kwargs)
    dtype, device, copy, order, _ = targets
    if device is not None and device != self.device:
        return _on_device(self, device, targets)
    changed = dtype is not None and dtype is not self.dtype
    result: Tensor = self._cast(dtype) if changed else self
    if order != "preserve_format":
        moved = result.contiguous(memory_format=order)
        return moved.clone() if copy and moved is self else moved
    return result.clone() if copy and not changed else result


_ALLOWED = {"dtype", "device", "copy", "non_blocking", "other", "memory_format"}


def _targets(args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Targets:
    if unknown := kwargs.keys() - _ALLOWED:
        raise TypeError(f"to: unexpected keyword `{min(unknown)}`")
    values = list(args)
    dtype, device = kwargs.get("dtype"), kwargs.get("device")
    first = kwargs["other"] if "other" in kwargs else values.pop(0) if values else None
    if isinstance(first, Tensor):
        dtype, device = first.dtype, first.device
    elif type(first) is int or (isinstance(first, (str, binding.device)) and not _is_dtype(first)):
        device = first
        if values and not isinstance(values[0], bool):
            dtype = values.pop(0)
    elif first is None:
        if values and not isinstance(values[0], bool):
            dtype = values.pop(0)
    elif not isinstance(first, bool):
        dtype = first
    else:
        raise TypeError(f"to: a dtype, a device or a Tensor is required first, got {first!r}")
    if len(values) > 2 or not all(isinstance(value, bool) for value in values):
        raise TypeError(
            "to: after dtype and device at most `non_blocking` and `copy` are accepted, both bool; "
            f"got {', '.join(map(repr, values))}"
        )
    copy = values[1] if len(values) == 2 else kwargs.get("copy", False)
    non_blocking = values[0] if values else kwargs.get("non_blocking", False)
    order = kwargs.get("memory_format")
    if order is not None and not isinstance(order, memory_format_type):
        raise TypeError(f"to: `memory_format` must be a memory format, got {order!r}")
    return _Targets(
        None if dtype is None else _dtype_from(dtype),
        None if device is None else binding.device(device),
        bool(copy),
        order or preserve_format,
        bool(non_blocking),
    )


def _dtype_from(value: Any) -> binding.dtype:
    try:
        return binding.dtype(value)
    except TypeError:
        raise TypeError(f"to: a dtype, a device or a Tensor is required, got {value!r}") from None


def _is_dtype(value: Any) -> bool:
    return isinstance(value, str) and any(value == known.name for known in binding.dtypes)


def _on_device(self: Tensor, device: binding.device, targets: _Targets) -> Tensor:
    dtype, order = targets.dtype or self.dtype, targets.memory_format
    if self.device.type == "meta":
        raise NotImplementedError(
            "to: a tensor on the device meta has no data that could be copied to "
            f"{device}; make a new tensor there with empty_like(x, device={str(device)!r})"
        )
    if targets.non_blocking and device.type == "cpu" and order == "preserve_format":
        return self._pinned_like(dtype, self.device).copy_(self, non_blocking=True)
    empty_like = binding.operator("empty_like")
    try:
        result: Tensor = empty_like(self, dtype=dtype, device=device, memory_format=order)
    except Exception as error:
        text = str(error)
        if not text.startswith("empty_like: "):
            raise
        raise type(error)(text.replace("empty_like", "to", 1)) from None
    if device.type == "meta":
        return result
    return result.copy_(self, non_blocking=targets.non_blocking)


def _cast_to(name: str, dtype: binding.dtype) -> Callable[..., Tensor]:
    def method(self: Tensor, memory_format: str = preserve_format) -> Tensor:
        result = self if self.dtype is dtype else self._cast(dtype)
        if memory_format == "preserve_format":
            return result
        return result.contiguous(memory_format=memory_format)

    method.__name__ = name
    method.__qualname__ = f"Tensor.{name}"
    method.__doc__ = (
        f"Return the tensor as {dtype.name}; itself if it is that already. `memory_format` is that "
        "of `Tensor.to`.\n\n" + example(f">>> pc.tensor([0, 1]).{name}().dtype\nplait.{dtype.name}")
    )
    return method


def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Return the name of the dtype, or the tensor in another dtype.

    Args:
        dtype: The dtype; None returns the name of the present one.
        non_blocking: Whether a copy from pinned memory may return early.

    Example:
        >>> import plait_core as pc
        >>> pc.zeros(2).type(), pc.zeros(2).type(pc.int64)
        ('plait.float32', tensor([0, 0]))
    """
    if dtype is None:
        return f"plait.{self.dtype.name}"
    return to(self, dtype, non_blocking=non_blocking)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """Return the tensor in the dtype and on the device of another.

    Args:
        other: The tensor whose dtype and device are taken.

    Example:
        >>> import plait_core as pc
        >>> pc.tensor([1.5]).type_as(pc.tensor([1]))
        tensor([1])
    """
    if not isinstance(other, Tensor):
        raise TypeError(f"type_as: `other` must be a Tensor, got {type(other).__name__}")
    return to(self, other)


def cpu(
    self: Tensor, memory_format: memory_format_type = preserve_format, non_blocking: bool = False
) -> Tensor:
    """Return the tensor on the CPU; `non_blocking` is that of `Tensor.to`.

    Args:
        memory_format: A memory format; None keeps the order of dimensions.

    Example:
        >>> import plait_core as pc
        >>> x = pc.zeros(2)
        >>> x.cpu() is x
        True
    """
    return to(self, device="cpu", memory_format=memory_format, non_blocking=non_blocking)


def cuda(
    self: Tensor,
    device: Any = None,
    non_blocking: bool = False,
    memory_format: memory_format_type = preserve_format,
) -> Tensor:
    """Return the tensor on a CUDA device; it is an error if no component for CUDA is installed.

    Args:
        device: The device or its number; None is the current one.
        non_blocking: Whether a copy from pinned memory may return early.
        memory_format: A memory format; None keeps the order of dimensions.

    Example:
        >>> import plait_core as pc
        >>> try:
        ...     target = pc.zeros(2).cuda().device.type
        ... except RuntimeError:  # no component for CUDA is installed
        ...     target = "cuda"
        >>> target
        'cuda'
    """
    target = "cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device
    return to(self, device=target, memory_format=memory_format, non_blocking=non_blocking)


METHODS: dict[str, Callable[..., Any]] = {
    "to": to,
    "type": type_,
    "type_as": type_as,
    "cpu": cpu,
    "cuda": cuda,
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
