"""The C ABI's runtime, and the tables of roles, as a C program sees them.

The declarations repeat those of ``plait/abi.h``. Structs of the ABI grow at their end alone, so
they stay true; a test compares them with the header.
"""

from __future__ import annotations

import ctypes
from ctypes import (
    CFUNCTYPE,
    POINTER,
    c_char_p,
    c_double,
    c_int32,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any, TypeVar

import plait_abi

OK = 0
MEMORY_ERROR = -7
OBJECT_TAG = 12  # PLAIT_OBJECT


class DLDevice(ctypes.Structure):
    """A device type and an index."""

    _fields_ = (("device_type", c_int32), ("device_id", c_int32))


class Header(ctypes.Structure):
    """``plait_header``: how much of a table there is."""

    _fields_ = (("size", c_uint32), ("major", c_uint16), ("minor", c_uint16))


class Thread(ctypes.Structure):
    """``plait_thread``, up to its last error."""

    _fields_ = (("h", Header), ("runtime", c_void_p), ("error", c_void_p))


class Error(ctypes.Structure):
    """``plait_error``, up to its text."""

    _fields_ = (
        ("refs", c_uint64),
        ("type", c_void_p),
        ("code", c_int32),
        ("reserved", c_uint32),
        ("message", c_char_p),
    )


class Value(ctypes.Structure):
    """``plait_value`` that holds an object."""

    _fields_ = (("tag", c_int32), ("n", c_uint32), ("o", c_void_p))


class Statistics(ctypes.Structure):
    """``plait_alloc_stats``."""

    _fields_ = tuple(
        (name, c_uint64)
        for name in (
            *("size", "live_bytes", "live_blocks", "cached_bytes", "peak_bytes", "allocations"),
            *("system_allocations", "largest_cached"),
        )
    )


Out = POINTER(c_void_p)
ThreadPointer = POINTER(Thread)


class AllocatorTable(ctypes.Structure):
    """``plait_allocator``."""

    _fields_ = (
        ("h", Header),
        ("name", c_char_p),
        ("ctx", c_void_p),
        ("alloc", CFUNCTYPE(c_int32, c_void_p, DLDevice, c_uint64, c_void_p, Out, Out)),
        ("free", CFUNCTYPE(None, c_void_p, c_void_p, c_uint64, c_void_p)),
        ("trim", CFUNCTYPE(None, c_void_p)),
        ("stats", CFUNCTYPE(None, c_void_p, DLDevice, POINTER(Statistics))),
        ("inline_below", c_uint64),
        ("record_use", CFUNCTYPE(None, c_void_p, c_void_p, c_void_p, c_void_p)),
        ("reset_peak", CFUNCTYPE(None, c_void_p, DLDevice)),
        ("trim_device", CFUNCTYPE(None, c_void_p, DLDevice)),
        *((name, c_void_p) for name in ("pool_new", "pool_use", "pool_free", "snapshot")),
    )


Piece = CFUNCTYPE(None, c_void_p, c_uint64)


class ExecutorTable(ctypes.Structure):
    """``plait_executor``."""

    _fields_ = (
        ("h", Header),
        ("name", c_char_p),
        ("ctx", c_void_p),
        ("width", CFUNCTYPE(c_uint32, c_void_p)),
        ("parallel", CFUNCTYPE(None, c_void_p, c_uint64, Piece, c_void_p)),
        ("set_width", CFUNCTYPE(None, c_void_p, c_uint32)),
    )


class CompilerTable(ctypes.Structure):
    """The begin of ``plait_compiler``, which plait-graph's header has."""

    _fields_ = (("h", Header), ("name", c_char_p))


class SharedMemory(ctypes.Structure):
    """``plait_shared_memory``: how another process finds memory of a device."""

    _fields_ = (
        ("size", c_uint64),
        ("offset", c_uint64),
        ("fd", c_int32),
        ("length", c_uint32),
        ("handle", c_uint8 * 128),
    )


class Activity(ctypes.Structure):
    """``plait_activity``."""

    _fields_ = (
        ("size", c_uint32),
        ("kind", c_uint32),
        *((name, c_uint64) for name in ("launch", "begin", "end", "queued", "stream", "nbytes")),
        ("name", c_char_p),
        ("device", DLDevice),
    )


EachActivity = CFUNCTYPE(None, c_void_p, POINTER(Activity))


class DeviceTable(ctypes.Structure):
    """``plait_device``. Streams and events are made by the runtime, which calls it."""

    _fields_ = (
        ("h", Header),
        ("name", c_char_p),
        ("ctx", c_void_p),
        ("flags", c_uint64),
        ("count", CFUNCTYPE(c_int32, c_void_p)),
        (
            "copy",
            CFUNCTYPE(
                *(c_int32, c_void_p, ThreadPointer, c_void_p, DLDevice, c_void_p, DLDevice),
                *(c_uint64, c_void_p, c_uint64),
            ),
        ),
        ("synchronize", CFUNCTYPE(c_int32, c_void_p, ThreadPointer, DLDevice)),
        ("stream_synchronize", CFUNCTYPE(c_int32, c_void_p, ThreadPointer, DLDevice, c_void_p)),
        ("stream_new", c_void_p),
        ("stream_free", c_void_p),
        ("stream_query", c_void_p),
        ("event_new", c_void_p),
        ("event_free", c_void_p),
        ("event_record", c_void_p),
        ("event_query", c_void_p),
        ("event_wait", CFUNCTYPE(c_int32, c_void_p, ThreadPointer, c_void_p)),
        ("stream_wait", c_void_p),
        ("event_elapsed", c_void_p),
        ("pinned_alloc", CFUNCTYPE(c_int32, c_void_p, ThreadPointer, c_uint64, Out)),
        ("pinned_free", CFUNCTYPE(None, c_void_p, c_void_p, c_uint64)),
        ("take_error", c_void_p),
        (
            "share",
            CFUNCTYPE(
                *(c_int32, c_void_p, ThreadPointer, DLDevice, c_void_p, c_uint64),
                POINTER(SharedMemory),
            ),
        ),
        (
            "share_open",
            CFUNCTYPE(
                *(c_int32, c_void_p, ThreadPointer, DLDevice, POINTER(SharedMemory), c_uint64),
                *(Out, Out),
            ),
        ),
        ("share_close", CFUNCTYPE(None, c_void_p, DLDevice, c_void_p, c_uint64, c_void_p)),
        ("start", c_void_p),
        ("properties", c_void_p),
        ("priorities", c_void_p),
        ("memory_alloc", CFUNCTYPE(c_int32, c_void_p, ThreadPointer, DLDevice, c_uint64, Out)),
        ("memory_free", CFUNCTYPE(None, c_void_p, DLDevice, c_void_p, c_uint64)),
        ("memory_info", c_void_p),
        ("event_share", c_void_p),
        ("event_open", c_void_p),
        *((name, c_void_p) for name in ("capture_begin", "capture_end", "capture_query")),
        ("graph_launch", c_void_p),
        ("graph_free", c_void_p),
        ("activity_start", CFUNCTYPE(c_int32, c_void_p, ThreadPointer, DLDevice)),
        (
            "activity_stop",
            CFUNCTYPE(c_int32, c_void_p, ThreadPointer, DLDevice, EachActivity, c_void_p),
        ),
    )


RUNTIME_FUNCTIONS = (
    *("thread", "role", "provider", "define", "op", "ops", "implement", "retract", "layer"),
    *("call", "call_below", "decompose", "result", "result_strided", "view", "cast"),
    *("tensor_new", "tensor_on", "tensor_alias", "storage_new", "storage_wrap"),
    *("tensor_repoint", "tensors", "release_value", "touched", "generator_new"),
    *("device_count", "stream_new", "stream_wrap", "stream", "set_stream", "stream_query"),
    *("stream_synchronize", "synchronize", "event_new", "event_record", "event_query"),
    *("event_wait", "stream_wait", "event_elapsed", "record_use", "pinned_new", "host_copy"),
    *("set_fallback", "raise", "fail", "raise_host", "clear"),
)

SIGNATURES: dict[str, tuple[Any, ...]] = {
    "thread": (ThreadPointer,),
    "role": (POINTER(c_void_p), c_char_p, c_int32),
    "release_value": (None, POINTER(Value)),
    "clear": (None, ThreadPointer),
    # the others get the thread, and give a status
    "device_count": (c_int32, POINTER(c_int32)),
    "stream_new": (DLDevice, c_int32, Out),
    "set_stream": (DLDevice, c_void_p, Out),
    "stream_query": (DLDevice, c_void_p, POINTER(c_int32)),
    "stream_synchronize": (DLDevice, c_void_p),
    "synchronize": (DLDevice,),
    "event_new": (DLDevice, c_uint64, Out),
    "event_record": (c_void_p, c_void_p),
    "event_query": (c_void_p, POINTER(c_int32)),
    "event_wait": (c_void_p,),
    "stream_wait": (DLDevice, c_void_p, c_void_p),
    "event_elapsed": (c_void_p, c_void_p, POINTER(c_double)),
}


class RuntimeTable(ctypes.Structure):
    """``plait_runtime``, as far as it is used here."""

    _fields_ = (
        ("h", Header),
        ("path", c_char_p),
        *((name, c_void_p) for name in RUNTIME_FUNCTIONS),
    )


EXCEPTIONS: dict[int, type[Exception]] = {
    -2: plait_abi.ShapeError,
    -3: plait_abi.DTypeError,
    -4: ValueError,
    -5: IndexError,
    -6: TypeError,
    MEMORY_ERROR: plait_abi.OutOfMemoryError,
    -8: NotImplementedError,
}
"""The Python exception of each kind of status; the others are a RuntimeError."""


def pointer_of(capsule: Any) -> int:
    """Return what a capsule holds."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = c_void_p, (ctypes.py_object, c_char_p)
    named = ctypes.pythonapi.PyCapsule_GetName
    named.restype, named.argtypes = c_char_p, (ctypes.py_object,)
    result: int = pointer(capsule, named(capsule))
    return result


def address_of(tensor: Any) -> int:
    """Return the address of a tensor's first element, on its device."""
    capsule = tensor.__dlpack__()  # the address is the first thing in a DLManagedTensor
    return c_void_p.from_address(pointer_of(capsule)).value or 0


class Runtime:
    """The functions of the runtime; those that give a status raise it."""

    def __init__(self) -> None:
        self.table = RuntimeTable.from_address(pointer_of(plait_abi.runtime))

    def function(self, name: str, *types: Any) -> Any:
        """Return one function as it is in C."""
        return CFUNCTYPE(*types)(getattr(self.table, name))

    def plain(self, name: str, *args: Any) -> Any:
        """Call a function that gives no status."""
        return self.function(name, *SIGNATURES[name])(*args)

    def __call__(self, name: str, *args: Any) -> None:
        """Call a function with the thread and `args`."""
        thread = self.plain("thread")
        status = self.function(name, c_int32, ThreadPointer, *SIGNATURES[name])(thread, *args)
        self.check(status, name)

    def check(self, status: int, name: str) -> None:
        """Raise what a status says."""
        if status == OK:
            return
        text = error_of_thread() or f"{name}: status {status} without a text"
        self.plain("clear", self.plain("thread"))  # the exception reports it
        raise EXCEPTIONS.get(status, RuntimeError)(text)


running: list[Runtime] = []


def runtime() -> Runtime:
    """Return the runtime of the process."""
    if not running:
        running.append(Runtime())
    return running[0]


def error_of_thread() -> str | None:
    """Return the text of this thread's last error, or None."""
    address = runtime().plain("thread").contents.error
    return Error.from_address(address).message.decode() if address else None


def release(pointer: Any) -> None:
    """Give up a reference to a counted object."""
    runtime().plain("release_value", ctypes.byref(Value(OBJECT_TAG, 0, pointer)))


Table = TypeVar("Table", AllocatorTable, CompilerTable, DeviceTable, ExecutorTable)


def table_in_force(kind: type[Table], role: str, device_type: int = 0) -> Table | None:
    """Return a copy of the table that fills a role; what its writer does not know is NULL."""
    slot = runtime().plain("role", role.encode(), device_type)
    if not slot or not slot[0]:
        return None
    result = kind()
    size = Header.from_address(slot[0]).size
    ctypes.memmove(ctypes.byref(result), slot[0], min(size, ctypes.sizeof(kind)))
    return result
