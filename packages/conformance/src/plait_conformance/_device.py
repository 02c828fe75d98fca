"""The device under test: arrays go to it and come back, and streams and events of the C ABI."""

from __future__ import annotations

import ctypes
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import plait_abi
from plait_conformance._checks import Host, arrays_of, as_arrays
from plait_conformance._tables import (
    Activity,
    DeviceTable,
    DLDevice,
    EachActivity,
    release,
    runtime,
    table_in_force,
)
from plait_ops.spec import Operator

CPU = 1  # kDLCPU
HOST_MEMORY = DLDevice(CPU, 0)
MAX_DEVICE_TYPES = 32
TIMED = 1  # PLAIT_EVENT_TIMED
BUSY_SECONDS = 0.2
PATIENCE = 60.0
_DECLINED = re.compile(r"declined the call, with dtypes \((.*?)\)")


def devices_in_force() -> dict[str, int]:
    """Map the names of devices, ``"ext"``, to their types."""
    result = {}
    for device_type in range(MAX_DEVICE_TYPES):
        table = table_in_force(DeviceTable, "device", device_type)
        if table is not None and device_type != CPU:
            result[table.name.decode()] = device_type
    return result


class Device(Host):
    """A device, ``"ext:0"``, and the work that tests give to it."""

    def __init__(self, name: str) -> None:
        base, _, index = name.partition(":")
        self.name = f"{base}:{index or 0}"
        plait_abi.device(self.name)  # an installed package may bring it
        self.type = devices_in_force()[base]
        self.handle = DLDevice(self.type, int(index or 0))
        table = table_in_force(DeviceTable, "device", self.type)
        assert table is not None, f"the role `device` is not filled for {name}"
        self.table = table
        self.burden: tuple[Any, Any, int] | None = None
        self.without_kernel: set[str] = set()  # names of operators
        self.declined: dict[str, set[str]] = {}  # the dtypes that kernels of operators declined
        self.tests: dict[str, bool] = {}  # whether a test of an operator has passed

    def __str__(self) -> str:
        return self.name

    def note(self, error: NotImplementedError, test: str) -> None:
        """Keep what the device lacks, as the error of a call says."""
        name, _, reason = str(error).rpartition(": ")  # "cov: mm: no kernel for ..."
        operator = name.rpartition(": ")[2] or test
        dtypes = _DECLINED.search(reason)
        if dtypes:
            self.declined.setdefault(operator, set()).add(dtypes[1])
        else:
            self.without_kernel.add(operator)

    @property
    def missing(self) -> set[str]:
        """Operators without a kernel, or with one that declined all calls of their tests."""
        return self.without_kernel | {name for name in self.declined if not self.tests.get(name, 1)}

    @property
    def count(self) -> int:
        """The number of devices of this type."""
        return int(self.table.count(self.table.ctx))

    # Arrays.

    def put(self, array: Any) -> Any:
        """Return a copy on the device."""
        result = self.empty_like(array)
        plait_abi.operator("copy_")(result, array)
        return result

    def relayouts(self) -> dict[str, Callable[[Any], Any]]:
        """Copies on the device in column order, and with gaps."""

        def columns(array: Any) -> Any:
            return self.put(np.array(array, order="F"))

        def spread(array: Any) -> Any:
            base = self.put(np.zeros(2 * array.size, array.dtype))
            dense = np.empty(array.shape, array.dtype).strides
            strides = [2 * stride // array.itemsize for stride in dense]
            view = plait_abi.operator("as_strided")(base, array.shape, strides)
            plait_abi.operator("copy_")(view, array)
            return view

        return {"columns first": columns, "every other element": spread}

    def empty_like(self, array: Any) -> Any:
        """Return a tensor of the device with the array's shape, dtype and order."""
        return plait_abi.operator("empty_like")(array, device=self.name)

    def take(self, results: Any) -> list[Any]:
        """Return results of the device as arrays, once they are there."""
        if isinstance(results, (tuple, list)):
            return [array for result in results for array in self.take(result)]
        if not hasattr(results, "device") or isinstance(results, np.ndarray):
            return as_arrays(results)
        assert str(results.device) == self.name, f"a result is on {results.device}"
        host = plait_abi.operator("empty_like")(results, device="cpu")
        plait_abi.operator("copy_")(host, results)
        return as_arrays(host)

    def call(self, operator: Operator, args: Any, kwargs: Any, suffix: str = "") -> Any:
        """Call the operator; one without tensor arguments also gets the device."""
        takes_device = any(argument.name == "device" for argument in operator.schema.arguments)
        if takes_device and not arrays_of([args, kwargs]) and not has_tensor([args, kwargs]):
            kwargs = {"device": self.name, **kwargs}
        return super().call(operator, args, kwargs, suffix)

    def copy_bytes(
        self, to: int, source: int, nbytes: int, stream: Stream | None, *ends: DLDevice
    ) -> None:
        """Copy bytes by the device's table, to the device from the host, or between two `ends`."""
        there, here = ends or (self.handle, HOST_MEMORY)
        status = self.table.copy(
            *(self.table.ctx, runtime().plain("thread"), to, there, source, here),
            *(nbytes, stream.pointer if stream else None, 0),
        )
        runtime().check(status, "copy")

    def take_memory(self, nbytes: int) -> int:
        """Take memory from the driver, which the caller gives back."""
        data = ctypes.c_void_p()
        status = self.table.memory_alloc(
            self.table.ctx, runtime().plain("thread"), self.handle, nbytes, ctypes.byref(data)
        )
        runtime().check(status, "memory_alloc")
        return data.value or 0

    def records(self, work: Callable[[], object]) -> list[dict[str, Any]]:
        """Return the device's records of what a function lets it do."""
        result: list[dict[str, Any]] = []

        def each(_arg: int, record: Any) -> None:
            fields = record.contents
            result.append({name: getattr(fields, name) for name, *_ in Activity._fields_})

        thread = runtime().plain("thread")
        status = self.table.activity_start(self.table.ctx, thread, self.handle)
        runtime().check(status, "activity_start")
        try:
            work()
        finally:
            self.synchronize()
            status = self.table.activity_stop(
                self.table.ctx, thread, self.handle, EachActivity(each), None
            )
        runtime().check(status, "activity_stop")
        return result

    # Streams and events.

    def synchronize(self) -> None:
        """Wait for all streams of the device."""
        runtime()("synchronize", self.handle)

    def wait_by_table(self, function: str, *arguments: Any) -> None:
        """Call a function of the device's table that waits.

        The runtime asks the device until the work is done, so that a signal can end the wait, and
        calls the function then.
        """
        status = getattr(self.table, function)(
            self.table.ctx, runtime().plain("thread"), *arguments
        )
        runtime().check(status, function)

    def stream(self, priority: int = 0) -> Stream:
        """Make a stream; the default one again, if the device has no others."""
        pointer = ctypes.c_void_p()
        runtime()("stream_new", self.handle, priority, ctypes.byref(pointer))
        return Stream(self, pointer)

    @property
    def default(self) -> Stream:
        """The default stream."""
        return Stream(self, ctypes.c_void_p())

    def event(self, *, timed: bool = False) -> Event:
        """Make an event."""
        pointer = ctypes.c_void_p()
        runtime()("event_new", self.handle, TIMED if timed else 0, ctypes.byref(pointer))
        return Event(self, pointer)

    def occupy(self, stream: Stream) -> None:
        """Put work into a stream that lasts longer than the calls behind this one take.

        What is missed in a test because the work ended too early is missed; nothing fails for it.
        """
        if self.burden is None:
            self.burden = self._measured()
        to, source, times = self.burden
        with stream.current():
            for _ in range(times):
                plait_abi.operator("copy_")(to, source)

    def _measured(self) -> tuple[Any, Any, int]:
        """Two tensors, and how often one must be copied to the other to keep the device busy."""

        def copy() -> float:
            start = time.perf_counter()
            plait_abi.operator("copy_")(to, source)
            self.synchronize()
            self.take(small)  # also waits, should `synchronize` not do it
            return time.perf_counter() - start

        small = self.put(np.zeros(1, np.float32))
        for elements in (1 << 20, 1 << 22, 1 << 24, 1 << 26):
            to, source = (
                plait_abi.operator("empty")((elements,), dtype="float32", device=self.name)
                for _ in range(2)
            )
            seconds = min(copy() for _ in range(3))  # other programs may run
            if seconds > BUSY_SECONDS / 10:
                break
        return to, source, max(1, min(100, int(BUSY_SECONDS / seconds)))


def has_tensor(value: Any) -> bool:
    """Whether there is a tensor within arguments."""
    if isinstance(value, (tuple, list)):
        return any(has_tensor(item) for item in value)
    if isinstance(value, dict):
        return has_tensor(list(value.values()))
    return hasattr(value, "device")


def until(done: Any) -> None:
    """Wait until a condition holds; raise an error after a minute."""
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end, f"not done after {PATIENCE} seconds"
        time.sleep(0.0005)


class _Counted:
    """A counted object of a device."""

    def __init__(self, device: Device, pointer: ctypes.c_void_p) -> None:
        self.device, self.pointer = device, pointer

    def close(self) -> None:
        """Release the object; work that a stream already has still runs."""
        if self.pointer:
            release(self.pointer)
            self.pointer = ctypes.c_void_p()


class Stream(_Counted):
    """A counted stream; the pointer is NULL for the default one."""

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make this the current stream of the calling thread."""
        before = ctypes.c_void_p()
        device = self.device.handle
        runtime()("set_stream", device, self.pointer, ctypes.byref(before))
        try:
            yield
        finally:
            runtime()("set_stream", device, before, None)
            if before:
                release(before)

    @property
    def done(self) -> bool:
        """Whether all work of the stream is finished."""
        answer = ctypes.c_int32()
        device = self.device.handle
        runtime()("stream_query", device, self.pointer, ctypes.byref(answer))
        return bool(answer.value)

    def synchronize(self) -> None:
        """Wait for the work of the stream."""
        runtime()("stream_synchronize", self.device.handle, self.pointer)

    def wait(self, event: Event) -> None:
        """Make later work of the stream wait for an event."""
        runtime()("stream_wait", self.device.handle, self.pointer, event.pointer)


class Event(_Counted):
    """A counted event."""

    def record(self, stream: Stream) -> Event:
        """Record the event in a stream."""
        runtime()("event_record", self.pointer, stream.pointer)
        return self

    @property
    def done(self) -> bool:
        """Whether the event is reached."""
        answer = ctypes.c_int32()
        runtime()("event_query", self.pointer, ctypes.byref(answer))
        return bool(answer.value)

    def synchronize(self) -> None:
        """Wait for the event."""
        runtime()("event_wait", self.pointer)

    def milliseconds_to(self, later: Event) -> float:
        """Return the time between two events that are reached."""
        answer = ctypes.c_double()
        runtime()("event_elapsed", self.pointer, later.pointer, ctypes.byref(answer))
        return answer.value
