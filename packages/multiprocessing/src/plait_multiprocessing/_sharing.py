"""Shared memory: moving tensors to it, and statistics."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from plait_multiprocessing import _library as _library, _shared
from plait_multiprocessing._reductions import META, SHARED

TensorType = TypeVar("TensorType")
_STRATEGY = "file_descriptor"


class MemoryStats(NamedTuple):
    """Statistics of this process's shared memory.

    `arenas` is the number of mapped memory files (each needs one file descriptor), `storages` the
    number of live shared storages, `committed` the number of bytes of memory in the arenas that
    this process made, `free` the number of these in free blocks.

    Example:
        >>> import plait_multiprocessing as mp
        >>> mp.memory_stats()._fields
        ('arenas', 'storages', 'committed', 'free')
    """

    arenas: int
    storages: int
    committed: int
    free: int


def share_memory_(tensor: TensorType) -> TensorType:
    """Move the elements of a tensor to shared memory and return the tensor.

    The tensor stays the same object, so optimizers and modules that hold it see the move. It is
    sent to other processes by reference, and they see each other's writes. A tensor on the device
    meta has no elements and is not changed, nor is one on an accelerator that shares its memory,
    which goes by reference as it is; a NumPy array on which a tensor was made keeps its own memory.

    Raises:
        TypeError: if `tensor` is not a tensor, or on a device that shares no memory.
        RuntimeError: if the storage is used by others as well: views, ``detach()``, NumPy arrays,
            a recorded graph. A storage never moves.
        OutOfMemoryError: if there is not enough memory.

    Example:
        >>> import plait_core as pc, plait_multiprocessing as mp
        >>> x = pc.ones(3)
        >>> mp.share_memory_(x) is x, mp.is_shared(x), mp.is_shared(x[1:])
        (True, True, True)
    """
    if _kind(tensor, "share_memory_") != META and not _shared.move(tensor):
        raise RuntimeError(
            "share_memory_: other objects use the storage of this tensor too (views, detach(), a "
            "NumPy array, a recorded graph), so it cannot be moved; share the tensor before they "
            "are made, or share a clone()"
        )
    return tensor


def is_shared(tensor: Any) -> bool:
    """Tell whether the elements of a tensor are in memory that other processes can have.

    On an accelerator they are, if the device shares its memory.

    Args:
        tensor: The tensor.

    Example:
        >>> import plait_core as pc, plait_multiprocessing as mp
        >>> mp.is_shared(pc.zeros(3))
        False
    """
    return _kind(tensor, "is_shared") == SHARED


def _kind(tensor: Any, operation: str) -> int:
    kind = _shared.kind(tensor)
    if kind < 0:
        raise TypeError(f"{operation}: `tensor` must be a tensor, got {type(tensor).__name__}")
    return kind


def memory_stats() -> MemoryStats:
    """Return statistics of this process's shared memory.

    Example:
        >>> import plait_core as pc, plait_multiprocessing as mp
        >>> before = mp.memory_stats()
        >>> shared = [mp.share_memory_(pc.zeros(10)) for _ in range(1000)]
        >>> after = mp.memory_stats()
        >>> after.storages - before.storages, after.arenas - before.arenas <= 1
        (1000, True)
    """
    return MemoryStats(*_shared.stats())


def trim() -> None:
    """Give back memory: of free blocks to the system, of arenas of processes that died, and of
    devices where no other process has what was sent any more.

    Example:
        >>> import plait_multiprocessing as mp
        >>> mp.trim()
    """
    _shared.trim()


def get_all_sharing_strategies() -> set[str]:
    """Return the names of the sharing strategies, of which there is one.

    Example:
        >>> import plait_multiprocessing as mp
        >>> mp.get_all_sharing_strategies()
        {'file_descriptor'}
    """
    return {_STRATEGY}


def get_sharing_strategy() -> str:
    """Return ``"file_descriptor"``: unnamed memory, whose descriptor is sent with messages.

    Example:
        >>> import plait_multiprocessing as mp
        >>> mp.get_sharing_strategy()
        'file_descriptor'
    """
    return _STRATEGY


def set_sharing_strategy(new_strategy: str) -> None:
    """Accept the only strategy.

    PyTorch has ``"file_system"`` for programs that run out of descriptors; here 100000 tensors
    need about ten.

    Args:
        new_strategy: The strategy.

    Raises:
        ValueError: for any other.

    Example:
        >>> import plait_multiprocessing as mp
        >>> mp.set_sharing_strategy("file_descriptor")
    """
    if new_strategy != _STRATEGY:
        raise ValueError(
            f"set_sharing_strategy: {_STRATEGY!r} is the only strategy, got {new_strategy!r}; "
            "tensors share a few file descriptors, so their limit is not a problem"
        )
