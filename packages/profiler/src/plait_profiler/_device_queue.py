"""How busy accelerators were, and how far the host was ahead of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait_profiler._recording import Recording
from plait_profiler._tables import Column, Table, dropped_notes, percent, time_text
from plait_profiler._tracks import device_name, queue_times
from plait_profiler._tree import Array, tree_of


class DeviceWork(NamedTuple):
    """The work of one process on one device, in nanoseconds, by its begin.

    Attributes:
        queued: when the host put it into its stream.
        begin: when the device began it.
        end: when the device ended it.
    """

    queued: Array
    begin: Array
    end: Array


def device_work(recording: Recording) -> dict[tuple[int, int], DeviceWork]:
    """Return the work on accelerators by process and device.

    A row without a time in the queue was put there when the call that launched it began; without
    that call too, when it began itself.
    """
    rows, tree = recording.rows, tree_of(recording)
    device_rows, calls = tree.device_rows, tree.launched_by
    begin = tree.start[device_rows]
    waited = queue_times(rows[device_rows]).astype(np.int64)
    called = np.where(calls >= 0, tree.start[calls], begin)
    queued = np.where(waited > 0, begin - waited, np.minimum(called, begin))
    group = (rows["process"][device_rows].astype(np.int64) << 16) + rows["device"][device_rows]
    result = {}
    for key in np.unique(group).tolist():
        here = np.flatnonzero(group == key)
        here = here[np.argsort(begin[here], kind="stable")]
        end = begin[here] + tree.duration[device_rows[here]]
        result[key >> 16, key & 0xFFFF] = DeviceWork(queued[here], begin[here], end)
    return result


def queue_depths(recording: Recording) -> dict[tuple[int, int], tuple[Array, Array]]:
    """Return by process and device: the times at which the depth of the queue changes, and the
    depth from each on.

    The depth is the number of pieces of work that the host has put into the device's streams and
    that have not ended. At 0 the device waits for the host.

    Example:
        >>> from plait_profiler._recording import ROW, Kind, Recording, Signature
        >>> rows = np.zeros(2, ROW)
        >>> rows["kind"], rows["device"] = Kind.DEVICE, 2 << 8
        >>> rows["start"], rows["duration"] = [100, 400], [300, 200]
        >>> rows["b"] = np.array([80, 350]) << 16
        >>> depths = queue_depths(Recording(rows, [Signature("mm", Kind.DEVICE)]))
        >>> [values.tolist() for values in depths[0, 2 << 8]]
        [[20, 50, 400, 600], [1, 2, 1, 0]]
    """
    return {key: _counts(w.queued, w.end) for key, w in device_work(recording).items()}


def device_queues(recording: Recording) -> Table:
    """Return for each accelerator how busy it was and how far the host was ahead of it.

    Times are of the interval from the begin of the device's first work to the end of its last one.

    Args:
        recording: of a profile.

    Returns:
        A table with a row for each process and device: ``device``, ``process``, ``count`` (pieces
        of work), ``time`` (of the interval), ``busy`` (the time in which the device worked),
        ``utilization`` (``busy / time``), ``idle`` (the rest), ``longest_idle``, ``mean_depth`` and
        ``most_depth`` (work that was put into streams and had not ended), ``ahead`` and
        ``most_ahead`` (how long work waited in its stream, in the mean and at most). Times are in
        microseconds.

    Example:
        >>> from plait_profiler._recording import ROW, Kind, Recording, Signature
        >>> rows = np.zeros(2, ROW)
        >>> rows["kind"], rows["device"] = Kind.DEVICE, 2 << 8
        >>> rows["start"], rows["duration"] = [1000, 5000], [3000, 1000]
        >>> (row,) = device_queues(Recording(rows, [Signature("mm", Kind.DEVICE)]))
        >>> row["device"], row["utilization"], row["longest_idle"]
        ('cuda:0', 0.8, 1.0)
    """
    columns = [
        Column("device", "Device", left=True),
        Column("process", "Process"),
        Column("count", "# of Works"),
        Column("time", "Time", time_text),
        Column("busy", "Busy", time_text),
        Column("utilization", "Utilization", percent),
        Column("idle", "Idle", time_text),
        Column("longest_idle", "Longest idle", time_text),
        Column("mean_depth", "Mean depth", "{:.1f}".format),
        Column("most_depth", "Most depth"),
        Column("ahead", "Host ahead", time_text),
        Column("most_ahead", "Most ahead", time_text),
    ]
    works = device_work(recording).items()
    rows = [
        {"device": device_name(device), "process": process, **_summary(work)}
        for (process, device), work in works
    ]
    return Table(columns, rows, title="Queues of devices", notes=dropped_notes(recording))


def _counts(begin: Array, end: Array) -> tuple[Array, Array]:
    """Return the times at which the number of open intervals changes, and the number from each."""
    times, place = np.unique(np.concatenate([begin, end]), return_inverse=True)
    change = np.zeros(len(times), np.int64)
    np.add.at(change, place.reshape(-1), np.repeat([1, -1], len(begin)))
    return times, np.cumsum(change)


def _summary(work: DeviceWork) -> dict[str, Any]:
    first, last = int(work.begin.min()), int(work.end.max())
    times, running = _counts(work.begin, work.end)
    lengths = np.diff(times)
    idle = lengths[running[:-1] == 0]
    depth_times, depths = _counts(work.queued, work.end)
    inside = np.diff(np.clip(depth_times, first, last))
    length = last - first
    ahead = work.begin - work.queued
    return {
        "count": len(work.begin),
        "time": length / 1e3,
        "busy": float(length - idle.sum()) / 1e3,
        "utilization": float(1 - idle.sum() / length) if length else 1.0,
        "idle": float(idle.sum()) / 1e3,
        "longest_idle": float(idle.max(initial=0)) / 1e3,
        "mean_depth": float((inside * depths[:-1]).sum() / length) if length else 0.0,
        "most_depth": int(depths.max()),
        "ahead": float(ahead.mean()) / 1e3,
        "most_ahead": float(ahead.max()) / 1e3,
    }
