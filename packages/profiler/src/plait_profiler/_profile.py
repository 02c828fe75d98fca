"""The context manager `profile`."""

from __future__ import annotations

import enum
import os
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

from plait_profiler._averages import EventAverage, EventList
from plait_profiler._events import Event, assemble
from plait_profiler._recorder import Kind, Recorder
from plait_profiler._trace import write_trace

__all__ = ["ProfilerActivity", "profile"]


class ProfilerActivity(enum.Enum):
    """The activities that a profile can record.

    Example:
        >>> from plait_profiler import ProfilerActivity, profile
        >>> with profile(activities=[ProfilerActivity.CPU]) as prof:
        ...     pass
        >>> len(prof.events())
        0
    """

    CPU = 0


class profile:  # noqa: N801
    """Records operators, backward nodes and ranges of all threads while its block runs.

    Args:
        activities: only `ProfilerActivity.CPU` is supported.
        record_shapes: keep the shapes of operators' arguments.
        profile_memory: record allocations and frees.
        on_trace_ready: called with this profile at the end of the block.
        capacity: the limit of events for each thread; further events replace the oldest.

    Raises:
        ValueError: if ``capacity`` isn't positive.
        NotImplementedError: for other activities.

    Example:
        >>> from plait_profiler import profile, record_function
        >>> with profile() as prof:
        ...     with record_function("work"):
        ...         total = sum(range(1000))
        >>> [(average.key, average.count) for average in prof.key_averages()]
        [('work', 1)]
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        on_trace_ready: Callable[[profile], Any] | None = None,
        capacity: int = 1 << 18,
    ) -> None:
        for activity in activities or ():
            if activity is not ProfilerActivity.CPU:
                raise NotImplementedError(
                    f"profile: only ProfilerActivity.CPU can be recorded; got {activity!r}"
                )
        if capacity < 1:
            raise ValueError(f"profile: `capacity` must be at least 1; got {capacity}")
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.on_trace_ready = on_trace_ready
        self.capacity = capacity
        self._recorder: Recorder | None = None
        self._events: EventList[Event] | None = None
        self._memory: list[Any] = []

    def start(self) -> None:
        """Begin to record; earlier recordings of this profile are dropped."""
        if self._recorder is not None:
            raise RuntimeError("profile: it runs already")
        self._events = None
        kinds = Kind.OP | Kind.NODE | Kind.BACKWARD | Kind.RANGE
        if self.profile_memory:
            kinds |= Kind.ALLOC | Kind.FREE
        self._recorder = Recorder(kinds, self.capacity, self.record_shapes)

    def stop(self) -> None:
        """End the recording."""
        if self._recorder is None:
            raise RuntimeError("profile: it was not started")
        recorder, self._recorder = self._recorder, None
        raw, dropped = recorder.stop()
        events, self._memory = assemble(raw)
        self._events = EventList(
            events, shapes=self.record_shapes, memory=self.profile_memory, dropped=dropped
        )

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        if self.on_trace_ready is not None and kind is None:
            self.on_trace_ready(self)

    def events(self) -> EventList[Event]:
        """Return all events in the order of their begins.

        Raises:
            RuntimeError: before the block has ended.
        """
        if self._events is None:
            raise RuntimeError("profile: there are no events before its block has ended")
        return self._events

    def key_averages(self, group_by_input_shape: bool = False) -> EventList[EventAverage]:
        """Return one average for each name; see `EventList.key_averages`."""
        return self.events().key_averages(group_by_input_shape)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write a file for chrome://tracing or Perfetto: a timeline of each thread."""
        write_trace(path, self.events(), self._memory)
