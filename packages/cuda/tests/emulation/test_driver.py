"""The emulated driver: memory, copies, streams, events, faults, forks, and the end of a process."""

from __future__ import annotations

import ctypes
import os
from array import array
from pathlib import Path

import pytest
from emulated_driver import Driver, DriverError, run

INVALID_VALUE, OUT_OF_MEMORY, NOT_INITIALIZED, INVALID_CONTEXT = 1, 2, 3, 201
INVALID_HANDLE, NOT_FOUND, NOT_READY = 400, 500, 600
OUT_OF_RESOURCES, LAUNCH_FAILED, NOT_PERMITTED = 701, 719, 800


def pointer(value: int) -> ctypes.c_void_p:
    """Return a handle or an address as the driver takes it."""
    return ctypes.c_void_p(value)


def pinned(driver: Driver, n: int) -> ctypes.Array[ctypes.c_float]:
    """Return an array in pinned memory, which is never freed."""
    address = driver.handle("cuMemHostAlloc", ctypes.c_size_t(4 * n), 1)
    return (ctypes.c_float * n).from_address(address)


# Memory


def test_memory_has_a_limit(driver: Driver) -> None:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    driver.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    assert free.value == total.value == 2 << 30
    before = driver.get("live_bytes")
    address = driver.alloc(1000)
    driver.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    assert total.value - free.value == driver.get("live_bytes") - before == 1000
    with pytest.raises(DriverError) as error:
        driver.alloc(2 << 30)
    assert error.value.code == OUT_OF_MEMORY
    assert driver.result("cuMemFree_v2", ctypes.c_uint64(address + 4)) == INVALID_VALUE
    driver.call("cuMemFree_v2", ctypes.c_uint64(address))
    assert driver.result("cuMemFree_v2", ctypes.c_uint64(address)) == INVALID_VALUE
    driver.memory.remove(address)


def test_the_host_cannot_touch_memory_of_the_device(driver_path: Path) -> None:
    code = """
import ctypes, sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from emulated_driver import Driver
print(ctypes.c_float.from_address(Driver(Path(sys.argv[1])).alloc(4)).value)
"""
    assert run(code, driver_path).returncode == -11


def test_where_an_address_lies(driver: Driver) -> None:
    address = driver.alloc(1000)
    base, size = ctypes.c_uint64(), ctypes.c_size_t()
    where = (ctypes.byref(base), ctypes.byref(size), ctypes.c_uint64(address + 999))
    driver.call("cuMemGetAddressRange_v2", *where)
    assert (base.value, size.value) == (address, 1000)
    kind = ctypes.c_int()
    driver.call("cuPointerGetAttribute", ctypes.byref(kind), 2, ctypes.c_uint64(address))
    assert kind.value == 2
    host = ctypes.addressof(pinned(driver, 4))
    driver.call("cuPointerGetAttribute", ctypes.byref(kind), 2, ctypes.c_uint64(host))
    assert kind.value == 1
    nowhere = ctypes.c_uint64(address + 1000)
    assert driver.result("cuPointerGetAttribute", ctypes.byref(kind), 2, nowhere) == INVALID_VALUE


def test_copies_stay_within_allocations(driver: Driver) -> None:
    address = driver.alloc(100)
    data = ctypes.create_string_buffer(101)
    size = ctypes.c_size_t(101)
    device = ctypes.c_uint64(address)
    assert driver.result("cuMemcpyHtoDAsync_v2", device, data, size, None) == INVALID_VALUE
    assert driver.result("cuMemcpyDtoHAsync_v2", data, device, size, None) == INVALID_VALUE
    assert driver.result("cuMemcpyDtoDAsync_v2", device, device, size, None) == INVALID_VALUE
    assert driver.result("cuMemsetD8Async", device, 0, size, None) == INVALID_VALUE
    size = ctypes.c_size_t(100)  # an address of the device is none of the host
    assert driver.result("cuMemcpyHtoDAsync_v2", device, device, size, None) == INVALID_VALUE


def test_fills_and_copies_on_the_device(driver: Driver) -> None:
    x, y = driver.alloc(40), driver.alloc(40)
    driver.call("cuMemsetD32Async", ctypes.c_uint64(x), 7, ctypes.c_size_t(10), None)
    driver.call("cuMemsetD8Async", ctypes.c_uint64(x), 1, ctypes.c_size_t(4), None)
    pieces = (ctypes.c_uint64(y), ctypes.c_uint64(x), ctypes.c_size_t(40))
    driver.call("cuMemcpyDtoDAsync_v2", *pieces, None)
    assert driver.take(y, 10, "i") == [0x01010101] + [7] * 9


