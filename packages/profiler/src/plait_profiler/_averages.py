"""Events summed up by name, shapes, stack, module or line: as a list and as a table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from plait_profiler._recording import Kind, Recording
from plait_profiler._stacks import export_stacks
from plait_profiler._sums import BY, Label, sums_of
from plait_profiler._tables import (
    Column,
    Table,
    bytes_text,
    count_text,
    dropped_notes,
    percent,
    time_text,
)
from plait_profiler._tree import is_any_of, tree_of

SORT_KEYS = (
    "cpu_time",
    "cpu_time_total",
    "self_cpu_time_total",
    "device_time",
    "device_time_total",
    "self_device_time_total",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
    "device_memory_usage",
    "self_device_memory_usage",
    "count",
    "flops",
    "bytes",
    "failures",
)

_MORE = ("flop_rate", "bandwidth", "top_level", "input_shapes", "stack")  # in a DataFrame


def _with_unit(name: str) -> property:
    """Return a property: the text of a time."""
    return property(lambda self: time_text(getattr(self, name)), doc=f"`{name}` with its unit.")


class Rates:
    """Means, rates and texts, for classes with the totals of `EventAverage`."""

    __slots__ = ()

    category: Any
    count: Any
    cpu_time_total: Any
    self_cpu_time_total: Any
    device_time_total: Any
    self_device_time_total: Any
    flops: Any
    bytes: Any

    @property
    def cpu_time(self) -> float:
        """Mean host time of a run, microseconds."""
        return float(self.cpu_time_total / self.count) if self.count else 0.0

    @property
    def device_time(self) -> float:
        """Mean time of a run's work on accelerators, microseconds."""
        return float(self.device_time_total / self.count) if self.count else 0.0

    @property
    def flop_rate(self) -> float:
        """Floating-point operations in a second of device time, or of host time without it."""
        return self._rate(self.flops)

    @property
    def bandwidth(self) -> float:
        """Bytes in a second of device time, or of host time if there is none."""
        return self._rate(self.bytes)

    def _rate(self, amount: float) -> float:
        time = self.device_time_total or self.cpu_time_total
        return 1e6 * amount / time if time else 0.0

    # PyTorch's names
    cpu_time_str = _with_unit("cpu_time")
    cpu_time_total_str = _with_unit("cpu_time_total")
    self_cpu_time_total_str = _with_unit("self_cpu_time_total")
    device_time_str = _with_unit("device_time")
    device_time_total_str = _with_unit("device_time_total")
    self_device_time_total_str = _with_unit("self_device_time_total")

    @property
    def is_user_annotation(self) -> bool:
        """Whether the program named it, with `record_function`."""
        return bool(self.category == "range")


