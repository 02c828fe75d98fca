"""The accelerator of this program: its devices, streams and memory, whatever its type is.

A component brings a type of device (docs/guides/devices.md); without one there is no accelerator.

>>> import plait_core as pc
>>> device = pc.accelerator.current_accelerator() or pc.device("cpu")
>>> pc.zeros(2, device=device).device == device
True

Where an argument `device` is None, the current accelerator is meant: the default device, if it is
one, else the first device of the first type that there is. A number is a device of this type.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from plait_abi import binding
from plait_core import _core
from plait_core._namespaces import shown as _shown

__all__ = [
    "current_accelerator",
    "current_device_index",
    "current_stream",
    "device_count",
    "empty_cache",
    "is_available",
    "max_memory_allocated",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_peak_memory_stats",
    "set_stream",
    "stream",
    "synchronize",
]
__dir__ = _shown(globals())


def is_available() -> bool:
    """Return whether there is an accelerator.

    Example:
        >>> import plait_core as pc
        >>> pc.accelerator.is_available() == (pc.accelerator.device_count() > 0)
        True
    """
    return binding.current_accelerator() is not None


def device_count() -> int:
    """Return the number of devices of the current accelerator's type; 0 if there is none.

    Example:
        >>> import plait_core as pc
        >>> pc.accelerator.device_count() >= 0
        True
    """
    return binding.device_count(None)


def current_accelerator(check_available: bool = False) -> binding.device | None:
    """Return the accelerator that is meant where none is named; None if there is none.

    This is the default device of the thread, if it is an accelerator, else the first device of the
    first type that there is.

    Args:
        check_available: accepted as in PyTorch; there is always one where a device is returned.

    Example:
        >>> import plait_core as pc
        >>> device = pc.accelerator.current_accelerator() or pc.device("cpu")
        >>> pc.ones(2, device=device).sum().item()
        2.0
    """
    return binding.current_accelerator()


def current_device_index() -> int:
    """Return the number of the current accelerator among the devices of its type.

    ``with plait.device("cuda", 1)`` and `plait.set_default_device` change it.

    Raises:
        RuntimeError: if there is no accelerator.

    Example:
        >>> import plait_core as pc
        >>> if pc.accelerator.is_available():
        ...     assert pc.accelerator.current_device_index() >= 0
    """
    return _require_device("current_device_index", None).index or 0


def current_stream(device: Any = None, /) -> binding.Stream:
    """Return the stream in which this thread's calls on a device run.

    Args:
        device: a device, or a number of the current accelerator; None is the current accelerator.

    Raises:
        RuntimeError: if there is no accelerator.

    Example:
        >>> import plait_core as pc
        >>> if pc.accelerator.is_available():
        ...     pc.accelerator.current_stream().synchronize()
    """
    return binding.current_stream(_require_device("current_stream", device))


def set_stream(stream: binding.Stream) -> None:
    """Make a stream the one in which this thread's calls on its device run.

    Raises:
        TypeError: if `stream` is no Stream.

    Example:
        >>> import plait_core as pc
        >>> if pc.accelerator.is_available():
        ...     before = pc.accelerator.current_stream()
        ...     pc.accelerator.set_stream(pc.Stream())
        ...     pc.accelerator.set_stream(before)
    """
    binding.set_stream(stream)


def stream(stream: binding.Stream | None) -> AbstractContextManager[Any]:
    """Return a context in which a stream is the current one of its device; None changes nothing.

    Raises:
        TypeError: if `stream` is neither Stream nor None.

    Example:
        >>> import plait_core as pc
        >>> with pc.accelerator.stream(pc.Stream()):
        ...     x = pc.ones(2) + 1
    """
    if stream is None:
        return nullcontext()
    if not isinstance(stream, binding.Stream):
        raise TypeError(f"stream: `stream` must be a Stream or None, got {type(stream).__name__}")
    return stream


def synchronize(device: Any = None, /) -> None:
    """Wait until all work of a device is done, in all its streams.

    Errors of calls that have returned before are raised here.

    Args:
        device: a device, or a number of the current accelerator; None is the current accelerator.

    Raises:
        RuntimeError: if there is no accelerator.

    Example:
        >>> import plait_core as pc
        >>> if pc.accelerator.is_available():
        ...     pc.accelerator.synchronize()
    """
    binding.synchronize(_require_device("synchronize", device))


# names of PyTorch for the counters of an allocator
_COUNTERS = {
    "allocated_bytes.all.current": ("live_bytes",),
    "allocated_bytes.all.peak": ("peak_bytes",),
    "reserved_bytes.all.current": ("live_bytes", "cached_bytes"),
    "allocation.all.current": ("live_blocks",),
    "allocation.all.allocated": ("allocations",),
    "segment.all.allocated": ("system_allocations",),
}


def memory_stats(device: Any = None, /) -> dict[str, int]:
    """Return the counters of an accelerator's memory, under PyTorch's names for them.

    They are those that its allocator keeps for this device; one that it does not keep is 0.
    `empty_cache` gives the bytes that are reserved, but not allocated, back to the system.

    Args:
        device: a device, or a number of the current accelerator; None is the current accelerator.

    Raises:
        RuntimeError: if there is no accelerator, or its allocator counts nothing.

    Example:
        >>> import plait_core as pc
        >>> if pc.accelerator.is_available():
        ...     assert pc.accelerator.memory_stats()["allocated_bytes.all.current"] >= 0
    """
    result = _core.memory_stats(_require_device("memory_stats", device))
    return {name: sum(result[each] for each in parts) for name, parts in _COUNTERS.items()}


def memory_allocated(device: Any = None, /) -> int:
    """Return the bytes of an accelerator's memory that tensors have; see `memory_stats`.

    Example:
        >>> import plait_core as pc
        >>> if pc.accelerator.is_available():
        ...     assert pc.accelerator.memory_allocated() >= 0
    """
    return memory_stats(device)["allocated_bytes.all.current"]


def max_memory_allocated(device: Any = None, /) -> int:
    """Return the most bytes of an accelerator's memory that tensors had; see `memory_stats`.

    They are counted from the start of the program, or from `reset_peak_memory_stats`.

    Example:
        >>> import plait_core as pc
        >>> if pc.accelerator.is_available():
        ...     assert pc.accelerator.max_memory_allocated() >= pc.accelerator.memory_allocated()
    """
    return memory_stats(device)["allocated_bytes.all.peak"]


def memory_reserved(device: Any = None, /) -> int:
    """Return the bytes that an accelerator's allocator has, for tensors or for later ones.

    Example:
        >>> import plait_core as pc
        >>> if pc.accelerator.is_available():
        ...     assert pc.accelerator.memory_reserved() >= pc.accelerator.memory_allocated()
    """
    return memory_stats(device)["reserved_bytes.all.current"]


def reset_peak_memory_stats(device: Any = None, /) -> None:
    """Let `max_memory_allocated` of a device begin at the bytes that its tensors have now.

    Args:
        device: a device, or a number of the current accelerator; None is the current accelerator.

    Raises:
        RuntimeError: if there is no accelerator, or its allocator keeps the peak of the process.

    Example:
        >>> import plait_core as pc
        >>> if pc.accelerator.is_available():
        ...     pc.accelerator.reset_peak_memory_stats()
        ...     assert pc.accelerator.max_memory_allocated() == pc.accelerator.memory_allocated()
    """
    _core.reset_peak_memory_stats(_require_device("reset_peak_memory_stats", device))


def empty_cache() -> None:
    """Give memory of the current accelerator that is kept for later tensors back to the system.

    Raises:
        RuntimeError: if there is no accelerator.

    Example:
        >>> import plait_core as pc
        >>> if pc.accelerator.is_available():
        ...     pc.accelerator.empty_cache()
    """
    _core.empty_cache(_require_device("empty_cache", None))


def _require_device(name: str, device: Any) -> binding.device:
    """Return the accelerator that an argument `device` names."""
    current = binding.current_accelerator()
    if device is None or (isinstance(device, int) and not isinstance(device, bool)):
        if current is None:
            raise RuntimeError(f"{name}: there is no accelerator; ask is_available() first")
        if device is None:
            return current
        count = device_count()
        if not 0 <= device < count:
            kind = current.type
            raise ValueError(f"{name}: there is no device {kind}:{device}: {kind} has {count}")
        return binding.device(current.type, device)
    try:
        result = binding.device(device)
    except TypeError:
        raise TypeError(f"{name}: `device` must be a device, int or None, got {device!r}") from None
    if result.type in ("cpu", "meta"):
        raise ValueError(f"{name}: `device` must be an accelerator, got {str(result)!r}")
    binding.check_device(name, result)
    return result