def test_copies_of_pageable_memory_are_done_when_they_return(driver: Driver) -> None:
    stream = driver.stream()
    gate = driver.gate(stream)
    values = array("f", [1, 2, 3])
    x = driver.put(values, stream, wait=False)
    values[0] = 9  # the copy has the value of the call
    gate.set()
    assert driver.take(x, 3, stream=stream) == [1, 2, 3]


def test_copies_of_pinned_memory_come_later(driver: Driver) -> None:
    stream = driver.stream()
    host, back = pinned(driver, 1), pinned(driver, 1)
    x = driver.alloc(4)
    gate = driver.gate(stream)
    size = ctypes.c_size_t(4)
    driver.call("cuMemcpyHtoDAsync_v2", ctypes.c_uint64(x), host, size, pointer(stream))
    driver.call("cuMemcpyDtoHAsync_v2", back, ctypes.c_uint64(x), size, pointer(stream))
    host[0] = 5
    assert driver.query(stream) == NOT_READY
    gate.set()
    driver.call("cuStreamSynchronize", pointer(stream))
    assert back[0] == 5


# Streams and events


def test_streams_run_side_by_side_and_wait_for_events(driver: Driver) -> None:
    first, second, third = (driver.stream() for _ in range(3))
    event = driver.event()
    assert driver.result("cuEventQuery", pointer(event)) == 0, "never recorded"
    x = driver.put(array("f", [1]))
    gate = driver.gate(first)
    driver.launch("scale_f32", x, x, 1, 10, stream=first)
    assert driver.record(event, first) == 0
    assert driver.result("cuEventQuery", pointer(event)) == NOT_READY
    assert driver.wait(second, event) == 0
    driver.launch("scale_f32", x, x, 1, 3, stream=second)
    y = driver.put(array("f", [4]))
    driver.launch("scale_f32", y, y, 1, 2, stream=third)
    driver.call("cuStreamSynchronize", pointer(third))
    assert driver.take(y, 1, stream=third) == [8]
    assert (driver.query(first), driver.query(second)) == (NOT_READY, NOT_READY)
    gate.set()
    assert driver.take(x, 1, stream=second) == [30]
    driver.call("cuEventSynchronize", pointer(event))
    assert driver.query(first) == 0


@pytest.mark.parametrize("flags", [0, 1])
def test_the_default_stream_waits_for_blocking_streams(driver: Driver, flags: int) -> None:
    stream = driver.stream(flags)
    gate = driver.gate(stream)
    driver.call("cuMemsetD8Async", ctypes.c_uint64(driver.alloc(4)), 0, ctypes.c_size_t(4), None)
    if flags:
        driver.call("cuStreamSynchronize", None)
    else:
        assert driver.query() == NOT_READY
    gate.set()
    driver.call("cuStreamSynchronize", None)


def test_blocking_streams_wait_for_the_default_stream(driver: Driver) -> None:
    stream, other = driver.stream(0), driver.stream(1)
    gate = driver.gate()
    for each in (stream, other):
        driver.gate(each).set()
    driver.call("cuStreamSynchronize", pointer(other))
    assert driver.query(stream) == NOT_READY
    gate.set()
    driver.call("cuStreamSynchronize", pointer(stream))


def test_events_have_times(driver: Driver) -> None:
    stream = driver.stream()
    first, second, plain = driver.event(), driver.event(), driver.event(2)
    milliseconds = ctypes.c_float()
    out = ctypes.byref(milliseconds)
    both = (pointer(first), pointer(second))
    assert driver.result("cuEventElapsedTime", out, *both) == INVALID_HANDLE, "never recorded"
    gate = driver.gate(stream)
    for event in (first, second, plain):
        driver.record(event, stream)
    assert driver.result("cuEventElapsedTime", out, *both) == NOT_READY
    gate.set()
    driver.call("cuStreamSynchronize", pointer(stream))
    driver.call("cuEventElapsedTime", out, *both)
    assert milliseconds.value >= 0
    assert driver.result("cuEventElapsedTime", out, both[0], pointer(plain)) == INVALID_HANDLE


