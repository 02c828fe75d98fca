"""Work that ran alone while other work could have run: one thread of a backward pass, a waiting
device.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plait_profiler._recording import Kind, Recording
from plait_profiler._sums import numbered
from plait_profiler._tables import Column, Table, dropped_notes, time_text
from plait_profiler._tree import Array, Tree, is_any_of, tree_of


def overlap(recording: Recording) -> Table:
    """Return the operators and nodes during which others could have run.

    A thread is busy during its outermost operators and nodes: those that are in no other one.
    These are counted:

    - ``alone``: the time in which one thread was busy and all others of its process were not, in
      backward passes in which several threads ran nodes. It says for which nodes the other threads
      waited, or that there was nothing else to do; dependencies between nodes are not known here.
    - ``device_idle``: the time in which no accelerator worked for the process, between its first
      and its last work in the recording: the device waited until the host had prepared this.

    Both are upper bounds of the time that more parallel work would save.

    Args:
        recording: of a profile.

    Returns:
        A table with ``key``, ``count``, ``time``, ``alone`` and ``device_idle`` (microseconds),
        for what has any, the largest first.

    Example:
        >>> import numpy as np
        >>> from plait_profiler._overlap import overlap
        >>> from plait_profiler._recording import ROW, Kind, Recording, Signature
        >>> rows = np.zeros(3, ROW)
        >>> rows["kind"] = Kind.BACKWARD, Kind.NODE, Kind.NODE
        >>> rows["start"], rows["duration"] = [0, 1000, 3000], [9000, 3000, 5000]
        >>> rows["depth"], rows["thread"], rows["signature"] = [0, 1, 0], [1, 1, 2], [0, 1, 2]
        >>> names = [Signature(name, Kind.NODE) for name in ("backward", "N", "M")]
        >>> [(row["key"], row["alone"]) for row in overlap(Recording(rows, names))]
        [('M', 4.0), ('N', 2.0)]
    """
    tree = tree_of(recording)
    work = is_any_of(tree.kind, Kind.OP, Kind.NODE)
    rows = np.flatnonzero(tree.outermost(work) == np.arange(len(tree)))
    alone, idle = np.zeros(len(rows)), np.zeros(len(rows))
    in_passes = in_waits = 0.0
    for process in np.unique(tree.process[rows]):
        here = tree.process[rows] == process
        spans = _spans(tree, rows[here])
        passes = _spans(tree, _shared_passes(tree, recording.rows["thread"], process))
        if len(passes):
            time, busy, passing = _counts(spans, passes)
            in_passes += _sum_over(time, passing > 0)
            alone[here] = _busy_time(time, (busy == 1) & (passing > 0), spans)
        works = np.flatnonzero((tree.kind == Kind.DEVICE) & (tree.process == process))
        if len(works):
            on_device = _spans(tree, works)
            time, _, running = _counts(spans, on_device)
            waits = running == 0
            waits &= (time >= on_device[:, 0].min()) & (time < on_device[:, 1].max())
            in_waits += _sum_over(time, waits)
            idle[here] = _busy_time(time, waits, spans)
    columns = [
        Column("key", "Name", left=True, width=70),
        Column("count", "# of Calls"),
        Column("time", "Time", time_text),
        Column("alone", "Alone", time_text),
        Column("device_idle", "Device idle", time_text),
    ]
    notes = [
        f"Backward passes of several threads: {time_text(in_passes / 1e3)}, "
        f"with one thread busy: {time_text(float(alone.sum()) / 1e3)}",
        f"Accelerators idle between their first and last work: {time_text(in_waits / 1e3)}",
        *dropped_notes(recording),
    ]
    table = _by_name(recording, rows, alone, idle)
    return Table(columns, table, title="What others could have run beside", notes=notes)


def _spans(tree: Tree, rows: Array) -> Array:
    """Return begins and ends in two columns."""
    return np.stack([tree.start[rows], tree.start[rows] + tree.duration[rows]], 1)


def _shared_passes(tree: Tree, thread: Array, process: int) -> Array:
    """Return the BACKWARD rows of a process in whose time nodes of several threads began."""
    of_process = tree.process == process
    nodes = np.flatnonzero((tree.kind == Kind.NODE) & of_process)
    nodes = nodes[np.argsort(tree.start[nodes], kind="stable")]
    rows = np.flatnonzero((tree.kind == Kind.BACKWARD) & of_process)
    borders = np.searchsorted(tree.start[nodes], _spans(tree, rows))
    several = [len(np.unique(thread[nodes[first:last]])) > 1 for first, last in borders]
    return np.asarray(rows[np.array(several, bool)])


def _counts(first: Array, second: Array) -> tuple[Array, Array, Array]:
    """Return all begins and ends, and how many spans of each kind go on from each to the next."""
    time = np.unique(np.concatenate([first.ravel(), second.ravel()]))
    counts = []
    for spans in (first, second):
        change = np.zeros(len(time), np.int64)
        np.add.at(change, np.searchsorted(time, spans[:, 0]), 1)
        np.add.at(change, np.searchsorted(time, spans[:, 1]), -1)
        counts.append(np.cumsum(change))
    return time, counts[0], counts[1]


def _sum_over(time: Array, flag: Array) -> float:
    """Return for how long the flag is true, nanoseconds."""
    return float((np.diff(time, append=time[-1]) * flag).sum())


def _busy_time(time: Array, flag: Array, spans: Array) -> Array:
    """Return for each span for how long the flag is true in it, nanoseconds."""
    until = np.concatenate([[0], np.cumsum(np.diff(time) * flag[:-1])])
    return np.asarray(
        until[np.searchsorted(time, spans[:, 1])] - until[np.searchsorted(time, spans[:, 0])]
    )


def _by_name(recording: Recording, rows: Array, alone: Array, idle: Array) -> list[dict[str, Any]]:
    tree = tree_of(recording)
    number, first = numbered(recording.signatures, lambda signature: signature.name)
    key = number[tree.signature[rows]]
    sums = [np.bincount(key, x, len(first)) / 1e3 for x in (tree.duration[rows], alone, idle)]
    counts = np.bincount(key, minlength=len(first))
    table = [
        {
            "key": recording.signatures[first[i]].name,
            "count": int(counts[i]),
            "time": float(sums[0][i]),
            "alone": float(sums[1][i]),
            "device_idle": float(sums[2][i]),
        }
        for i in np.flatnonzero(sums[1] + sums[2] > 0)
    ]
    return sorted(table, key=lambda row: -max(row["alone"], row["device_idle"]))
