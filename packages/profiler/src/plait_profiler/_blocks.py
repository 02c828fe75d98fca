"""Blocks of memory: from when to when they were there, how large, and what for; and the changes of
memory that they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from plait_profiler._recording import DEVICE_TYPES, Category, Kind, Recording
from plait_profiler._tree import Array, is_any_of, tree_of

NEVER = np.iinfo(np.int64).max
"""The end of a block that was not freed in the recording."""


@dataclass(frozen=True)
class Blocks:
    """Columns of the blocks of memory in a recording.

    Attributes:
        begin, end: nanoseconds; `end` is `NEVER` for a block that was not freed.
        size: bytes.
        category: a `Category`.
        row: the index of the ALLOC row, or -1 if the block was there before the recording, or its
            ALLOC row had no room.
        freed_by: the index of the FREE row, or -1.
        process, device: as in the rows.
    """

    begin: Array
    end: Array
    size: Array
    category: Array
    row: Array
    freed_by: Array
    process: Array
    device: Array

    def __len__(self) -> int:
        return len(self.size)


def device_number(device: str | int | None, recording: Recording) -> int | None:
    """Return the number that rows have for a device such as ``cpu`` or ``cuda:1``."""
    if device is None or isinstance(device, int):
        return device
    name, _, index = device.partition(":")
    types = {name: number for number, name in DEVICE_TYPES.items()}
    if name not in types or not (index or "0").isdigit():
        there = sorted({int(number) for number in np.unique(recording.rows["device"])} - {0})
        raise ValueError(
            f"`device` must be cpu, cuda:0 or another device, or its number in the recording, "
            f"which has {there}; got {device!r}"
        )
    return types[name] << 8 | int(index or 0)


def blocks_of(recording: Recording, device: str | int | None = None) -> Blocks:
    """Return the blocks of memory of a recording, or those of one device.

    A block begins with an ALLOC row and ends with the next FREE row of its address. One that is
    freed or marked without an ALLOC row was there when the recording began, or when the block
    before it at the same address was freed. One that is not freed ends where the next one at its
    address begins.

    A block has the category of its last MARK row, for its whole life. Without one it is TEMPORARY
    if it was freed before the outermost operator or node had ended in which it was made; or else
    ACTIVATION if it was made outside of a backward pass and still there when one began.

    Example:
        >>> import numpy as np
        >>> from plait_profiler._blocks import blocks_of
        >>> from plait_profiler._recording import ROW, Kind, Recording, Signature
        >>> rows = np.zeros(3, ROW)
        >>> rows["kind"] = Kind.ALLOC, Kind.ALLOC, Kind.FREE
        >>> rows["start"], rows["a"], rows["b"] = [1, 2, 5], [64, 32, 64], [4096, 8192, 4096]
        >>> blocks = blocks_of(Recording(rows, [Signature("", Kind.ALLOC)]))
        >>> blocks.size.tolist(), (blocks.end - blocks.begin)[0].item()
        ([64, 32], 4)
    """
    return _categorised(recording, marked_blocks(recording, device))


def marked_blocks(recording: Recording, device: str | int | None = None) -> Blocks:
    """Return what `blocks_of` does, but with -1 as the category of blocks without a MARK row.

    It needs less time, as it does not look at the events around.
    """
    rows = recording.rows
    which = is_any_of(rows["kind"], Kind.ALLOC, Kind.FREE, Kind.MARK)
    number = device_number(device, recording)
    if number is not None:
        which &= rows["device"] == number
    at = np.flatnonzero(which)
    address, process = rows["b"][at], rows["process"][at]
    start = rows["start"][at].astype(np.int64)
    order = np.lexsort((start, address, process))  # stable: rows of a thread stay in order
    at, address, process, start = at[order], address[order], process[order], start[order]
    kind = rows["kind"][at]
    other = np.ones(len(at), bool)
    other[1:] = (address[1:] != address[:-1]) | (process[1:] != process[:-1])
    freed, allocated = kind == Kind.FREE, kind == Kind.ALLOC
    first = other | allocated
    first[1:] |= freed[:-1]
    head = np.flatnonzero(first)
    tail = np.append(head[1:], len(at))[: len(head)] - 1
    segment = np.cumsum(first) - 1

    began = recording.begin or (int(rows["start"].min()) if len(rows) else 0)
    has_row, is_freed = allocated[head], freed[tail]
    before = np.where(other[head], began, start[head - 1])
    begin = np.where(has_row, start[head], before)
    reused = np.append(~other[head][1:], False)[: len(head)]
    after = np.append(start[head][1:], NEVER)[: len(head)]
    end = np.where(is_freed, start[tail], np.where(reused, after, NEVER))
    marks = np.flatnonzero(kind == Kind.MARK)
    marked_size = np.zeros(len(head), np.int64)
    np.maximum.at(marked_size, segment[marks], rows["duration"][at[marks]].astype(np.int64))
    values = rows["a"][at].astype(np.int64)
    size = np.where(has_row, values[head], np.where(is_freed, values[tail], marked_size))
    category = np.full(len(head), -1, np.int64)
    category[segment[marks]] = values[marks]  # in order: the last one counts
    row = np.where(has_row, at[head], -1)
    freed_by = np.where(is_freed, at[tail], -1)
    keep = size > 0
    owner, place = process[head].astype(np.int64), rows["device"][at[head]].astype(np.int64)
    blocks = Blocks(begin, end, size, category, row, freed_by, owner, place)
    return Blocks(*(getattr(blocks, f)[keep] for f in _FIELDS))


_FIELDS = ("begin", "end", "size", "category", "row", "freed_by", "process", "device")


def _categorised(recording: Recording, blocks: Blocks) -> Blocks:
    """Return the blocks with categories for those that no row marked."""
    tree = tree_of(recording)
    category = blocks.category.copy()
    open_ = np.flatnonzero((category < 0) & (blocks.row >= 0))
    row, end = blocks.row[open_], blocks.end[open_]
    around = tree.outermost(is_any_of(tree.kind, Kind.OP, Kind.NODE))[row]
    until = np.where(around >= 0, (tree.start + tree.duration)[around], -1)
    temporary = end <= until
    passes = np.flatnonzero(tree.kind == Kind.BACKWARD)
    process, start = tree.process[passes].astype(np.int64), tree.start[passes]
    activation = np.zeros(len(open_), bool)
    for each in np.unique(process):
        begins = np.append(np.sort(start[process == each]), NEVER)
        following = begins[np.searchsorted(begins[:-1], blocks.begin[open_])]
        here = tree.process[row] == each
        activation |= here & (following < NEVER) & (following <= end)
    activation &= ~tree.backward[row]
    category[open_] = np.where(
        temporary, Category.TEMPORARY, np.where(activation, Category.ACTIVATION, Category.OTHER)
    )
    category[category < 0] = Category.OTHER
    fields: dict[str, Any] = {name: getattr(blocks, name) for name in _FIELDS}
    return Blocks(**{**fields, "category": category})


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
