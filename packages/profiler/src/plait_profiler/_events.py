"""Events as objects, created from the columns of a recording at the first access."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from plait_profiler._averages import EventList, Rates
from plait_profiler._recording import Context, Kind, Recording, Signature
from plait_profiler._sums import CATEGORIES, bytes_by_row, frame_text, work_of
from plait_profiler._tracks import queue_times
from plait_profiler._tree import Array, contexts_of, tree_of


class Interval(NamedTuple):
    """A time with a begin and an end, in microseconds of the monotonic clock."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        """Return its length."""
        return self.end - self.start


class Kernel(NamedTuple):
    """An operator's work on an accelerator, with microseconds."""

    name: str
    device: int
    duration: float


class Event(Rates):
    """One operator call, backward node or range. Times are in microseconds, memory in bytes.

    Args:
        all_events: The events of the recording.
        row: The number of its row.

    Attributes:
        id: the number of its row in the recording.
        count, is_async, is_remote, is_legacy: 1 and False; PyTorch has these names.

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

    __slots__ = ("_all", "id")

    count = 1
    is_async = is_remote = is_legacy = False

    def __init__(self, all_events: _Events, row: int) -> None:
        self._all = all_events
        self.id = row

    def __repr__(self) -> str:
        time = self.cpu_time_total_str
        return f"<Event {self.name!r} ({self.category}) on thread {self.thread}: {time}>"

    @property
    def _row(self) -> Any:
        return self._all.recording.rows[self.id]

    @property
    def _signature(self) -> Signature:
        signature: Signature = self._all.recording.signatures[self._row["signature"]]
        return signature

    @property
    def _context(self) -> Context:
        context: Context = self._all.recording.contexts[self._all.contexts[self.id]]
        return context

    @property
    def name(self) -> str:
        """The name of the operator or node (``mul``, ``MulBackward``), or as given to a range."""
        return self._signature.name

    @property
    def key(self) -> str:
        """The name."""
        return self.name

    @property
    def kind(self) -> Kind:
        """The kind of the event."""
        return Kind(self._row["kind"])

    @property
    def category(self) -> str:
        """``operator``, ``backward``, ``range``, ``step``, ``collective`` or ``data``."""
        return CATEGORIES[self.kind]

    @property
    def backward(self) -> bool:
        """Whether it is part of a backward pass."""
        return bool(self._all.tree.backward[self.id])

    @property
    def scope(self) -> int:
        """PyTorch's number of the category: 0 forward, 1 backward, 7 the program's."""
        return 7 if self.is_user_annotation else int(self.category == "backward")

    @property
    def thread(self) -> int:
        """The system's number of the thread."""
        return int(self._row["thread"])

    @property
    def process(self) -> int:
        """The system's number of the process."""
        return int(self._row["process"])

    @property
    def start(self) -> float:
        """The begin, of the monotonic clock."""
        return float(self._row["start"]) / 1e3

    @property
    def end(self) -> float:
        """The end, of the monotonic clock."""
        return float(self._row["start"] + self._row["duration"]) / 1e3

    @property
    def time_range(self) -> Interval:
        """Begin and end."""
        return Interval(self.start, self.end)

    @property
    def failed(self) -> bool:
        """Whether it ended with an error."""
        return bool(self._row["status"] < 0)

    @property
    def failures(self) -> int:
        """1 if it ended with an error, else 0."""
        return int(self.failed)

    @property
    def sequence(self) -> int | None:
        """The number of the node that ran, or that the operator recorded."""
        return int(self._row["link"]) or None

    @property
    def sequence_nr(self) -> int:
        """`sequence`, or -1 where it is None."""
        return self.sequence or -1

    @property
    def module(self) -> str:
        """The path of the module whose forward ran, or recorded the node; "" outside."""
        return self._context.module

    @property
    def stack(self) -> list[str]:
        """The lines of the program, innermost first; in a backward pass, those of the forward."""
        return [frame_text(frame) for frame in self._context.stack]

    @property
    def input_shapes(self) -> list[Any] | None:
        """The shapes of the arguments, ``[]`` for other arguments than tensors; None if they were
        not recorded."""
        return self._signature.shapes if self._signature.inputs else None

    @property
    def concrete_inputs(self) -> list[Any]:
        """The arguments that are no tensors, None for tensors."""
        return [None if _is_tensor(value) else value for value in self._signature.inputs]

    @property
    def device_index(self) -> int:
        """The number of the device among those of its type."""
        return int(self._row["device"]) & 255

    @property
    def cpu_parent(self) -> Event | None:
        """The event around this one on its thread."""
        parent = int(self._all.tree.parents[self.id])
        return None if parent < 0 else self._all.at(parent)

    @property
    def cpu_children(self) -> list[Event]:
        """The events directly within this one, in the order of their begins."""
        return [self._all.at(row) for row in self._all.children(self.id)]

    @property
    def top_level(self) -> int:
        """1 if there is no event around this one, else 0."""
        return int(self._all.tree.parents[self.id] < 0)

    @property
    def kernels(self) -> list[Kernel]:
        """The work on accelerators that it launched itself."""
        recording = self._all.recording
        rows = self._all.tree.device_rows[self._all.tree.launched_by == self.id]
        return [
            Kernel(
                recording.signatures[row["signature"]].name,
                int(row["device"]) & 255,
                float(row["duration"]) / 1e3,
            )
            for row in recording.rows[rows]
        ]

    @property
    def queue_time(self) -> float:
        """The time that the first work that it launched itself was in the queue of its stream; 0 if
        the device keeps no records."""
        rows = self._all.tree.device_rows[self._all.tree.launched_by == self.id]
        if not len(rows):
            return 0.0
        return float(queue_times(self._all.recording.rows[rows]).min()) / 1e3

    @property
    def cpu_time_total(self) -> float:
        """The time from begin to end."""
        return float(self._row["duration"]) / 1e3

    @property
    def self_cpu_time_total(self) -> float:
        """The time from begin to end without nested events on this thread."""
        return float(self._all.tree.own_time[self.id]) / 1e3

    @property
    def device_time_total(self) -> float:
        """The time of the work on accelerators that it and the events within it launched."""
        return float(self._all.device_time[self.id]) / 1e3

    @property
    def self_device_time_total(self) -> float:
        """The time of the work on accelerators that it launched itself."""
        return float(self._all.tree.device_time[self.id]) / 1e3

    @property
    def cpu_memory_usage(self) -> int:
        """Allocated minus freed, with nested events."""
        return int(self._all.memory[0][self.id])

    @property
    def self_cpu_memory_usage(self) -> int:
        """Allocated minus freed, without nested events."""
        return self._own(self._all.memory[0])

    @property
    def device_memory_usage(self) -> int:
        """Allocated minus freed on accelerators, with nested events."""
        return int(self._all.memory[1][self.id])

    @property
    def self_device_memory_usage(self) -> int:
        """Allocated minus freed on accelerators, without nested events."""
        return self._own(self._all.memory[1])

    def _own(self, totals: Array) -> int:
        inner = self._all.children(self.id)
        return int(totals[self.id] - totals[inner].sum())

    @property
    def flops(self) -> int:
        """Operations on floating-point numbers, 0 where they are not known."""
        return int(self._all.operations[self.id])

    @property
    def bytes(self) -> int:
        """Bytes that operators read and wrote, 0 where they are not known."""
        return int(self._all.traffic[self.id])


