"""The recording of a profile: events as columns, and the tables that their numbers refer to.

The recorder writes these rows while a program runs; reports and exports compute from them. An event
is one row of `ROW`. Texts are never in rows: a row has the numbers of a signature and a context,
which are stored once each.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# the names of devices, by DLPack's numbers of their types
DEVICE_TYPES = {
    1: "cpu",
    2: "cuda",
    7: "vulkan",
    8: "metal",
    10: "rocm",
    12: "ext",
    14: "oneapi",
    15: "webgpu",
    16: "hexagon",
}

ROW = np.dtype(
    [
        ("start", "u8"),  # nanoseconds of the monotonic clock, which processes of a machine share
        ("duration", "u8"),  # nanoseconds; 0 without an end; MARK: bytes of the storage, or 0
        ("a", "u8"),  # ALLOC, FREE: bytes; MARK: a Category; OP, DEVICE: number of the launch
        ("b", "u8"),  # ALLOC, FREE, MARK: address of the storage's first byte; DEVICE: its stream
        ("link", "u8"),  # NODE: its number; OP, DEVICE: that of the node that it recorded; else 0
        ("signature", "u4"),  # index into `Recording.signatures`
        ("context", "u4"),  # index into `Recording.contexts`
        ("thread", "u4"),  # the system's number of the thread
        ("process", "u4"),
        ("kind", "u2"),  # a Kind
        ("status", "i2"),  # negative: it failed
        ("depth", "u2"),  # how many events were open on the thread when this one began
        ("device", "u2"),  # device type << 8 | device index; 1 << 8 is the CPU
    ]
)
"""The columns of an event, 64 bytes."""


class Kind(enum.IntEnum):
    """The kinds of events. The first eight have the numbers of `plait_event_kind`.

    Example:
        >>> from plait_profiler import Kind
        >>> Kind(32).name
        'NODE'
    """

    OP = 1
    """A call of an operator."""
    ALLOC = 2
    """A storage's memory was taken. It has no duration."""
    FREE = 4
    """A storage's memory was given back. It has no duration."""
    BACKWARD = 8
    """A whole backward pass."""
    RANGE = 16
    """A named part of the program (`record_function`), an optimizer's step."""
    NODE = 32
    """A node of the graph in a backward pass."""
    COLLECTIVE = 64
    DATA = 128
    """The program waits for a batch."""
    STEP = 256
    """From one `profile.step()` to the next. Its depth is 0, and it is no parent of others."""
    DEVICE = 512
    """An operator's work on an accelerator; `a` is that of the OP row that launched it."""
    MARK = 1024
    """The storage at address `b` is of category `a`. Its duration is the storage's bytes, by which
    reports know of storages that were there before the recording; 0 if they are not known."""


class Category(enum.IntEnum):
    """The categories of memory. MARK rows tell the first five; reports find the rest.

    Example:
        >>> from plait_profiler import Category
        >>> [category.name for category in Category][:3]
        ['OTHER', 'PARAMETER', 'GRADIENT']
    """

    OTHER = 0
    PARAMETER = 1
    GRADIENT = 2
    OPTIMIZER_STATE = 3
    INPUT = 4
    ACTIVATION = 5
    """Made outside of a backward pass, and still there when one begins."""
    TEMPORARY = 6
    """Made and freed within one event."""


@dataclass(frozen=True)
class Signature:
    """The common properties of calls: the operator with the shapes and dtypes of its arguments, or
    the name of a range.

    Attributes:
        name: of the operator (``mul``), the node (``MulBackward``), or as given to a range.
        kind: of the events.
        inputs: one for each argument of an operator: ``(dtype, shape, strides)`` of a tensor,
            where the strides are None for a dense one; a list of these for a list of tensors; a
            number, a tuple of numbers, a string or None otherwise.
        outputs: as `inputs`.
        operations: of floating-point numbers in one call, 0 where they are not known.
        read, written: bytes of one call.
        composite: the operator is made of others, whose events are within its own.

    Example:
        >>> from plait_profiler._recording import Kind, Signature
        >>> Signature("mul", Kind.OP, (("float32", (2, 3), None), 2)).shapes
        [[2, 3], []]
    """

    name: str
    kind: Kind
    inputs: tuple[Any, ...] = ()
    outputs: tuple[Any, ...] = ()
    operations: int = 0
    read: int = 0
    written: int = 0
    composite: bool = False

    @property
    def shapes(self) -> list[Any]:
        """The shapes of the arguments, as PyTorch shows them: ``[]`` where there is no tensor."""
        return [_shape_of(value) for value in self.inputs]


