"""Which event caused which: a forward call its backward node, a call its work on a device."""

from __future__ import annotations

import numpy as np

from plait_profiler._recording import Kind, Recording
from plait_profiler._tree import Array, matching

__all__ = ["backward_arrows", "launch_arrows"]


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
