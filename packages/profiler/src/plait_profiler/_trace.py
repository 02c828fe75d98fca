"""Events in Chrome's trace format: chrome://tracing and Perfetto show them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from plait_profiler._events import Event, MemoryEvent

__all__ = ["write_trace"]


def write_trace(
    path: str | os.PathLike[str], events: Sequence[Event], memory: Sequence[MemoryEvent]
) -> None:
    """Write a timeline of each thread and of the allocated memory."""
    process = os.getpid()
    threads = sorted({event.thread for event in events})
    lines: list[dict[str, Any]] = [_named("process_name", process, 0, "plait")]
    lines += [
        _named("thread_name", process, t, "main thread" if t == process else f"thread {t}")
        for t in threads
    ]
    lines += [_complete(event, process) for event in events]
    held = 0
    for change in memory:
        held += change.bytes
        lines.append(
            {
                "ph": "C",
                "name": "memory allocated since the profile began",
                "pid": process,
                "ts": change.time,
                "args": {"bytes": held},
            }
        )
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"displayTimeUnit": "ns", "traceEvents": lines}, file)


def _named(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name}}


def _complete(event: Event, process: int) -> dict[str, Any]:
    args: dict[str, Any] = {}
    if event.input_shapes is not None:
        args["Input Dims"] = event.input_shapes
    if event.sequence is not None:
        args["Sequence number"] = event.sequence
    if event.failed:
        args["Failed"] = True
    return {
        "ph": "X",
        "name": event.name,
        "cat": event.category,
        "pid": process,
        "tid": event.thread,
        "ts": event.start,
        "dur": event.cpu_time_total,
        "args": args,
    }
