"""The functions of the emulated driver, by their exported names, for tests."""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
import sys
import threading
from array import array
from pathlib import Path
from typing import Any

__all__ = ["Driver", "DriverError", "run"]


def run(code: str, path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process with its own environment; its arguments are two paths."""
    command = [
        sys.executable,
        "-X",
        "faulthandler",
        "-c",
        code,
        str(path),
        str(Path(__file__).parent),
    ]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=240
    )


class DriverError(Exception):
    """A result of the driver that is not success."""

    def __init__(self, name: str, code: int) -> None:
        super().__init__(f"{name}: error {code}")
        self.code = code


class Driver:
    """A loaded libcuda.so.1, started, with a current context on device 0."""

    def __init__(self, path: Path) -> None:
        self.library = ctypes.CDLL(str(path))
        self.library.plait_emulation_get.restype = ctypes.c_int64
        self.library.plait_emulation_trap.restype = ctypes.c_char_p
        self.memory: list[int] = []
        self.module: int | None = None
        self.functions: dict[str, int] = {}
        self.gates: list[tuple[threading.Event, Any]] = []
        self.call("cuInit", 0)
        self.context = self.handle("cuDevicePrimaryCtxRetain", 0)
        self.call("cuCtxSetCurrent", ctypes.c_void_p(self.context))

    def close(self) -> None:
        """Open gates, wait, free memory, and forget faults."""
        for gate, _ in self.gates:
            gate.set()
        for name in ("alloc_fails_in", "launch_fails_in", "lost_in", "delay_us"):
            self.set(name, 0)
        self.library.plait_emulation_revive()
        for address in self.memory:
            self.result("cuMemFree_v2", ctypes.c_uint64(address))

    def result(self, name: str, *arguments: Any) -> int:
        """Call a function and return its result."""
        return int(getattr(self.library, name)(*arguments))

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function, which must succeed."""
        code = self.result(name, *arguments)
        if code:
            raise DriverError(name, code)

    def handle(self, name: str, *arguments: Any) -> int:
        """Call a function whose first argument is where it puts a handle; return that."""
        out = ctypes.c_void_p()
        self.call(name, ctypes.byref(out), *arguments)
        return out.value or 0

    def set(self, name: str, value: int) -> None:
        """Set a number of the emulation."""
        assert self.library.plait_emulation_set(name.encode(), ctypes.c_int64(value))

    def get(self, name: str) -> int:
        """Return a number of the emulation."""
        return int(self.library.plait_emulation_get(name.encode()))

    def trap(self) -> str:
        """Return the text of the last fault."""
        return bytes(self.library.plait_emulation_trap()).decode()

    # Memory

    def alloc(self, nbytes: int) -> int:
        """Take memory of the device until the test ends."""
        address = self.handle("cuMemAlloc_v2", ctypes.c_size_t(nbytes))
        self.memory.append(address)
        return address

    def put(self, values: array[Any], stream: int = 0, *, wait: bool = True) -> int:
        """Copy an array to new memory of the device."""
        nbytes = len(values) * values.itemsize
        address = self.alloc(nbytes)
        data = ctypes.c_void_p(values.buffer_info()[0])
        pieces = (ctypes.c_uint64(address), data, ctypes.c_size_t(nbytes), ctypes.c_void_p(stream))
        self.call("cuMemcpyHtoDAsync_v2", *pieces)
        if wait:  # other streams do not wait for the copy
            self.call("cuStreamSynchronize", ctypes.c_void_p(stream))
        return address

    def take(self, address: int, n: int, code: str = "f", stream: int = 0) -> list[Any]:
        """Copy n numbers from the device, behind the work of the stream."""
        values = array(code, bytes(n * array(code).itemsize))
        data = ctypes.c_void_p(values.buffer_info()[0])
        nbytes = ctypes.c_size_t(n * values.itemsize)
        self.call(
            "cuMemcpyDtoHAsync_v2", data, ctypes.c_uint64(address), nbytes, ctypes.c_void_p(stream)
        )
        return values.tolist()

    # Work

    def function(self, name: str) -> int:
        """Return the handle of a kernel; the first time it is loaded."""
        if self.module is None:
            self.module = self.handle("cuModuleLoad", b"anywhere/samples.fatbin")
        if name not in self.functions:
            module = ctypes.c_void_p(self.module)
            self.functions[name] = self.handle("cuModuleGetFunction", module, name.encode())
        return self.functions[name]

    def launch(
        self,
        name: str,
        x: int = 0,
        y: int = 0,
        n: int = 0,
        factor: float = 0,
        *,
        grid: tuple[int, int, int] = (1, 1, 1),
        threads: int = 32,
        shared: int = 0,
        stream: int = 0,
    ) -> int:
        """Launch a kernel of samples.cpp with its arguments and return the result."""
        args = ctypes.create_string_buffer(struct.pack("QQqd", x, y, n, factor))
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(args))
        return self.result(
            "cuLaunchKernel",
            ctypes.c_void_p(self.function(name)),
            *grid,
            threads,
            1,
            1,
            shared,
            ctypes.c_void_p(stream),
            parameters,
            None,
        )

    def gate(self, stream: int = 0) -> threading.Event:
        """Let the stream's later work wait until the event is set."""
        gate = threading.Event()
        callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: gate.wait(60) and None)
        self.gates.append((gate, callback))
        self.call("cuLaunchHostFunc", ctypes.c_void_p(stream), callback, None)
        return gate

    def record(self, event: int, stream: int = 0) -> int:
        """Record an event in a stream and return the result."""
        return self.result("cuEventRecord", ctypes.c_void_p(event), ctypes.c_void_p(stream))

    def wait(self, stream: int, event: int) -> int:
        """Let a stream wait for an event and return the result."""
        return self.result("cuStreamWaitEvent", ctypes.c_void_p(stream), ctypes.c_void_p(event), 0)

    def query(self, stream: int = 0) -> int:
        """Return whether a stream has done its work: 0 or 600."""
        return self.result("cuStreamQuery", ctypes.c_void_p(stream))

    def synchronize(self) -> int:
        """Wait for the device and return the result."""
        return self.result("cuCtxSynchronize")

    def stream(self, flags: int = 1) -> int:
        """Create a stream that does not wait for the default stream."""
        return self.handle("cuStreamCreateWithPriority", flags, 0)

    def event(self, flags: int = 0) -> int:
        """Create an event."""
        return self.handle("cuEventCreate", flags)