def _is_tensor(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_is_tensor, value))
    return isinstance(value, tuple) and len(value) == 3 and isinstance(value[0], str)


class _Events(Sequence[Event]):
    """The events of a recording in the order of their begins, created at the first access."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.tree = tree_of(recording)
        rows = np.flatnonzero(self.tree.span | (self.tree.kind == Kind.STEP))
        self._rows = rows[np.argsort(self.tree.start[rows], kind="stable")]
        self._made: dict[int, Event] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self.at(row) for row in self._rows[index].tolist()]
        return self.at(int(self._rows[index]))

    def at(self, row: int) -> Event:
        """Return the event of a row, always the same object."""
        if row not in self._made:
            self._made[row] = Event(self, row)
        return self._made[row]

    @functools.cached_property
    def contexts(self) -> Array:
        """The result of `contexts_of`."""
        return contexts_of(self.recording)

    @functools.cached_property
    def device_time(self) -> Array:
        """Totals of each row, nanoseconds."""
        return self.tree.totals(self.tree.device_time)

    @functools.cached_property
    def memory(self) -> tuple[Array, Array]:
        """Totals of each row on the host and on devices, bytes."""
        on_host, on_devices = bytes_by_row(self.recording)
        return self.tree.totals(on_host), self.tree.totals(on_devices)

    @functools.cached_property
    def operations(self) -> Array:
        """Totals of each row."""
        return work_of(self.recording, lambda signature: signature.operations).total

    @functools.cached_property
    def traffic(self) -> Array:
        """Totals of each row, bytes."""
        return work_of(self.recording, lambda signature: signature.read + signature.written).total

    @functools.cached_property
    def _by_parent(self) -> tuple[Array, Array]:
        inner = np.flatnonzero(self.tree.span & (self.tree.parents >= 0))
        order = np.argsort(self.tree.parents[inner], kind="stable")
        return inner[order], self.tree.parents[inner[order]]

    def children(self, row: int) -> list[int]:
        """Return the rows of the events directly within one."""
        inner, parents = self._by_parent
        first, last = np.searchsorted(parents, [row, row + 1])
        rows: list[int] = inner[first:last].tolist()
        return rows


def events(recording: Recording) -> EventList[Event]:
    """Return the events of a recording in the order of their begins.

    Example:
        >>> from plait_profiler import profile, record_function
        >>> with profile() as prof, record_function("a"), record_function("b"):
        ...     pass
        >>> [event.name for event in prof.events()]
        ['a', 'b']
    """
    shapes = any(signature.inputs for signature in recording.signatures)
    return EventList(_Events(recording), recording, averaged=False, shapes=shapes)
