"""The use of memory over time: by category, line, module and operator."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from plait_profiler._blocks import NEVER, blocks_of
from plait_profiler._recording import Category, Kind, Recording
from plait_profiler._sums import line_of, numbered
from plait_profiler._tables import Column, Table, bytes_text, dropped_notes, percent, time_text
from plait_profiler._tree import Array, contexts_of, is_any_of, tree_of

_BY = ("line", "module", "operator", "category", "block")


@dataclass(frozen=True)
class MemoryTimeline:
    """Bytes of each category over time.

    Attributes:
        times: microseconds of the monotonic clock, ascending.
        bytes: an array with a row for each time, and a column for each `Category` in the order of
            its numbers; what is held from that time to the next one.

    Example:
        >>> import numpy as np
        >>> from plait_profiler import MemoryTimeline
        >>> timeline = MemoryTimeline(np.array([5.0]), np.array([[0, 64, 0, 0, 0, 0, 0]]))
        >>> {category.name: held for category, held in timeline.at(7).items() if held}
        {'PARAMETER': 64}
    """

    times: Array
    bytes: Array

    @property
    def totals(self) -> Array:
        """The bytes of all categories."""
        return np.asarray(self.bytes.sum(1))

    def at(self, time: float) -> dict[Category, int]:
        """Return the bytes of each category at a time; all 0 before the first one.

        Args:
            time: The time.
        """
        index = int(np.searchsorted(self.times, time, side="right")) - 1
        sizes = self.bytes[index] if index >= 0 else np.zeros(len(Category), np.int64)
        return {category: int(sizes[category]) for category in Category}


def memory_timeline(recording: Recording, device: str | int | None = None) -> MemoryTimeline:
    """Return the bytes of each category over time, as Figure 2 of PyTorch's memory profiler.

    Args:
        recording: of a profile with ``profile_memory=True``.
        device: ``cpu``, ``cuda:0``; None takes all together.

    Example:
        >>> import numpy as np
        >>> from plait_profiler._memory import memory_timeline
        >>> from plait_profiler._recording import ROW, Category, Kind, Recording, Signature
        >>> rows = np.zeros(2, ROW)
        >>> rows["kind"] = Kind.ALLOC, Kind.FREE
        >>> rows["start"], rows["a"], rows["b"] = [1000, 5000], 64, 4096
        >>> timeline = memory_timeline(Recording(rows, [Signature("", Kind.ALLOC)]))
        >>> timeline.times.tolist(), timeline.totals.tolist()
        ([1.0, 5.0], [64, 0])
    """
    return MemoryProfile(recording, device).timeline


class MemoryProfile:
    """Answers about the memory of a recording. Times are microseconds of the monotonic clock, as
    those of events.

    Blocks that were there before the recording are known if they were freed or marked in it:
    parameters and gradients are marked by the backward pass and the optimizer.

    Args:
        recording: of a profile with ``profile_memory=True``.
        device: ``cpu``, ``cuda:0``; None takes all together.

    Raises:
        ValueError: if there is no such device.

    Example:
        >>> import numpy as np
        >>> from plait_profiler import MemoryProfile
        >>> from plait_profiler._recording import ROW, Context, Kind, Recording, Signature
        >>> rows = np.zeros(3, ROW)
        >>> rows["kind"] = Kind.ALLOC, Kind.ALLOC, Kind.FREE
        >>> rows["start"], rows["a"], rows["b"] = [1000, 2000, 5000], [64, 32, 64], [1, 2, 1]
        >>> rows["context"] = [1, 2, 0]
        >>> lines = [Context(stack=(("net.py", line, "forward"),)) for line in (7, 8)]
        >>> recording = Recording(rows, [Signature("", Kind.ALLOC)], [Context(), *lines])
        >>> memory = MemoryProfile(recording)
        >>> memory.peak_bytes, memory.peak_time
        (96, 2.0)
        >>> memory.at_peak().values("key")
        ['net.py(7): forward', 'net.py(8): forward']
        >>> memory.leaks(0, 9)[0]["bytes"]
        32
    """

    def __init__(self, recording: Recording, device: str | int | None = None) -> None:
        self._recording = recording
        self.blocks = blocks_of(recording, device)

    @functools.cached_property
    def timeline(self) -> MemoryTimeline:
        """The bytes of each category over time."""
        blocks = self.blocks
        ended = blocks.end < NEVER
        time = np.concatenate([blocks.begin, blocks.end[ended]])
        change = np.concatenate([blocks.size, -blocks.size[ended]])
        category = np.concatenate([blocks.category, blocks.category[ended]])
        times, index = np.unique(time, return_inverse=True)
        index = index.reshape(-1)
        sizes = np.zeros((len(times), len(Category)), np.int64)
        for each in np.unique(category):
            here = category == each
            sizes[:, each] = np.bincount(index[here], change[here], len(times))
        return MemoryTimeline(times / 1e3, np.cumsum(sizes, axis=0))

    @functools.cached_property
    def _peak(self) -> tuple[float, int]:
        totals = self.timeline.totals
        if not len(totals):
            return 0.0, 0
        at = int(totals.argmax())
        return float(self.timeline.times[at]), int(totals[at])

    @property
    def peak_bytes(self) -> int:
        """The most bytes that were held at once."""
        return self._peak[1]

    @property
    def peak_time(self) -> float:
        """When most bytes were held, for the first time."""
        return self._peak[0]

    def at_peak(self, by: str = "line") -> Table:
        """Return the holders of memory at its peak; see `live_at`.

        Args:
            by: What blocks are grouped by.
        """
        return self._table(self._live(self.peak_time), by, "Memory at its peak", self.peak_time)

    def live_at(self, time: float, by: str = "line") -> Table:
        """Return the holders of memory at a time, largest first.

        Args:
            time: microseconds of the monotonic clock.
            by: ``line``: the innermost line of the program that made the memory, outside of
                plait's packages; in a backward pass that of the forward call. ``module``;
                ``operator``: the innermost one; ``category``; or ``block`` for each block.

        Returns:
            A table with ``key``, ``category``, ``bytes``, ``blocks`` and ``share`` of all.
        """
        return self._table(self._live(time), by, "Memory", time)

    def leaks(self, begin: float, end: float, by: str = "line") -> Table:
        """Return what was allocated between two times and not freed before the second one.

        Args:
            begin: The time from which blocks count.
            end: The time at which they are still there.
            by: What blocks are grouped by.
        """
        if end < begin:
            raise ValueError(f"leaks: `end` must not be before `begin`; got {begin} and {end}")
        first, last = _nanoseconds(begin), _nanoseconds(end)
        blocks = self.blocks
        mask = (blocks.row >= 0) & (blocks.begin >= first) & (blocks.begin <= last)
        which = np.flatnonzero(mask & (blocks.end > last))
        return self._table(which, by, "Memory allocated and not freed", end)

    def _live(self, time: float) -> Array:
        at = _nanoseconds(time)
        return np.flatnonzero((self.blocks.begin <= at) & (self.blocks.end > at))

    def _table(self, which: Array, by: str, title_start: str, time: float) -> Table:
        if by not in _BY:
            raise ValueError(f"memory: `by` must be one of {', '.join(_BY)}; got {by!r}")
        size = self.blocks.size[which]
        total = int(size.sum())
        since = time - self._began() / 1e3
        title = f"{title_start}: {bytes_text(total)} at {time_text(since)} of the recording"
        rows = self._each(which) if by == "block" else self._grouped(which, by)
        for row in rows:
            row["share"] = row["bytes"] / total if total else 0.0
        rows.sort(key=lambda row: -row["bytes"])
        columns = [
            Column("key", by.capitalize(), left=True, width=70),
            Column("category", "Category", left=True),
            Column("bytes", "Memory", bytes_text),
            Column("blocks", "Blocks"),
            Column("share", "%", percent),
        ]
        if by == "category":
            del columns[1]
        if by == "block":
            columns[3:4] = [
                Column("operator", "Operator", left=True, width=40),
                Column("module", "Module", left=True, width=40),
                Column("line", "Line", left=True, width=70),
            ]
        notes = dropped_notes(self._recording)
        if not len(self.blocks):
            notes.append("The recording has no allocations: profile(profile_memory=True)")
        return Table(columns, rows, title=title, notes=notes)

    def _began(self) -> int:
        start = tree_of(self._recording).start
        return self._recording.begin or (int(start.min()) if len(start) else 0)

    def _grouped(self, which: Array, by: str) -> list[dict[str, Any]]:
        size, category = self.blocks.size[which], self.blocks.category[which]
        if by == "category":
            number, names = category, [_named(each) for each in Category]
        else:
            number, names = self._owners(by)
            number = number[which]
        result, index = np.unique(number * len(Category) + category, return_inverse=True)
        index = index.reshape(-1)
        amounts = np.bincount(index, size, len(result)).astype(np.int64)
        blocks = np.bincount(index, minlength=len(result))
        return [
            {
                "key": names[key // len(Category)],
                "category": _named(Category(key % len(Category))),
                "bytes": int(amount),
                "blocks": int(count),
            }
            for key, amount, count in zip(result.tolist(), amounts, blocks, strict=True)
        ]

    def _each(self, which: Array) -> list[dict[str, Any]]:
        owners = {by: self._owners(by) for by in ("operator", "module", "line")}
        rows = self._recording.rows
        result = []
        for block in which.tolist():
            row = max(self.blocks.row[block], self.blocks.freed_by[block])
            address = hex(int(rows["b"][row])) if row >= 0 else "(before the recording)"
            result.append(
                {
                    "key": address,
                    "category": _named(Category(int(self.blocks.category[block]))),
                    "bytes": int(self.blocks.size[block]),
                    "blocks": 1,
                    **{by: names[number[block]] for by, (number, names) in owners.items()},
                }
            )
        return result

    def _owners(self, by: str) -> tuple[Array, list[str]]:
        """Return for each block the number of its owner, and the owners' names."""
        recording, tree = self._recording, tree_of(self._recording)
        row = self.blocks.row
        if by == "operator":
            number, names = self._operators()
        else:
            contexts = recording.contexts
            each, first = numbered(contexts, lambda c: c.module if by == "module" else line_of(c))
            texts = [contexts[i].module if by == "module" else line_of(contexts[i]) for i in first]
            names = [text or "(none)" for text in texts]
            number = each[contexts_of(recording)] if len(tree) else np.zeros(0, np.int64)
        names.append("(before the recording)")
        return np.where(row >= 0, number[row], len(names) - 1), names

    def _operators(self) -> tuple[Array, list[str]]:
        recording, tree = self._recording, tree_of(self._recording)
        around = tree.nearest(tree.kind == Kind.OP)
        around = np.where(around >= 0, around, tree.parents)
        each, first = numbered(recording.signatures, lambda signature: signature.name)
        names = [recording.signatures[i].name for i in first]
        separate = tree.backward & ~is_any_of(tree.kind, Kind.NODE, Kind.BACKWARD)
        number = each[tree.signature[around]] * 2 + separate[around]
        number = np.where(around >= 0, number, 2 * len(names))
        texts = [text for name in names for text in (name, f"{name} (backward)")]
        return number, [*texts, "(outside of operators)"]


def _nanoseconds(time: float) -> int:
    return round(min(max(time * 1e3, 0.0), 2.0**62))  # below NEVER, also for infinity


def _named(category: Category) -> str:
    return category.name.lower().replace("_", " ")