def _shape_of(value: Any) -> list[Any]:
    if isinstance(value, list):
        return [_shape_of(item) for item in value]
    if isinstance(value, tuple) and len(value) == 3 and isinstance(value[0], str):
        return list(value[1])
    return []


@dataclass(frozen=True)
class Context:
    """Where in the program an event happened.

    Attributes:
        module: the path of the module whose forward ran, such as ``Net.layers.0``; "" outside.
        module_type: the name of that module's class.
        stack: the lines of the program, innermost first: ``("net.py", 12, "forward")``. Empty
            unless stacks were requested.

    Example:
        >>> from plait_profiler import Context
        >>> Context("Net.head", "Linear", (("net.py", 12, "forward"),)).module
        'Net.head'
    """

    module: str = ""
    module_type: str = ""
    stack: tuple[tuple[str, int, str], ...] = ()


@dataclass(eq=False)
class Recording:
    """All that a profile has recorded. Reports keep what they compute from it: do not write to it.

    Attributes:
        rows: an array of `ROW`, ordered by process, thread, begin, and depth: an event comes
            before those within it.
        signatures: what `rows["signature"]` refers to.
        contexts: what `rows["context"]` refers to; the first one is empty.
        threads: a name for threads, by process and thread.
        dropped: how many events of each kind had no room.
        begin, end: of the recording, nanoseconds of the monotonic clock.
        clock: nanoseconds of Unix time minus those of the monotonic clock.
        reserved: times and bytes that the allocator had from the system, if memory was recorded.

    Example:
        >>> from plait_profiler import profile, record_function
        >>> with profile() as prof, record_function("work"):
        ...     pass
        >>> recording = prof.recording()
        >>> recording.signatures[recording.rows["signature"][0]].name
        'work'
    """

    rows: np.ndarray[Any, Any]
    signatures: Sequence[Signature]
    contexts: Sequence[Context] = (Context(),)
    threads: dict[tuple[int, int], str] = field(default_factory=dict)
    dropped: dict[Kind, int] = field(default_factory=dict)
    begin: int = 0
    end: int = 0
    clock: int = 0
    reserved: Sequence[tuple[int, int]] = ()

    def parents(self) -> np.ndarray[Any, Any]:
        """Return for each row the index of the event around it on its thread, or -1.

        That is the last event of the thread which began before the row, at the depth above it, and
        had not ended when the row ended. STEP and DEVICE rows have none.

        Example:
            >>> import numpy as np
            >>> from plait_profiler._recording import ROW, Kind, Recording, Signature
            >>> rows = np.zeros(3, ROW)
            >>> rows["start"], rows["duration"], rows["depth"] = [0, 1, 5], [10, 2, 3], [0, 1, 1]
            >>> rows["kind"] = Kind.RANGE
            >>> Recording(rows, [Signature("r", Kind.RANGE)]).parents().tolist()
            [-1, 0, 0]
        """
        rows = self.rows
        parents = np.full(len(rows), -1, np.int64)
        if not len(rows):
            return parents
        kind, depth = np.ascontiguousarray(rows["kind"]), np.ascontiguousarray(rows["depth"])
        start = np.ascontiguousarray(rows["start"])
        span = is_span(kind)
        end = start + np.where(span, rows["duration"], 0).astype(np.uint64)
        nested = (kind & (Kind.STEP | Kind.DEVICE)) == 0
        thread = thread_numbers(rows)
        by_depth = np.argsort(depth, kind="stable")
        borders = np.searchsorted(depth[by_depth], np.arange(int(depth.max()) + 2))
        outer = by_depth[: borders[1]]
        for level in range(1, len(borders) - 1):
            outer = outer[span[outer]]
            here = by_depth[borders[level] : borders[level + 1]]
            inner = here[nested[here]]
            if len(outer) and len(inner):
                at = np.searchsorted(outer, inner) - 1
                parent = outer[at]
                within = (at >= 0) & (thread[parent] == thread[inner]) & (end[inner] <= end[parent])
                parents[inner[within]] = parent[within]
            outer = here
        return parents


def is_span(kind: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return which kinds have a begin and an end on a thread of the host."""
    others = Kind.ALLOC | Kind.FREE | Kind.STEP | Kind.DEVICE | Kind.MARK
    return np.asarray((kind & np.uint16(others)) == 0)


def thread_numbers(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return for each row the number of its thread, counted from 0 over all processes."""
    process, thread = rows["process"], rows["thread"]
    numbers = np.zeros(len(rows), np.int32)
    np.cumsum((process[1:] != process[:-1]) | (thread[1:] != thread[:-1]), out=numbers[1:])
    return numbers
