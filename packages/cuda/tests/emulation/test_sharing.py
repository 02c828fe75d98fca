"""Memory and events that two processes of the emulated driver share."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from array import array
from pathlib import Path

import pytest
from emulated_driver import Driver

INVALID_VALUE, INVALID_CONTEXT, INVALID_HANDLE = 1, 201, 400

OTHER = """
import ctypes, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from emulated_driver import Driver

class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 64)]

driver = Driver(Path(sys.argv[1]))
memory, event = (Handle.from_buffer_copy(bytes.fromhex(text)) for text in sys.argv[3:])
x = driver.handle("cuIpcOpenMemHandle_v2", memory, 1)
again = driver.handle("cuIpcOpenMemHandle_v2", memory, 1)
done = driver.handle("cuIpcOpenEventHandle", event)
stream = driver.stream()
print(x == again, flush=True)
sys.stdin.readline()
print(driver.result("cuEventQuery", ctypes.c_void_p(done)), flush=True)
driver.wait(stream, done)  # until the first process has written
driver.launch("scale_f32", x, x, 3, 10, stream=stream)
sys.stdin.readline()
print(driver.take(x, 3, stream=stream), flush=True)
driver.record(done, stream)
driver.call("cuStreamSynchronize", ctypes.c_void_p(stream))
for _ in range(2):
    driver.call("cuIpcCloseMemHandle", ctypes.c_uint64(x))
print(driver.result("cuIpcCloseMemHandle", ctypes.c_uint64(x)))
print(driver.launch("scale_f32", x, x, 1), driver.synchronize())
"""


class Handle(ctypes.Structure):
    """What the driver gives to other processes."""

    _fields_ = [("bytes", ctypes.c_ubyte * 64)]


class Other:
    """The second process."""

    def __init__(self, path: Path, memory: Handle, event: Handle) -> None:
        command = [sys.executable, "-X", "faulthandler", "-c", OTHER, str(path)]
        command += [os.path.dirname(__file__), bytes(memory).hex(), bytes(event).hex()]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def line(self) -> str:
        """Return what it prints next."""
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def close(self) -> int:
        """Wait for its end and return its exit code."""
        with self.process:
            return self.process.wait(60)

    def go_on(self) -> None:
        """Let it go on."""
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()


@pytest.fixture
def handles(driver: Driver) -> tuple[int, int, Handle, Handle]:
    """Return memory, an event, and their handles."""
    x, event = driver.put(array("f", [0, 0, 0])), driver.event(6)
    memory, shared = Handle(), Handle()
    driver.call("cuIpcGetMemHandle", ctypes.byref(memory), ctypes.c_uint64(x + 4))
    driver.call("cuIpcGetEventHandle", ctypes.byref(shared), ctypes.c_void_p(event))
    return x, event, memory, shared


def test_two_processes_compute_on_one_memory(
    driver: Driver, driver_path: Path, handles: tuple[int, int, Handle, Handle]
) -> None:
    x, event, memory, shared = handles
    other = Other(driver_path, memory, shared)
    assert other.line() == "True"
    stream = driver.stream()
    gate = driver.gate(stream)
    driver.call(
        "cuMemsetD32Async",
        ctypes.c_uint64(x),
        0x3F800000,
        ctypes.c_size_t(3),
        ctypes.c_void_p(stream),
    )
    driver.record(event, stream)
    other.go_on()
    assert other.line() == "600"
    gate.set()
    other.go_on()
    assert other.line() == "[10.0, 10.0, 10.0]"
    assert other.line() == "1"
    assert other.line() == "0 700"
    assert other.close() == 0
    assert driver.result("cuEventQuery", ctypes.c_void_p(event)) == 0
    assert driver.take(x, 3) == [10, 10, 10]


def test_handles_of_the_own_process_are_refused(
    driver: Driver, handles: tuple[int, int, Handle, Handle]
) -> None:
    _, _, memory, shared = handles
    out = ctypes.c_void_p()
    open_memory, open_event = "cuIpcOpenMemHandle_v2", "cuIpcOpenEventHandle"
    assert driver.result(open_memory, ctypes.byref(out), memory, 1) == INVALID_CONTEXT
    assert driver.result(open_event, ctypes.byref(out), shared) == INVALID_CONTEXT
    assert driver.result(open_memory, ctypes.byref(out), shared, 1) == INVALID_HANDLE
    assert driver.result(open_memory, ctypes.byref(out), Handle(), 1) == INVALID_HANDLE
    assert driver.result(open_memory, ctypes.byref(out), memory, 0) == INVALID_VALUE


def test_an_event_is_shared_only_if_it_was_made_for_it(driver: Driver) -> None:
    handle = Handle()
    event = ctypes.c_void_p(driver.event(2))
    assert driver.result("cuIpcGetEventHandle", ctypes.byref(handle), event) == INVALID_VALUE
    out = ctypes.c_void_p()
    assert driver.result("cuEventCreate", ctypes.byref(out), 4) == INVALID_VALUE, "it has no time"
