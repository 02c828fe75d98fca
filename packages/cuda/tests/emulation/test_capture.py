"""Captures and graphs of the emulated driver."""

from __future__ import annotations

import ctypes
import threading
from array import array

import pytest
from emulated_driver import Driver

UNSUPPORTED, INVALIDATED, UNMATCHED, UNJOINED, ISOLATION, IMPLICIT = 900, 901, 903, 904, 905, 906
CAPTURED_EVENT, WRONG_THREAD, ILLEGAL_STATE = 907, 908, 401
GLOBAL, THREAD, RELAXED = range(3)


def pointer(value: int) -> ctypes.c_void_p:
    """Return a handle as the driver takes it."""
    return ctypes.c_void_p(value)


def begin(driver: Driver, stream: int, mode: int = GLOBAL) -> None:
    """Begin a capture."""
    driver.call("cuStreamBeginCapture_v2", pointer(stream), mode)


def end(driver: Driver, stream: int) -> tuple[int, int]:
    """End a capture and return the result and the graph."""
    graph = ctypes.c_void_p()
    code = driver.result("cuStreamEndCapture", pointer(stream), ctypes.byref(graph))
    return code, graph.value or 0


def status(driver: Driver, stream: int) -> int:
    """Return whether a stream is captured: 0, 1, or 2 if the capture is broken."""
    value = ctypes.c_int()
    driver.call("cuStreamIsCapturing", pointer(stream), ctypes.byref(value))
    return value.value


def replay(driver: Driver, graph: int, stream: int, times: int = 1) -> None:
    """Run a graph and destroy it."""
    executable = driver.handle("cuGraphInstantiateWithFlags", pointer(graph), ctypes.c_uint64(0))
    driver.call("cuGraphDestroy", pointer(graph))
    for _ in range(times):
        driver.call("cuGraphLaunch", pointer(executable), pointer(stream))
    driver.call("cuStreamSynchronize", pointer(stream))
    driver.call("cuGraphExecDestroy", pointer(executable))


def test_a_graph_of_kernels_copies_and_fills(driver: Driver) -> None:
    stream = driver.stream()
    x, y = driver.put(array("f", [1, 2])), driver.alloc(8)
    driver.function("scale_f32")  # modules are loaded before
    begin(driver, stream)
    assert status(driver, stream) == 1
    driver.launch("scale_f32", x, x, 2, 3, stream=stream)
    copy = (ctypes.c_uint64(y), ctypes.c_uint64(x), ctypes.c_size_t(8))
    driver.call("cuMemcpyDtoDAsync_v2", *copy, pointer(stream))
    fill = (ctypes.c_uint64(x + 4), 0, ctypes.c_size_t(4))
    driver.call("cuMemsetD8Async", *fill, pointer(stream))
    code, graph = end(driver, stream)
    assert (code, status(driver, stream)) == (0, 0)
    assert driver.take(x, 2) == [1, 2], "nothing has run"
    replay(driver, graph, stream)
    assert (driver.take(x, 2), driver.take(y, 2)) == ([3, 0], [3, 6])


def test_a_graph_is_replayed(driver: Driver) -> None:
    stream = driver.stream()
    x = driver.put(array("f", [1]))
    driver.function("scale_f32")
    begin(driver, stream)
    driver.launch("scale_f32", x, x, 1, 2, stream=stream)
    replay(driver, end(driver, stream)[1], stream, times=10)
    assert driver.take(x, 1) == [1024]


def test_streams_fork_and_join(driver: Driver) -> None:
    stream, other = driver.stream(), driver.stream()
    fork, join = driver.event(), driver.event()
    x = driver.put(array("f", [1]))
    driver.function("scale_f32")
    begin(driver, stream)
    driver.launch("scale_f32", x, x, 1, 2, stream=stream)
    driver.record(fork, stream)
    assert driver.wait(other, fork) == 0
    assert status(driver, other) == 1
    driver.launch("scale_f32", x, x, 1, 5, stream=other)
    driver.record(join, other)
    assert driver.wait(stream, join) == 0
    driver.launch("scale_f32", x, x, 1, 7, stream=stream)
    code, graph = end(driver, stream)
    assert (code, status(driver, other)) == (0, 0)
    replay(driver, graph, stream)
    assert driver.take(x, 1) == [70]
    assert driver.result("cuEventQuery", pointer(join)) == CAPTURED_EVENT
    assert driver.wait(stream, join) == CAPTURED_EVENT
    driver.record(join, stream)
    assert driver.wait(other, join) == 0