@dataclass(eq=False)
class EventAverage(Rates):
    """All events of one name. Times are in microseconds, memory in bytes.

    Attributes:
        key: the name; that of a forward operator, module or line with " (backward)" behind it for
            what a backward pass ran. All steps are ``ProfilerStep*``.
        count: the number of events; for a module or a line the number of operators.
        cpu_time_total: from begin to end; nested runs of the same key count once.
        self_cpu_time_total: the time without that of nested events.
        device_time_total, self_device_time_total: of the work on accelerators that was launched.
        cpu_memory_usage, self_cpu_memory_usage: allocated minus freed.
        device_memory_usage, self_device_memory_usage: the same on accelerators.
        flops: operations on floating-point numbers, where the operators' formulas are known; those
            of a composite operator are those of the operators that it called.
        self_flops: `flops` without those of nested events, so that sums count nothing twice.
        bytes, self_bytes: read and written by operators, in the same way.
        failures: the number of events that ended with an error.
        top_level: the number of events without one around them.
        category: ``operator``, ``backward``, ``range``, ``step``, ``collective``, ``data``,
            ``module`` or ``line``.
        backward: it is part of backward passes.
        input_shapes: the shapes, if events were grouped by them.
        stack: the lines of the program, innermost first, if events were grouped by them.
        module_type: the class of a module.
        is_async, is_remote, is_legacy: False; PyTorch has these names.

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
    device_time_total: float = 0.0
    self_device_time_total: float = 0.0
    cpu_memory_usage: int = 0
    self_cpu_memory_usage: int = 0
    device_memory_usage: int = 0
    self_device_memory_usage: int = 0
    flops: int = 0
    self_flops: int = 0
    bytes: int = 0
    self_bytes: int = 0
    failures: int = 0
    top_level: int = 0
    category: str = "operator"
    backward: bool = False
    input_shapes: list[Any] | None = None
    stack: list[str] = field(default_factory=list)
    module_type: str = ""
    is_async: bool = field(default=False, repr=False)
    is_remote: bool = field(default=False, repr=False)
    is_legacy: bool = field(default=False, repr=False)

    @property
    def scope(self) -> int:
        """PyTorch's number of the category: 0 forward, 1 backward, 7 the program's."""
        return 7 if self.is_user_annotation else int(self.backward)


Item = TypeVar("Item", bound=Any)


class EventList(Sequence[Item], Generic[Item]):
    """A list of events or averages, with methods to summarise them.

    Args:
        items: the items of the list.
        recording: what they were made from.
        averaged: whether the items are averages.
        shapes: whether tables show shapes.

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
        self, items: Sequence[Item], recording: Recording, *, averaged: bool, shapes: bool = False
    ) -> None:
        self._items = items
        self._recording = recording
        self._averaged = averaged
        tree = tree_of(recording)
        self.shapes = shapes
        self.memory = bool(is_any_of(tree.kind, Kind.ALLOC, Kind.FREE).any())
        self._device = bool((tree.kind == Kind.DEVICE).any())
        self._work = any(s.operations or s.read or s.written for s in recording.signatures)

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def __getitem__(self, index: Any) -> Any:
        return self._items[index]

    @property
    def dropped(self) -> int:
        """The number of events that were lost because buffers were full."""
        return sum(self._recording.dropped.values())

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds in all events, each counted once."""
        return float(tree_of(self._recording).own_time.sum()) / 1e3

    def total_average(self) -> EventAverage:
        """Return one average of all events, with nothing counted twice: its totals are sums of
        what the events have without those within them.

        Example:
            >>> from plait_profiler import profile, record_function
            >>> with profile() as prof, record_function("a"), record_function("b"):
            ...     pass
            >>> total = prof.key_averages().total_average()
            >>> total.key, total.count
            ('Total', 2)
            >>> abs(total.cpu_time_total - prof.events()[0].cpu_time_total) < 1e-6
            True
        """
        averages = self if self._averaged else self.key_averages()
        total = EventAverage("Total", category="total")
        for average in averages:
            for name in ("count", "failures", "top_level"):
                setattr(total, name, getattr(total, name) + getattr(average, name))
            for name in _DISJOINT:
                value = getattr(total, name) + getattr(average, f"self_{name}")
                setattr(total, name, value)
                setattr(total, f"self_{name}", value)
        return total

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, *, by: str = "name"
    ) -> EventList[EventAverage]:
        """Return one average for each name; see `profile.key_averages`."""
        if self._averaged:
            raise TypeError("key_averages: events are required; these are averages already")
        return key_averages(self._recording, group_by_input_shape, group_by_stack_n, by=by)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """Return a table with one line for each item.

        Args:
            sort_by: largest first: ``cpu_time_total``, ``self_cpu_time_total``, ``cpu_time``,
                the same with ``device`` for ``cpu``, ``count``, ``flops``, ``bytes``,
                ``failures``, ``cpu_memory_usage``, ``self_cpu_memory_usage``,
                ``device_memory_usage`` or ``self_device_memory_usage``. ``cuda`` means
                ``device``. None keeps the order.
            row_limit: the most lines; -1 gives all.
            max_src_column_width, max_name_column_width, max_shapes_column_width: longer texts
                are cut; None cuts none.
            header: a line above the table.
            top_level_events_only: leave out what happened only within other events.
            time_unit: ``s``, ``ms`` or ``us`` for all times; None takes one that fits each.

        Raises:
            ValueError: if ``sort_by`` or ``time_unit`` is none of these.
        """
        if time_unit not in (None, "s", "ms", "us"):
            raise ValueError(f"table: `time_unit` must be s, ms or us; got {time_unit!r}")
        items = self._sorted(sort_by, top_level_events_only)
        notes = [f"Self CPU time total: {time_text(self.self_cpu_time_total, time_unit)}"]
        part = items if row_limit < 0 else items[:row_limit]
        if len(part) < len(items):
            notes.append(f"{len(items) - len(part)} more rows: row_limit")
        widths = (max_name_column_width, max_shapes_column_width, max_src_column_width)
        columns = self._columns(widths, time_unit)
        notes += dropped_notes(self._recording)
        return Table(columns, self._rows(part, columns), title=header or "", notes=notes).text(-1)

    def _sorted(self, sort_by: str | None, top_level_events_only: bool) -> list[Any]:
        items = [item for item in self if item.top_level or not top_level_events_only]
        if sort_by is not None:
            key = sort_by.replace("cuda", "device") if isinstance(sort_by, str) else sort_by
            if key not in SORT_KEYS:
                raise ValueError(
                    f"table: `sort_by` must be one of {', '.join(SORT_KEYS)}; got {sort_by!r}"
                )
            items.sort(key=lambda item: getattr(item, key), reverse=True)
        return items

    def _rows(self, items: Sequence[Any], columns: Sequence[Column]) -> list[dict[str, Any]]:
        total = self.self_cpu_time_total or 1.0
        on_device = float(tree_of(self._recording).device_time.sum()) / 1e3 or 1.0
        shares = {
            "self_cpu_percent": lambda item: item.self_cpu_time_total / total,
            "total_cpu_percent": lambda item: item.cpu_time_total / total,
            "self_device_percent": lambda item: item.self_device_time_total / on_device,
        }
        return [
            {
                column.key: shares[column.key](item)
                if column.key in shares
                else getattr(item, column.key)
                for column in columns
            }
            for item in items
        ]

    def _columns(self, widths: Sequence[int | None], unit: str | None) -> list[Column]:
        def time(value: float) -> str:
            return time_text(value, unit)

        columns = [
            Column("key", "Name", left=True, width=widths[0]),
            Column("self_cpu_percent", "Self CPU %", percent),
            Column("self_cpu_time_total", "Self CPU", time),
            Column("total_cpu_percent", "CPU total %", percent),
            Column("cpu_time_total", "CPU total", time),
            Column("cpu_time", "CPU time avg", time),
        ]
        if self._device:
            columns += [
                Column("self_device_time_total", "Self Device", time),
                Column("self_device_percent", "Self Device %", percent),
                Column("device_time_total", "Device total", time),
                Column("device_time", "Device time avg", time),
            ]
        if self.memory:
            columns += [
                Column("cpu_memory_usage", "CPU Mem", bytes_text),
                Column("self_cpu_memory_usage", "Self CPU Mem", bytes_text),
            ]
        if self.memory and self._device:
            columns += [
                Column("device_memory_usage", "Device Mem", bytes_text),
                Column("self_device_memory_usage", "Self Device Mem", bytes_text),
            ]
        columns.append(Column("count", "# of Calls"))
        if (self._recording.rows["status"] < 0).any():
            columns.append(Column("failures", "# Failed"))
        if self._work:
            columns += [
                Column("flops", "Total GFLOPs", lambda value: count_text(value / 1e9)),
                Column("flop_rate", "GFLOP/s", lambda value: count_text(value / 1e9)),
                Column("bandwidth", "GB/s", lambda value: count_text(value / 1e9)),
            ]
        if self.shapes:
            columns.append(Column("input_shapes", "Input Shapes", left=True, width=widths[1]))
        if self._averaged and any(item.stack for item in self):
            columns.append(Column("stack", "Source Location", "; ".join, True, widths[2]))
        return columns

    def to_pandas(self) -> Any:
        """Return a `pandas.DataFrame`: a row for each item, times in microseconds.

        It has all that tables can be sorted by, also what was not recorded, and is 0.

        Raises:
            ImportError: if pandas is not installed.
        """
        names = ("key", "category", "backward", *SORT_KEYS, *_MORE)
        columns = [Column(name, name) for name in names]
        return Table(columns, self._rows(self, columns)).to_pandas()

    def to_html(self, row_limit: int = 100) -> str:
        """Return the table as HTML, with at most so many rows; -1 gives all."""
        columns = self._columns((None, None, None), None)
        notes = dropped_notes(self._recording)
        return Table(columns, self._rows(self, columns), notes=notes).to_html(row_limit)

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"<EventList of {len(self)} {'averages' if self._averaged else 'events'}>"

    def export_stacks(
        self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total"
    ) -> None:
        """Write the stacks of events for tools that draw flame graphs; see `export_stacks`."""
        export_stacks(self._recording, path, metric)


_DISJOINT = (
    "cpu_time_total",
    "device_time_total",
    "cpu_memory_usage",
    "device_memory_usage",
    "flops",
    "bytes",
)


def key_averages(
    recording: Recording,
    group_by_input_shape: bool = False,
    group_by_stack_n: int = 0,
    *,
    by: str = "name",
) -> EventList[EventAverage]:
    """Sum the events of a recording up.

    Args:
        recording: whose events to sum.
        group_by_input_shape: an average for each name and shapes of the arguments.
        group_by_stack_n: if above 0, an average for each name and so many innermost lines of the
            program's stack; only for ``by="name"``, as shapes are.
        by: ``name``; ``signature``: the name with dtypes, shapes, strides that are not dense, and
            other arguments; ``module``: the module whose forward ran or recorded the node, where
            times include those of the modules within it; ``line``: the innermost line of the
            program, outside of plait's own packages.

    Returns:
        Averages in the order in which the first events of each began. Operators that a backward
        pass ran are separate from the forward operators of the same name: their keys end with
        " (backward)".

    Raises:
        ValueError: if an argument has another value.

    Example:
        >>> from plait_profiler import profile, record_function
        >>> with profile() as prof, record_function("a"), record_function("b"):
        ...     pass
        >>> [average.key for average in prof.key_averages(by="signature")]
        ['a', 'b']
    """
    if by not in BY:
        raise ValueError(f"key_averages: `by` must be one of {', '.join(BY)}; got {by!r}")
    if group_by_stack_n < 0:
        raise ValueError(
            f"key_averages: `group_by_stack_n` must not be negative; got {group_by_stack_n}"
        )
    if by != "name" and (group_by_input_shape or group_by_stack_n):
        raise ValueError(
            f"key_averages: by={by!r} cannot be combined with grouping by shapes or stacks"
        )
    sums = sums_of(recording, by, group_by_input_shape, group_by_stack_n)
    averages = list(map(_average, sums.labels))
    for name, values in sums.values.items():
        numbers = (values / 1e3 if "time" in name else values).tolist()
        for average, number in zip(averages, numbers, strict=True):
            setattr(average, name, number)
    return EventList(averages, recording, averaged=True, shapes=group_by_input_shape)


def _average(label: Label) -> EventAverage:
    return EventAverage(
        label.name + (" (backward)" if label.apart else "") + label.arguments,
        category=label.category,
        backward=label.backward,
        input_shapes=label.shapes,
        stack=label.stack,
        module_type=label.module_type,
    )
