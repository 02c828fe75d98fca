"""The cost of a profile: events while it runs, reports, and files."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from timing import Figure

import plait
from plait.profiler import profile

__all__ = ["FIGURES", "cases"]

EVENTS = 10**6
ROUNDS = 5
ROW = 64  # bytes of an event


def calls(count: int) -> float:
    """Seconds of so many calls of a small operator."""
    x, abs_ = plait.ones(1), plait.abs
    begin = time.perf_counter()
    for _ in range(count):
        abs_(x)
    return time.perf_counter() - begin


def profiled(count: int) -> tuple[float, Any]:
    """Seconds of the same calls with a profile around them, its begin and end included."""
    begin = time.perf_counter()
    with profile(capacity=2 * count) as prof:
        calls(count)
    return time.perf_counter() - begin, prof


def seconds(function: Callable[[], Any]) -> float:
    """Of one call."""
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def recording() -> Iterator[Figure]:
    """The cost of an event, in turns with the same calls alone."""
    alone, beside = [], []
    for _ in range(ROUNDS):
        alone.append(calls(EVENTS))
        beside.append(profiled(EVENTS)[0])
    extra = sorted(b - a for a, b in zip(alone, beside, strict=True))[ROUNDS // 2]
    note = f"of {EVENTS:,}, median of {ROUNDS}"
    yield Figure("an event, start and stop included", extra / EVENTS * 1e6, 0.3, "us", note)


def reports() -> Iterator[Figure]:
    """Reports and files of a million events."""
    prof = profiled(EVENTS)[1]
    rows = prof.recording().rows
    yield Figure("an event's row", rows.nbytes / len(rows), ROW, "bytes")
    yield Figure("key_averages of a million events", seconds(prof.key_averages), 1.0, "s")
    with tempfile.TemporaryDirectory() as folder:
        trace, native = (Path(folder) / name for name in ("trace.json", "profile.plaitprof"))
        took = seconds(lambda: prof.export_chrome_trace(trace))
        yield Figure("an event in a Chrome trace", took / EVENTS * 1e6, 1.0, "us")
        prof.save(native)
        size = os.path.getsize(native) / 1e6
        yield Figure("10 million events in a native file", 10 * size, 400, "MB", "ten times 10^6")


FIGURES = {"recording": recording, "reports": reports}


def cases() -> Iterator[Any]:
    """None: there are figures alone."""
    return iter(())
