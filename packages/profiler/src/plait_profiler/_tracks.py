"""The lines of a timeline: one for each thread of the host and each stream of a device; and the
arrows between their events: from a forward call to its backward node, from a call to its work on a
device.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from plait_profiler._recording import DEVICE_TYPES, Kind, Recording, is_span
from plait_profiler._tree import Array, matching


@dataclass(frozen=True, eq=False)
class Track:
    """Events that do not overlap, unless one is within the other.

    Attributes:
        name: for people.
        process: whose events they are.
        thread: the system's number of it; 0 for steps and for work on a device.
        device: as in a row; 0 for threads of the host and for steps.
        rows: indices of the recording's rows, by their begin.
    """

    name: str
    process: int
    thread: int
    device: int
    rows: Array


def device_name(device: int) -> str:
    """Return the name of a row's device, as programs write it.

    Example:
        >>> device_name(2 << 8 | 1)
        'cuda:1'
    """
    kind = DEVICE_TYPES.get(device >> 8, f"device type {device >> 8}")
    return kind if device >> 8 == 1 else f"{kind}:{device & 255}"


def thread_name(recording: Recording, process: int, thread: int) -> str:
    """Return the name that a thread was given, or one from its number."""
    default = "main thread" if process == thread else f"thread {thread}"
    return recording.threads.get((process, thread), default)


def tracks(recording: Recording) -> list[Track]:
    """Return the tracks: of each process its steps, its threads, then its devices.

    Work on a device that overlaps other work of the same stream is put onto further tracks.
    """
    rows = recording.rows
    result = []
    spans = is_span(rows["kind"])
    for process in np.unique(rows["process"]).tolist():
        here = rows["process"] == process
        steps = np.flatnonzero(here & (rows["kind"] == Kind.STEP))
        if len(steps):
            steps = steps[np.argsort(rows["start"][steps], kind="stable")]
            result.append(Track("steps", process, 0, 0, steps))
        hosts = np.flatnonzero(here & spans)
        threads = rows["thread"][hosts]
        for thread in sorted(np.unique(threads).tolist(), key=lambda t: (t != process, t)):
            name = thread_name(recording, process, thread)
            result.append(Track(name, process, thread, 0, hosts[threads == thread]))
        result += _device_tracks(recording, process, here)
    return result


_STREAM = np.uint64(0xFFFF)  # bits of `b` of work on a device; above them is the time in the queue


def queue_times(rows: Array) -> Array:
    """Return how long rows of work on a device were in the queue, in nanoseconds; 0: unknown."""
    times: Array = rows["b"] >> np.uint64(16)
    return times


def _device_tracks(recording: Recording, process: int, here: Array) -> list[Track]:
    rows = recording.rows
    work = np.flatnonzero(here & (rows["kind"] == Kind.DEVICE))
    work = work[np.argsort(rows["start"][work], kind="stable")]
    result = []
    for device in np.unique(rows["device"][work]).tolist():
        on_device = work[rows["device"][work] == device]
        streams = rows["b"][on_device] & _STREAM
        for stream in np.unique(streams).tolist():
            name = device_name(device) + (f" stream {stream}" if stream else "")
            lanes = _lanes(recording, on_device[streams == stream])
            for number, lane in enumerate(lanes):
                suffix = f" ({number + 1})" if number else ""
                result.append(Track(name + suffix, process, 0, device, lane))
    return result


def _lanes(recording: Recording, work: Array) -> list[Array]:
    """Split rows, ordered by begin, so that none of a lane begins before the one before it ends."""
    start = recording.rows["start"][work]
    end = start + recording.rows["duration"][work]
    if not (start[1:] < np.maximum.accumulate(end)[:-1]).any():
        return [work]
    lane_of = np.zeros(len(work), np.int64)
    free: list[tuple[int, int]] = []
    for at, (begin, stop) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        lane = heapq.heappop(free)[1] if free and free[0][0] <= begin else len(free)
        heapq.heappush(free, (stop, lane))
        lane_of[at] = lane
    return [work[lane_of == lane] for lane in range(int(lane_of.max()) + 1)]


def backward_arrows(recording: Recording) -> tuple[Array, Array]:
    """Return pairs of rows: the call that recorded a node, and the node when it ran.

    The call is the outermost one with the node's number. A node that ran twice is in two pairs.
    """
    rows = recording.rows
    calls = np.flatnonzero((rows["kind"] == Kind.OP) & (rows["link"] != 0))
    nodes = np.flatnonzero((rows["kind"] == Kind.NODE) & (rows["link"] != 0))
    return _pairs(recording, "link", calls, nodes)


def launch_arrows(recording: Recording) -> tuple[Array, Array]:
    """Return pairs of rows: the call that launched work on a device, and that work."""
    rows = recording.rows
    calls = np.flatnonzero((rows["kind"] == Kind.OP) & (rows["a"] != 0))
    works = np.flatnonzero((rows["kind"] == Kind.DEVICE) & (rows["a"] != 0))
    return _pairs(recording, "a", calls, works)


def _pairs(
    recording: Recording, column: str, sources: Array, targets: Array
) -> tuple[Array, Array]:
    """Return the sources and targets of one process that have the same number in a column."""
    process, number = recording.rows["process"], recording.rows[column]
    keys = process[sources], number[sources]
    matches = matching(keys, (process[targets], number[targets]), sources)
    return matches[matches >= 0], targets[matches >= 0]
