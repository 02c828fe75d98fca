"""The C++ recorder, called through ctypes."""

from __future__ import annotations

import ctypes
import enum
import functools
import pathlib
import struct
from typing import Any, NamedTuple

import plait_abi

__all__ = ["Kind", "Raw", "Recorder", "library"]


class Kind(enum.IntFlag):
    """Kinds of events, as `plait_event_kind` numbers them."""

    OP = 1
    ALLOC = 2
    FREE = 4
    BACKWARD = 8
    RANGE = 16
    NODE = 32


class Raw(NamedTuple):
    """One record: times in nanoseconds of the monotonic clock."""

    start: int
    end: int
    name: str
    shapes: str
    a: int
    b: int
    kind: int
    status: int
    thread: int


_LAYOUT = struct.Struct("=QQQQQQIiQ")  # plait::profiler::Record


@functools.cache
def library() -> ctypes.CDLL:
    """Load the component and return its C functions."""
    path = pathlib.Path(__file__).parent / "lib" / "libplait_profiler.so"
    plait_abi.load(path)
    lib = ctypes.CDLL(str(path))
    pointer, number = ctypes.c_void_p, ctypes.c_uint64
    signatures: list[tuple[str, Any, list[Any]]] = [
        ("start", pointer, [number, number, ctypes.c_int]),
        ("stop", None, [pointer]),
        ("size", number, [pointer]),
        ("dropped", number, [pointer]),
        ("copy", None, [pointer, pointer]),
        ("free", None, [pointer]),
        ("range_begin", pointer, [ctypes.c_char_p]),
        ("range_end", None, [pointer, ctypes.c_int]),
    ]
    for name, result, arguments in signatures:
        function = lib[f"plait_profiler_{name}"]
        function.restype = result
        function.argtypes = arguments
        setattr(lib, name, function)
    return lib


class Recorder:
    """A session of recording, which begins when it is made.

    Args:
        kinds: the kinds of events to record.
        capacity: the limit of events for each thread; further events replace the oldest.
        shapes: keep the shapes of operators' arguments.
    """

    def __init__(self, kinds: Kind, capacity: int, shapes: bool) -> None:
        self._library = library()
        self._session = self._library.start(int(kinds), capacity, shapes)
        if not self._session:
            raise RuntimeError("profile: the runtime takes no more observers; stop another profile")

    def stop(self) -> tuple[list[Raw], int]:
        """End the session and return its events by thread, and the number of dropped ones."""
        lib, session, self._session = self._library, self._session, None
        lib.stop(session)
        room = ctypes.create_string_buffer(lib.size(session) * _LAYOUT.size)
        lib.copy(session, room)
        texts: dict[int, str] = {0: ""}
        raw = []
        for start, end, name, shapes, a, b, kind, status, thread in _LAYOUT.iter_unpack(room):
            for address in (name, shapes):
                if address not in texts:
                    texts[address] = ctypes.string_at(address).decode(errors="replace")
            raw.append(Raw(start, end, texts[name], texts[shapes], a, b, kind, status, thread))
        dropped = int(lib.dropped(session))
        lib.free(session)
        return raw, dropped

    def __del__(self) -> None:
        if getattr(self, "_session", None):
            self._library.stop(self._session)
            self._library.free(self._session)
