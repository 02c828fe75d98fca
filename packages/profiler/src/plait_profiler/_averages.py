"""Events summed up by name, as a list and as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from plait_profiler._events import Event

__all__ = ["EventAverage", "EventList"]

SORT_KEYS = (
    "cpu_time",
    "cpu_time_total",
    "self_cpu_time_total",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
    "count",
)


@dataclass(eq=False)
class EventAverage:
    """All events of one name. Times are in microseconds, memory in bytes.

    Attributes:
        key: the name.
        count: the number of events.
        cpu_time_total: from begin to end; nested runs of the same name count once.
        self_cpu_time_total: the time without that of nested events.
        cpu_memory_usage, self_cpu_memory_usage: allocated minus freed.
        input_shapes: the shapes, if events were grouped by them.
        failures: the number of events that ended with an error.

    Example:
        >>> from plait_profiler import profile, record_function
        >>> with profile() as prof:
        ...     for i in range(3):
        ...         with record_function("step"):
        ...             total = sum(range(1000))
        >>> (average,) = prof.key_averages()
        >>> average.key, average.count, average.failures
        ('step', 3, 0)
    """

    key: str
    count: int = 0
    cpu_time_total: float = 0.0
    self_cpu_time_total: float = 0.0
    cpu_memory_usage: int = 0
    self_cpu_memory_usage: int = 0
    input_shapes: list[Any] | None = None
    failures: int = 0
    category: str = field(default="operator", repr=False)

    @property
    def cpu_time(self) -> float:
        """Mean time of a run."""
        return self.cpu_time_total / self.count if self.count else 0.0

    def add(self, event: Event) -> None:
        """Count one more event."""
        self.count += 1
        self.self_cpu_time_total += event.self_cpu_time_total
        self.self_cpu_memory_usage += event.self_cpu_memory_usage
        self.failures += event.failed
        if not _within_itself(event):
            self.cpu_time_total += event.cpu_time_total
            self.cpu_memory_usage += event.cpu_memory_usage


def _within_itself(event: Event) -> bool:
    around = event.cpu_parent
    while around is not None:
        if around.name == event.name:
            return True
        around = around.cpu_parent
    return False


Item = TypeVar("Item", bound="Event | EventAverage")


class EventList(list[Item], Generic[Item]):
    """A list of events or averages, with methods to summarise them.

    Args:
        items: the items of the list.
        shapes, memory: whether these were recorded.
        dropped: the number of events that were lost because buffers were full.

    Example:
        >>> from plait_profiler import profile, record_function
        >>> with profile() as prof:
        ...     with record_function("load"), record_function("decode"):
        ...         total = sum(range(1000))
        >>> events = prof.events()
        >>> [event.name for event in events], events.dropped
        (['load', 'decode'], 0)
        >>> sorted(average.key for average in events.key_averages())
        ['decode', 'load']
    """

    def __init__(
        self,
        items: Iterable[Item] = (),
        *,
        shapes: bool = False,
        memory: bool = False,
        dropped: int = 0,
    ) -> None:
        super().__init__(items)
        self.shapes = shapes
        self.memory = memory
        self.dropped = dropped

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds in all events, each counted once."""
        return sum(item.self_cpu_time_total for item in self)

    def key_averages(self, group_by_input_shape: bool = False) -> EventList[EventAverage]:
        """Return one average for each name, or for each name with its input shapes."""
        found: dict[tuple[str, str], EventAverage] = {}
        for event in self:
            if isinstance(event, EventAverage):
                raise TypeError("key_averages: events are required; these are averages already")
            shapes = event.input_shapes if group_by_input_shape else None
            key = (event.name, str(shapes))
            if key not in found:
                found[key] = EventAverage(event.name, input_shapes=shapes, category=event.category)
            found[key].add(event)
        return EventList(
            found.values(),
            shapes=self.shapes and group_by_input_shape,
            memory=self.memory,
            dropped=self.dropped,
        )

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_name_column_width: int = 55,
    ) -> str:
        """Return a table with one line for each item.

        Args:
            sort_by: ``cpu_time_total``, ``self_cpu_time_total``, ``cpu_time``, ``count``,
                ``cpu_memory_usage`` or ``self_cpu_memory_usage``, largest first; None keeps
                the order.
            row_limit: the most lines; -1 gives all.
            max_name_column_width: longer names are cut.

        Raises:
            ValueError: if ``sort_by`` is none of these.
        """
        rows: list[Any] = list(self)
        if sort_by is not None:
            if sort_by not in SORT_KEYS:
                raise ValueError(
                    f"table: `sort_by` must be one of {', '.join(SORT_KEYS)}; got {sort_by!r}"
                )
            rows.sort(key=lambda row: getattr(row, sort_by, 1), reverse=True)
        shown = rows if row_limit < 0 else rows[:row_limit]
        return self._render(shown, len(rows), max_name_column_width)

    def _columns(self, width: int) -> list[tuple[str, Callable[[Any], str]]]:
        total = self.self_cpu_time_total or 1.0

        def name(row: Any) -> str:
            text = str(getattr(row, "key", None) or row.name)
            return text if len(text) <= width else text[: width - 3] + "..."

        columns: list[tuple[str, Callable[[Any], str]]] = [
            ("Name", name),
            ("Self CPU %", lambda row: f"{100 * row.self_cpu_time_total / total:.2f}%"),
            ("Self CPU", lambda row: duration(row.self_cpu_time_total)),
            ("CPU total %", lambda row: f"{100 * row.cpu_time_total / total:.2f}%"),
            ("CPU total", lambda row: duration(row.cpu_time_total)),
            ("CPU time avg", lambda row: duration(row.cpu_time_total / getattr(row, "count", 1))),
        ]
        if self.memory:
            columns += [
                ("CPU Mem", lambda row: size(row.cpu_memory_usage)),
                ("Self CPU Mem", lambda row: size(row.self_cpu_memory_usage)),
            ]
        columns.append(("# of Calls", lambda row: str(getattr(row, "count", 1))))
        if self.shapes:
            columns.append(("Input Shapes", lambda row: str(row.input_shapes or [])))
        return columns

    def _render(self, shown: list[Any], n: int, width: int) -> str:
        columns = self._columns(width)
        lines = [[title for title, _ in columns]]
        lines += [[cell(row) for _, cell in columns] for row in shown]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        rule = "  ".join("-" * w for w in widths)
        text = [
            "  ".join(
                cell.ljust(w) if i == 0 else cell.rjust(w)
                for i, (cell, w) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        end = [f"Self CPU time total: {duration(self.self_cpu_time_total)}"]
        if len(shown) < n:
            end.append(f"{n - len(shown)} more rows: row_limit")
        if self.dropped:
            end.append(f"{self.dropped} events were dropped, the oldest: profile(capacity=...)")
        return "\n".join([rule, text[0], rule, *text[1:], rule, *end])


def duration(microseconds: float) -> str:
    """Return a time with its unit."""
    for unit, scale in (("s", 1e6), ("ms", 1e3)):
        if abs(microseconds) >= scale:
            return f"{microseconds / scale:.3f}{unit}"
    return f"{microseconds:.3f}us"


def size(n: int) -> str:
    """Return bytes with their unit."""
    for unit, scale in (("Gb", 1 << 30), ("Mb", 1 << 20), ("Kb", 1 << 10)):
        if abs(n) >= scale:
            return f"{n / scale:.2f} {unit}"
    return f"{n} b"