def test_an_event_stands_for_the_moment_of_the_wait(driver: Driver) -> None:
    first, second = driver.stream(), driver.stream()
    event = driver.event()
    driver.record(event, first)
    driver.call("cuStreamSynchronize", pointer(first))
    driver.wait(second, event)
    driver.gate(first)
    driver.record(event, first)  # a later record holds nobody up
    driver.call("cuStreamSynchronize", pointer(second))


def test_work_of_a_destroyed_stream_is_done(driver: Driver) -> None:
    stream = driver.stream()
    x = driver.put(array("f", [1]))
    gate = driver.gate(stream)
    driver.launch("scale_f32", x, x, 1, 2, stream=stream)
    driver.call("cuStreamDestroy_v2", pointer(stream))
    assert driver.query(stream) == INVALID_HANDLE
    gate.set()
    assert driver.synchronize() == 0
    assert driver.take(x, 1) == [2]


def test_the_driver_is_not_called_by_host_functions(driver: Driver) -> None:
    results: list[int] = []
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(
        lambda _: results.append(driver.synchronize())
    )
    driver.call("cuLaunchHostFunc", None, callback, None)
    driver.synchronize()
    assert results == [NOT_PERMITTED]


def test_threads_start_at_the_first_use(driver: Driver) -> None:
    before = driver.get("threads")
    stream = driver.stream()
    assert driver.query(stream) == 0
    assert driver.get("threads") == before
    driver.gate(stream).set()
    assert driver.get("threads") == before + 1


# Launches


def test_launches_are_checked(driver: Driver) -> None:
    with pytest.raises(DriverError) as error:
        driver.function("scale_i32")
    assert error.value.code == NOT_FOUND
    with pytest.raises(DriverError) as error:
        driver.handle("cuModuleLoad", b"nothing.fatbin")
    assert error.value.code == 301
    assert driver.launch("sum_shared_f32", threads=2000) == INVALID_VALUE
    assert driver.launch("lanes_f32", threads=64) == OUT_OF_RESOURCES
    assert driver.launch("sum_shared_f32", grid=(0, 1, 1)) == INVALID_VALUE
    assert driver.launch("sum_shared_f32", grid=(1, 70000, 1)) == INVALID_VALUE
    assert driver.launch("sum_shared_f32", shared=50000) == INVALID_VALUE
    assert driver.launch("sum_shared_f32", stream=12345) == INVALID_HANDLE


def test_functions_have_attributes(driver: Driver) -> None:
    function = pointer(driver.function("lanes_f32"))
    value = ctypes.c_int()
    driver.call("cuFuncGetAttribute", ctypes.byref(value), 0, function)
    assert value.value == 32
    driver.call("cuFuncSetAttribute", function, 8, 100 << 10)
    assert driver.result("cuFuncSetAttribute", function, 8, 1 << 20) == INVALID_VALUE
    occupancy = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
    driver.call(occupancy, ctypes.byref(value), function, 32, ctypes.c_size_t(100 << 10))
    assert value.value == 2


# Faults


def test_after_a_fault_every_call_fails(driver: Driver) -> None:
    x = driver.put(array("f", [1]))
    stream, event = driver.stream(), driver.event()
    driver.launch("scale_f32", x, x, 2, stream=stream)
    driver.record(event, stream)
    assert driver.synchronize() == 700
    assert driver.launch("scale_f32", x, x, 1) == 700
    assert driver.query(stream) == driver.result("cuEventQuery", pointer(event)) == 700
    assert driver.record(event, stream) == driver.wait(stream, event) == 700
    with pytest.raises(DriverError, match="error 700"):
        driver.alloc(4)


def test_faults_on_request(driver: Driver) -> None:
    driver.set("alloc_fails_in", 2)
    x = driver.alloc(4)
    with pytest.raises(DriverError, match="error 2"):
        driver.alloc(4)
    driver.alloc(4)
    driver.set("launch_fails_in", 1)
    assert driver.launch("scale_f32", x, x, 1) == OUT_OF_RESOURCES
    assert driver.launch("scale_f32", x, x, 1) == 0
    driver.set("lost_in", 1)
    driver.launch("scale_f32", x, x, 1)
    assert driver.synchronize() == LAUNCH_FAILED
    assert driver.trap() == "the device was told to be lost"
    assert not driver.library.plait_emulation_set(b"nothing", ctypes.c_int64(1))
    assert driver.get("nothing") == -1


def test_an_old_driver(driver: Driver) -> None:
    version = ctypes.c_int()
    driver.set("version", 11040)
    driver.call("cuDriverGetVersion", ctypes.byref(version))
    driver.set("version", 13000)
    assert version.value == 11040


