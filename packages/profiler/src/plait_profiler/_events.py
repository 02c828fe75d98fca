"""Events: the time, the thread and the parent of operators, backward nodes and ranges."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from plait_profiler._recorder import Kind, Raw

__all__ = ["Event", "MemoryEvent", "assemble"]

CATEGORIES = {
    Kind.OP: "operator",
    Kind.NODE: "backward",
    Kind.BACKWARD: "backward",
    Kind.RANGE: "range",
}


@dataclass(eq=False)
class Event:
    """One operator call, backward node or range. Times are in microseconds, memory in bytes.

    Attributes:
        name: of the operator or node (``mul``, ``MulBackward``), or as given to a range.
        category: ``operator``, ``backward`` or ``range``.
        thread: the system's number of the thread.
        start, end: of the monotonic clock.
        input_shapes: one for each argument, empty for other arguments than tensors; None if not
            recorded.
        self_cpu_memory_usage: allocated minus freed, without nested events.
        failed: it ended with an error.
        sequence: of a backward node, else None.
        cpu_parent, cpu_children: the event around this one on its thread, and those within.

    Example:
        >>> from plait_profiler import profile, record_function
        >>> with profile() as prof:
        ...     with record_function("outer"), record_function("inner"):
        ...         total = sum(range(1000))
        >>> inner = prof.events()[1]
        >>> inner.name, inner.category, inner.cpu_parent.name
        ('inner', 'range', 'outer')
        >>> 0 < inner.cpu_time_total <= inner.cpu_parent.cpu_time_total
        True
    """

    name: str
    category: str
    thread: int
    start: float
    end: float
    input_shapes: list[Any] | None = None
    self_cpu_memory_usage: int = 0
    failed: bool = False
    sequence: int | None = None
    cpu_parent: Event | None = field(default=None, repr=False)
    cpu_children: list[Event] = field(default_factory=list, repr=False)

    @property
    def cpu_time_total(self) -> float:
        """From begin to end."""
        return self.end - self.start

    @property
    def self_cpu_time_total(self) -> float:
        """The time from begin to end without nested events on this thread."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def cpu_memory_usage(self) -> int:
        """Allocated minus freed, with nested events."""
        inner = sum(child.cpu_memory_usage for child in self.cpu_children)
        return self.self_cpu_memory_usage + inner


@dataclass(frozen=True)
class MemoryEvent:
    """A block allocated (bytes above 0) or freed (below), at a time in microseconds."""

    time: float
    bytes: int
    address: int
    thread: int


def assemble(raw: Sequence[Raw]) -> tuple[list[Event], list[MemoryEvent]]:
    """Return events sorted by begin, linked to parents and children, and memory events."""
    events: list[Event] = []
    memory: list[MemoryEvent] = []
    shapes: dict[str, list[Any]] = {}
    open_events: dict[int, list[Event]] = {}
    # of events with the same begin the outer one ends later
    for r in sorted(raw, key=lambda r: (r.start, -r.end)):
        stack = open_events.setdefault(r.thread, [])
        start, end = r.start / 1e3, r.end / 1e3
        while stack and (stack[-1].end < end or stack[-1].end <= start):
            stack.pop()
        parent = stack[-1] if stack else None
        if r.kind in (Kind.ALLOC, Kind.FREE):
            change = r.a if r.kind == Kind.ALLOC else -r.a
            memory.append(MemoryEvent(start, change, r.b, r.thread))
            if parent:
                parent.self_cpu_memory_usage += change
            continue
        if r.shapes and r.shapes not in shapes:
            shapes[r.shapes] = json.loads(r.shapes)
        event = Event(
            r.name,
            CATEGORIES[Kind(r.kind)],
            r.thread,
            start,
            end,
            shapes.get(r.shapes),
            failed=r.status < 0,
            sequence=r.a if r.kind == Kind.NODE else None,
            cpu_parent=parent,
        )
        if parent:
            parent.cpu_children.append(event)
        stack.append(event)
        events.append(event)
    return events, memory
