"""The results of a recording: tables, timelines, memory, files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plait_profiler._averages import EventAverage, EventList
    from plait_profiler._events import Event
    from plait_profiler._memory import MemoryProfile
    from plait_profiler._peak import Peak
    from plait_profiler._recording import Recording
    from plait_profiler._tables import Table

Path = str | os.PathLike[str]

_WRITERS = {
    ".html": "export_html",
    ".json": "export_chrome_trace",
    ".json.gz": "export_chrome_trace",
    ".pftrace": "export_perfetto_trace",
    ".perfetto-trace": "export_perfetto_trace",
    ".plaitprof": "save",
}
ENDINGS = tuple(_WRITERS)
"""The suffixes of paths that `Recorded.export` accepts."""


class Recorded:
    """A recording with all that it answers; `profile` is one, and `load` reads one from a file.

    Args:
        recording: the events.

    Example:
        >>> import plait_profiler
        >>> from plait_profiler import profile, record_function
        >>> with profile() as prof, record_function("work"):
        ...     pass
        >>> prof.save("one.plaitprof")
        >>> again = plait_profiler.load("one.plaitprof")
        >>> [average.key for average in again.key_averages()]
        ['work']
    """

    def __init__(self, recording: Recording) -> None:
        self._recording: Recording | None = recording
        self._metadata: dict[str, Any] = {}

    def recording(self) -> Recording:
        """Return the events, as columns."""
        assert self._recording is not None
        return self._recording

    # ---- tables --------------------------------------------------------------------------------

    def events(self) -> EventList[Event]:
        """Return all events in the order of their begins.

        Raises:
            RuntimeError: before there is a recording.
        """
        from plait_profiler._events import events

        return events(self.recording())

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, *, by: str = "name"
    ) -> EventList[EventAverage]:
        """Return one average for each name; see `EventList.key_averages`.

        Args:
            group_by_input_shape: an average for each name and shapes of the arguments.
            group_by_stack_n: if above 0, an average for each name and so many innermost lines of
                the program's stack.
            by: ``name``, ``signature``, ``module`` or ``line``: what the averages are of.
        """
        return self.events().key_averages(group_by_input_shape, group_by_stack_n, by=by)

    def memory(self) -> MemoryProfile:
        """Return what the memory was for, at its peak, over time, and what was not freed.

        The profile must have been made with ``profile_memory=True``.
        """
        from plait_profiler._memory import MemoryProfile

        return MemoryProfile(self.recording())

    def far_from_peak(self, peak: Peak | None = None, *, device: str = "cpu") -> Table:
        """Return which operators lose most time against what the machine reaches.

        Args:
            peak: to compare with; None measures it, see `machine_peak`.
            device: ``cpu``, or one whose time is compared: ``cuda:0``.
        """
        from plait_profiler._peak import far_from_peak

        return far_from_peak(self.recording(), peak, device=device)

    def overlap(self) -> Table:
        """Return during what other threads of a backward pass, or an accelerator, waited."""
        from plait_profiler._overlap import overlap

        return overlap(self.recording())

    def device_queues(self) -> Table:
        """Return how busy each accelerator was, and how far the host was ahead of it."""
        from plait_profiler._device_queue import device_queues

        return device_queues(self.recording())

    # ---- files ---------------------------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Write the recording as it is, for `plait.profiler.load`; see `save_recording`.

        Args:
            path: The file.
        """
        from plait_profiler._native import save_recording

        save_recording(self.recording(), path)

    def export_chrome_trace(self, path: Path) -> None:
        """Write a timeline for chrome://tracing and Perfetto; compressed if it ends in ``.gz``.

        Args:
            path: The file.
        """
        from plait_profiler._chrome import export_chrome_trace

        export_chrome_trace(self.recording(), path, metadata=self._metadata)

    def export_perfetto_trace(self, path: Path) -> None:
        """Write a timeline in Perfetto's own format.

        Args:
            path: The file.
        """
        from plait_profiler._perfetto import export_perfetto_trace

        export_perfetto_trace(self.recording(), path)

    def export_html(self, path: Path, *, title: str = "plait profile") -> None:
        """Write a page with a timeline, averages and memory, which needs nothing else.

        Args:
            path: The file.
            title: The title of the page.
        """
        from plait_profiler._page import export_html

        export_html(self.recording(), path, title=title)

    def export_stacks(self, path: Path, metric: str = "self_cpu_time_total") -> None:
        """Write folded stacks for tools that draw flame graphs; see `EventList.export_stacks`.

        Args:
            path: The file.
            metric: The column that is summed.
        """
        self.events().export_stacks(path, metric)

    def export_flame_graph(self, path: Path, metric: str = "self_cpu_time_total") -> None:
        """Write a page with a flame graph.

        Args:
            path: The file.
            metric: The column that is summed.
        """
        from plait_profiler._stacks import export_flame_graph

        export_flame_graph(self.recording(), path, metric)

    def export_memory_timeline(self, path: Path, device: str | int | None = None) -> None:
        """Write the memory of each category over time: ``.html``, ``.json`` or ``.raw.json.gz``.

        Args:
            path: The file.
            device: The device whose memory is drawn.
        """
        from plait_profiler._memory_export import export_memory_timeline

        export_memory_timeline(self.recording(), path, device)

    def export(self, path: Path) -> None:
        """Write a file; the end of the path determines the format.

        ``.html`` is a page, ``.json`` and ``.json.gz`` a Chrome trace, ``.pftrace`` and
        ``.perfetto-trace`` a Perfetto trace, ``.plaitprof`` the recording as it is.

        Args:
            path: The file.

        Raises:
            ValueError: for another end.
        """
        name = os.fspath(path)
        for ending, write in _WRITERS.items():
            if name.endswith(ending):
                getattr(self, write)(path)
                return
        raise ValueError(f"export: `path` must end in one of {', '.join(ENDINGS)}; got {name!r}")

    # ---- pictures ------------------------------------------------------------------------------

    def timeline_figure(self, **options: Any) -> Any:
        """Return a Matplotlib figure of the timeline; see `plait.profiler.timeline_figure`."""
        from plait_profiler._pictures import timeline_figure

        return timeline_figure(self.recording(), **options)

    def memory_figure(self, **options: Any) -> Any:
        """Return a Matplotlib figure of memory by category; see `plait.profiler.memory_figure`."""
        from plait_profiler._pictures import memory_figure

        return memory_figure(self.recording(), **options)


def load(path: Path) -> Recorded:
    """Read a recording that `profile.save` wrote.

    Args:
        path: The file that `export_chrome_trace` wrote.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if it is no recording, or is damaged.

    Example:
        >>> import plait_profiler
        >>> from plait_profiler import profile
        >>> with profile() as prof:
        ...     pass
        >>> prof.save("nothing.plaitprof")
        >>> len(plait_profiler.load("nothing.plaitprof").events())
        0
    """
    from plait_profiler._native import load_recording

    return Recorded(load_recording(path))