def test_unknown_handles_are_errors(driver: Driver) -> None:
    assert driver.query(0x1234) == INVALID_HANDLE
    assert driver.record(0x1234) == INVALID_HANDLE
    assert driver.wait(0, 0x1234) == INVALID_HANDLE
    for name in ("cuEventDestroy_v2", "cuStreamDestroy_v2", "cuModuleUnload", "cuGraphDestroy"):
        assert driver.result(name, pointer(0x1234)) == INVALID_HANDLE
    assert driver.result("cuCtxSetCurrent", pointer(0x1234)) == INVALID_CONTEXT


def test_results_have_names_and_texts(driver: Driver) -> None:
    text = ctypes.c_char_p()
    driver.call("cuGetErrorName", 700, ctypes.byref(text))
    assert text.value == b"CUDA_ERROR_ILLEGAL_ADDRESS"
    driver.call("cuGetErrorString", 700, ctypes.byref(text))
    assert text.value == b"an illegal memory access was encountered"
    assert driver.result("cuGetErrorString", 12345, ctypes.byref(text)) == INVALID_VALUE


# Several devices, processes, and their ends

PEERS = """
import ctypes, sys
from array import array
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from emulated_driver import Driver
driver = Driver(Path(sys.argv[1]))
x = driver.put(array("f", [1, 2]))
first = driver.function("scale_f32")
other = driver.handle("cuDevicePrimaryCtxRetain", 1)
stream = driver.stream()
event = driver.event()
driver.call("cuCtxSetCurrent", ctypes.c_void_p(other))
y = driver.alloc(8)
copy = (ctypes.c_uint64(y), ctypes.c_void_p(other), ctypes.c_uint64(x))
driver.call("cuMemcpyPeerAsync", *copy, ctypes.c_void_p(driver.context), ctypes.c_size_t(8), None)
print(driver.take(y, 2))
print(driver.record(event))  # the other device's
args = ctypes.create_string_buffer(32)
parameters = (ctypes.c_void_p * 1)(ctypes.addressof(args))
shape = (1, 1, 1, 1, 1, 1, 0)
print(driver.result("cuLaunchKernel", ctypes.c_void_p(first), *shape, None, parameters, None))
driver.module = None
driver.functions.clear()
if sys.argv[3:]:
    driver.call("cuCtxEnablePeerAccess", ctypes.c_void_p(driver.context), 0)
    print(driver.result("cuCtxEnablePeerAccess", ctypes.c_void_p(driver.context), 0))
driver.launch("scale_f32", x, y, 2, 3)
print(driver.synchronize())
driver.call("cuCtxSetCurrent", ctypes.c_void_p(driver.context))
print(driver.synchronize())  # a fault of one device is none of the other
"""


def test_several_devices(driver_path: Path) -> None:
    done = run(PEERS, driver_path, PLAIT_CUDA_DEVICES="2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[1.0, 2.0]", "400", "400", "700", "0"]
    allowed = PEERS.replace("sys.argv[3:]", "True")
    done = run(allowed, driver_path, PLAIT_CUDA_DEVICES="2")
    assert done.stdout.splitlines() == ["[1.0, 2.0]", "400", "400", "704", "0", "0"]


def test_no_device(driver_path: Path) -> None:
    code = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).cuInit(0))"
    assert run(code, driver_path, PLAIT_CUDA_DEVICES="0").stdout == "100\n"
    code = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).cuCtxSynchronize())"
    assert run(code, driver_path).stdout == f"{NOT_INITIALIZED}\n"


def test_a_forked_child_has_no_driver(driver: Driver) -> None:
    driver.alloc(4)
    child = os.fork()
    if child == 0:
        results = {
            driver.result("cuInit", 0),
            driver.synchronize(),
            driver.query(),
            driver.record(0),
        }
        os._exit(0 if results == {NOT_INITIALIZED} else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert driver.synchronize() == 0


END = """
import ctypes, sys
from array import array
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from emulated_driver import Driver
driver = Driver(Path(sys.argv[1]))
x = driver.put(array("f", [1.0] * 100))
driver.set("delay_us", 100)
for i in range(4):
    stream = driver.stream()
    for j in range(1000):
        driver.launch("sum_shared_f32", x, x, 100, threads=64, shared=256, stream=stream)
print("over")
"""


def test_a_process_may_end_with_work_in_flight(driver_path: Path) -> None:
    done = run(END, driver_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "over\n", "")
