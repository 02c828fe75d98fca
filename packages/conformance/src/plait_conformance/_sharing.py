"""Memory of the device under test in two processes: this one, and one that opens it."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
from collections.abc import Sequence
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any

from plait_conformance._device import HOST_MEMORY, Device
from plait_conformance._tables import SharedMemory, runtime
from plait_conformance.plugin import load_libraries

LONG = 120.0  # seconds after which the other process counts as hanging


def shared_memory(device: Device, address: int, nbytes: int) -> SharedMemory:
    """Ask the device how another process finds memory; what is in it has arrived there."""
    device.synchronize()
    memory = SharedMemory(size=ctypes.sizeof(SharedMemory), fd=-1)
    thread = runtime().plain("thread")
    status = device.table.share(
        device.table.ctx, thread, device.handle, address, nbytes, ctypes.byref(memory)
    )
    runtime().check(status, "share")
    return memory


def open_memory(device: Device, memory: SharedMemory, nbytes: int) -> tuple[int, Any]:
    """Open memory of another process; return its address, and what closes it."""
    data, opened = ctypes.c_void_p(), ctypes.c_void_p()
    status = device.table.share_open(
        *(device.table.ctx, runtime().plain("thread"), device.handle, ctypes.byref(memory)),
        *(nbytes, ctypes.byref(data), ctypes.byref(opened)),
    )
    runtime().check(status, "share_open")
    return data.value or 0, opened


def close_memory(device: Device, address: int, nbytes: int, opened: Any) -> None:
    """Close what was opened, once the work on it is done."""
    device.synchronize()
    device.table.share_close(device.table.ctx, device.handle, address, nbytes, opened)


def serve(end: Connection, name: str, libraries: Sequence[str]) -> None:
    """Open memory, read it and write to it, until None arrives: the other process."""
    load_libraries(libraries)
    device = Device(name)
    while (order := end.recv()) is not None:
        description, nbytes, data = order
        memory = SharedMemory.from_buffer_copy(description)
        if memory.fd >= 0:
            memory.fd = reduction.recv_handle(end)
        answer: Any
        try:
            address, opened = open_memory(device, memory, nbytes)
            host = ctypes.create_string_buffer(data, nbytes)
            there = ctypes.create_string_buffer(nbytes)
            ends = (HOST_MEMORY, device.handle)
            device.copy_bytes(ctypes.addressof(there), address, nbytes, None, *ends)
            device.copy_bytes(address, ctypes.addressof(host), nbytes, None)
            close_memory(device, address, nbytes, opened)
            answer = there.raw
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"
        end.send(answer)


class Opener:
    """A process with the same device, which opens memory of this one."""

    def __init__(self, device: Device, libraries: Sequence[str]) -> None:
        context = multiprocessing.get_context("spawn")
        self._end, there = context.Pipe()
        arguments = (there, device.name, tuple(libraries))
        self._process = context.Process(target=serve, args=arguments, daemon=True)
        self._process.start()
        there.close()

    def exchange(self, memory: SharedMemory, nbytes: int, data: bytes) -> bytes:
        """Open the memory in the other process, read it, write `data`, and close it."""
        assert len(data) == nbytes
        self._end.send((bytes(memory), nbytes, data))
        if memory.fd >= 0:
            reduction.send_handle(self._end, memory.fd, self._process.pid or 0)
        assert self._end.poll(LONG), f"the other process did not answer within {LONG:g} s"
        answer = self._end.recv()
        assert isinstance(answer, bytes), f"in the other process: {answer}"
        return answer

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(OSError):  # it has ended by itself
            self._end.send(None)
        self._process.join(LONG)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
            raise AssertionError(f"the other process did not end within {LONG:g} s")
