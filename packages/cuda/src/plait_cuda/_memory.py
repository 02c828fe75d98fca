"""How much of a device's memory this process may have."""

from __future__ import annotations

import ctypes

from plait_cuda._library import library

library.plait_cuda_memory_limit.restype = ctypes.c_uint64
_NONE = (1 << 64) - 1


def limit_memory(nbytes: int | None, device: int = 0) -> None:
    """Let this process have at most so many bytes of a device; requests beyond raise
    `OutOfMemoryError`, after cached memory was given back.

    Args:
        nbytes: None is no limit.
        device: the number of the device.

    Raises:
        ValueError: for a negative number.

    Example:
        >>> import plait_cuda
        >>> plait_cuda.limit_memory(1 << 30)
        >>> plait_cuda.memory_limit()
        1073741824
        >>> plait_cuda.limit_memory(None)
    """
    if nbytes is not None and nbytes < 0:
        raise ValueError(f"limit_memory: `nbytes` must not be negative, got {nbytes}")
    limit = _NONE if nbytes is None else min(nbytes, _NONE)
    if library.plait_cuda_limit_memory(device, ctypes.c_uint64(limit)) < 0:
        raise ValueError(f"limit_memory: there is no device {device}")


def memory_limit(device: int = 0) -> int | None:
    """Return the bytes that `limit_memory` set for a device, or None.

    Args:
        device: the number of the device.

    Example:
        >>> import plait_cuda
        >>> plait_cuda.memory_limit() is None
        True
    """
    number = int(library.plait_cuda_memory_limit(device))
    return None if number == _NONE else number
