"""`torch._C._nn`: the arguments of `Module.to`. lightning, fastai and tensordict use it."""

from __future__ import annotations

from typing import Any

import plait

__all__ = ["_parse_to"]


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Return device, dtype, non_blocking and memory_format of the arguments of `Module.to`.

    Raises:
        TypeError: for other arguments.

    Example:
        >>> import plait
        >>> from plait_torch._arguments import _parse_to
        >>> _parse_to("cpu", plait.float64)
        (device(type='cpu'), plait.float64, False, None)
    """
    rest = list(args)
    device, dtype = kwargs.pop("device", None), kwargs.pop("dtype", None)
    other = kwargs.pop("tensor", None) or kwargs.pop("other", None)
    if rest and isinstance(rest[0], plait.Tensor):
        other = rest.pop(0)
    if other is not None:
        device, dtype = other.device, other.dtype
    elif rest and (rest[0] is None or isinstance(rest[0], (str, plait.device))):
        device = rest.pop(0)
    if rest and isinstance(rest[0], plait.dtype):
        dtype = rest.pop(0)
    non_blocking = bool(rest.pop(0) if rest else kwargs.pop("non_blocking", False))
    kwargs.pop("copy", None)
    memory_format = kwargs.pop("memory_format", None)
    if kwargs or len(rest) > 1:
        raise TypeError(f"to: a device, a dtype or a tensor is required, got {args} {kwargs}")
    return None if device is None else plait.device(device), dtype, non_blocking, memory_format