def test_a_stream_that_does_not_join(driver: Driver) -> None:
    stream, other = driver.stream(), driver.stream()
    fork = driver.event()
    x = driver.put(array("f", [1]))
    driver.function("scale_f32")
    begin(driver, stream)
    driver.record(fork, stream)
    driver.wait(other, fork)
    driver.launch("scale_f32", x, x, 1, 5, stream=other)
    assert end(driver, other)[0] == UNMATCHED
    assert end(driver, stream) == (INVALIDATED, 0)
    begin(driver, stream)
    driver.record(fork, stream)
    driver.wait(other, fork)
    driver.launch("scale_f32", x, x, 1, 5, stream=other)
    assert end(driver, stream) == (UNJOINED, 0)
    assert status(driver, other) == 0
    assert driver.take(x, 1) == [1]


@pytest.mark.parametrize(
    "name", ["alloc", "free", "pinned", "query", "synchronize", "device", "event", "module", "copy"]
)
def test_calls_that_break_a_capture(driver: Driver, name: str) -> None:
    stream = driver.stream()
    event = driver.event()
    x = driver.put(array("f", [1]))
    data = ctypes.create_string_buffer(4)
    address, size, out = ctypes.c_uint64(x), ctypes.c_size_t(4), ctypes.c_void_p()
    calls = {
        "alloc": ("cuMemAlloc_v2", ctypes.byref(out), size),
        "free": ("cuMemFree_v2", address),
        "pinned": ("cuMemHostAlloc", ctypes.byref(out), size, 0),
        "query": ("cuStreamQuery", pointer(stream)),
        "synchronize": ("cuStreamSynchronize", pointer(stream)),
        "device": ("cuCtxSynchronize",),
        "event": ("cuEventQuery", pointer(event)),
        "module": ("cuModuleLoad", ctypes.byref(out), b"samples.fatbin"),
        "copy": ("cuMemcpyHtoDAsync_v2", address, data, size, pointer(stream)),
    }
    driver.function("scale_f32")
    begin(driver, stream)
    assert driver.result(*calls[name]) == UNSUPPORTED
    assert status(driver, stream) == 2
    assert driver.launch("scale_f32", x, x, 1, 2, stream=stream) == INVALIDATED
    assert end(driver, stream) == (INVALIDATED, 0)
    assert status(driver, stream) == 0
    assert driver.take(x, 1) == [1]


def test_what_other_threads_may_do(driver: Driver) -> None:
    stream = driver.stream()
    results: list[int] = []
    size = ctypes.c_size_t(4)

    def alloc() -> None:
        driver.call("cuCtxSetCurrent", pointer(driver.context))
        out = ctypes.c_uint64()
        results.append(driver.result("cuMemAlloc_v2", ctypes.byref(out), size))
        if out.value:
            driver.memory.append(out.value)

    for mode in (GLOBAL, THREAD, RELAXED):
        begin(driver, stream, mode)
        thread = threading.Thread(target=alloc)
        thread.start()
        thread.join()
        if mode == RELAXED:
            alloc()
        end(driver, stream)
    assert results == [UNSUPPORTED, 0, 0, 0]


def test_another_thread_ends_a_relaxed_capture_alone(driver: Driver) -> None:
    stream = driver.stream()
    results: list[int] = []

    def finish() -> None:
        results.append(end(driver, stream)[0])

    for mode in (GLOBAL, RELAXED):
        begin(driver, stream, mode)
        thread = threading.Thread(target=finish)
        thread.start()
        thread.join()
        if mode == GLOBAL:
            finish()
    assert results == [WRONG_THREAD, 0, 0]


def test_captures_are_apart_from_other_work(driver: Driver) -> None:
    stream, other = driver.stream(), driver.stream()
    event = driver.event()
    driver.record(event, other)
    begin(driver, stream)
    assert driver.wait(stream, event) == ISOLATION
    assert end(driver, stream) == (INVALIDATED, 0)
    assert end(driver, stream) == (ILLEGAL_STATE, 0)
    blocking = driver.stream(0)
    begin(driver, blocking)
    assert driver.record(event) == IMPLICIT
    assert end(driver, blocking) == (INVALIDATED, 0)
    assert driver.result("cuStreamBeginCapture_v2", None, GLOBAL) == UNSUPPORTED


def test_a_graph_that_outlives_its_memory(driver: Driver) -> None:
    stream = driver.stream()
    x = driver.handle("cuMemAlloc_v2", ctypes.c_size_t(4))
    begin(driver, stream)
    driver.call("cuMemsetD8Async", ctypes.c_uint64(x), 0, ctypes.c_size_t(4), pointer(stream))
    graph = end(driver, stream)[1]
    driver.call("cuMemFree_v2", ctypes.c_uint64(x))
    executable = driver.handle("cuGraphInstantiateWithFlags", pointer(graph), ctypes.c_uint64(0))
    driver.call("cuGraphLaunch", pointer(executable), pointer(stream))
    assert driver.synchronize() == 700
    assert driver.trap() == "a copy or fill: its memory has been freed"
