"""Each change of the memory that storages take, as timelines and counters show it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plait_profiler._blocks import NEVER, Blocks, blocks_of, marked_blocks
from plait_profiler._recording import Recording
from plait_profiler._tree import Array

__all__ = ["MemoryChanges", "held_bytes", "memory_changes"]


@dataclass(frozen=True, eq=False)
class MemoryChanges:
    """Columns of the changes, in the order of time.

    Attributes:
        time: nanoseconds of the monotonic clock.
        change: bytes, negative where memory was freed.
        category: a `Category`, that of the block.
        process, device: as in rows.
    """

    time: Array
    change: Array
    category: Array
    process: Array
    device: Array


def memory_changes(recording: Recording) -> MemoryChanges:
    """Return the changes, of blocks that were made before the recording too.

    Example:
        >>> from plait_profiler._recording import ROW, Kind, Signature
        >>> rows = np.zeros(2, ROW)
        >>> rows["kind"] = Kind.ALLOC, Kind.FREE
        >>> rows["start"], rows["a"], rows["b"] = [1000, 5000], 64, 4096
        >>> memory_changes(Recording(rows, [Signature("", Kind.ALLOC)])).change.tolist()
        [64, -64]
    """
    return _changes(blocks_of(recording))


def _changes(blocks: Blocks) -> MemoryChanges:
    ended = blocks.end < NEVER

    def both(column: Array) -> Array:
        return np.concatenate([column, column[ended]])

    time = np.concatenate([blocks.begin, blocks.end[ended]])
    change = np.concatenate([blocks.size, -blocks.size[ended]])
    order = np.argsort(time, kind="stable")
    columns = time, change, both(blocks.category), both(blocks.process), both(blocks.device)
    return MemoryChanges(*(column[order] for column in columns))


def held_bytes(recording: Recording) -> dict[tuple[int, int], tuple[Array, Array]]:
    """Return by process and device: the times of changes, and the bytes held from each on."""
    changes = _changes(marked_blocks(recording))
    group = (changes.process.astype(np.int64) << 16) + changes.device
    sizes = {}
    for key in np.unique(group).tolist():
        here = group == key
        sizes[key >> 16, key & 0xFFFF] = changes.time[here], np.cumsum(changes.change[here])
    return sizes
