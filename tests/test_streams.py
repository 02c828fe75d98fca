"""Streams, events, pinned memory and DLPack on the pretend accelerator, as Python sees them.

A gate holds a stream where it is: a kernel that waits until the test opens it. So what is not done
is known without clocks, and a wait that kept the interpreter's lock would never end.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait
import plait_abi

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def library(device: ctypes.CDLL) -> ctypes.CDLL:
    return device


@pytest.fixture(autouse=True)
def quiet(library: ctypes.CDLL) -> Iterator[None]:
    yield
    gc.collect()
    plait.accelerator.synchronize(0)
    plait.accelerator.synchronize(1)


class Gate:
    """Holds streams until it is opened; `close` puts work into the current stream."""

    def __init__(self) -> None:
        self._opened = threading.Event()
        self._kernel = plait_abi.kernel("sinc", self._wait)
        self._x = plait.zeros(1, device="ext")
        plait.accelerator.synchronize("ext:0")

    def _wait(self, x: Any, out: Any) -> None:
        assert self._opened.wait(60), "nobody opened the gate"
        out.fill_(1)

    def close(self) -> Any:
        self._opened.clear()
        return plait.sinc(self._x)

    def open(self) -> None:
        self._opened.set()

    def open_soon(self) -> threading.Thread:
        """Open it in another thread, which needs the interpreter's lock."""
        thread = threading.Thread(target=self.open)
        thread.start()
        return thread

    def end(self) -> None:
        self.open()
        plait.accelerator.synchronize("ext:0")
        self._kernel.close()
        self._x = None


@pytest.fixture
def gate(library: ctypes.CDLL) -> Iterator[Gate]:
    result = Gate()
    yield result
    result.end()


def test_the_work_of_a_stream_is_done_later(gate: Gate) -> None:
    stream = plait.Stream("ext")
    assert stream.device == plait.device("ext", 0) and stream.query()
    with stream:
        result = gate.close() + 1
        event = stream.record_event()
    assert not stream.query() and not event.query()
    assert plait.accelerator.current_stream().query(), "the default stream has nothing to do"
    gate.open_soon().join()
    stream.synchronize()
    event.synchronize()
    assert stream.query() and event.query()
    assert result.cpu().tolist() == [2.0]


@pytest.mark.parametrize("wait", ["stream", "event", "device", "cpu"])
def test_waiting_lets_other_threads_run(gate: Gate, wait: str) -> None:
    result = gate.close()
    event = plait.Event()
    event.record()
    opening = gate.open_soon()
    if wait == "stream":
        plait.accelerator.current_stream().synchronize()
    elif wait == "event":
        event.synchronize()
    elif wait == "device":
        plait.accelerator.synchronize()
    assert result.cpu().tolist() == [1.0]
    opening.join()


@contextlib.contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Send this process the signal of Ctrl-C when it has been in the block for some seconds."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


@pytest.mark.parametrize(
    "wait",
    ["stream", "event", "elapsed", "device", "another", "cpu", "item", "copy_", "pinned", "host"],
)
def test_an_interrupt_ends_a_wait(gate: Gate, wait: str) -> None:
    stream = plait.Stream("ext")
    start, end = plait.Event("ext", enable_timing=True), plait.Event("ext", enable_timing=True)
    target, pinned = plait.full((1,), 7.0), plait.full((1,), 7.0).pin_memory()
    with stream:
        start.record()
        result = gate.close() * 2
        end.record()
    calls = {
        "stream": stream.synchronize,
        "event": end.synchronize,
        "elapsed": lambda: start.elapsed_time(end),
        "device": lambda: plait.accelerator.synchronize("ext"),
        "another": lambda: plait.accelerator.synchronize("ext"),
        "cpu": result.cpu,
        "item": result.item,
        "copy_": lambda: target.copy_(result),
        "pinned": lambda: pinned.copy_(result),
        "host": lambda: plait.Stream("cpu").wait_event(end),
    }
    with stream if wait != "another" else contextlib.nullcontext():
        with pytest.raises(KeyboardInterrupt), interrupted_after(0.1):
            calls[wait]()
        assert not end.query(), "the wait was ended, not what it waited for"
        assert target.item() == pinned.item() == 7.0
        gate.open()
        end.synchronize()
        assert result.cpu().tolist() == [2.0]
        target.copy_(result)
        pinned.copy_(result)
        assert target.item() == pinned.item() == 2.0


@pytest.mark.parametrize("way", ["wait_stream", "wait_event", "wait"])
def test_a_stream_waits_for_another(gate: Gate, way: str) -> None:
    first, second, third = plait.Stream("ext"), plait.Stream("ext"), plait.Stream("ext")
    with first:
        output = gate.close()
        event = plait.Event("ext")
        event.record()
    if way == "wait_stream":
        second.wait_stream(first)
    elif way == "wait_event":
        second.wait_event(event)
    else:
        event.wait(second)
    with second:
        result = output * 3
    with third:
        other = plait.ones(1, device="ext") * 5
        assert other.cpu().tolist() == [5.0], "it has nothing to wait for"
    assert not second.query() and third.query()
    gate.open()
    second.synchronize()
    assert result.cpu().tolist() == [3.0]


def test_the_host_waits_for_another_type_of_device(gate: Gate) -> None:
    gate.close()
    event = plait.accelerator.current_stream().record_event()
    opening = gate.open_soon()
    plait.Stream("cpu").wait_event(event)
    assert event.query()
    opening.join()


def test_the_current_stream_is_that_of_the_innermost_block(library: ctypes.CDLL) -> None:
    outer, inner = plait.Stream("ext"), plait.Stream("ext")
    default = plait.accelerator.current_stream("ext")
    with outer as entered:
        assert entered is outer and plait.accelerator.current_stream() == outer
        with inner:
            assert plait.accelerator.current_stream() == inner
            with outer:
                assert plait.accelerator.current_stream() == outer
            assert plait.accelerator.current_stream() == inner
        with pytest.raises(ZeroDivisionError), inner:
            _ = 1 // 0
        assert plait.accelerator.current_stream() == outer
        assert plait.accelerator.current_stream(1) != outer, "each device has its own"
        results = []
        thread = threading.Thread(target=lambda: results.append(plait.accelerator.current_stream()))
        thread.start()
        thread.join()
        assert results == [default], "and each thread"
    assert plait.accelerator.current_stream() == default
    with plait.accelerator.stream(inner), plait.accelerator.stream(None):
        assert plait.accelerator.current_stream() == inner
    plait.accelerator.set_stream(inner)
    assert plait.accelerator.current_stream() == inner
    plait.accelerator.set_stream(default)
    assert plait.accelerator.current_stream() == default
    with pytest.raises(RuntimeError, match="without __enter__"):
        outer.__exit__(None, None, None)


def test_one_object_is_entered_on_two_threads(library: ctypes.CDLL) -> None:
    stream, own = plait.Stream("ext"), plait.Stream("ext")
    entered, leave = threading.Event(), threading.Event()
    results = []

    def run() -> None:
        with stream:
            entered.set()
            assert leave.wait(60)
        results.append(plait.accelerator.current_stream().stream_id)

    thread = threading.Thread(target=run)
    with own:
        thread.start()
        assert entered.wait(60)
        with stream:
            leave.set()
            thread.join()
        assert plait.accelerator.current_stream() == own
    assert results == [0]


def test_streams_are_compared_by_their_native_handles(library: ctypes.CDLL) -> None:
    stream, other = plait.Stream("ext"), plait.Stream("ext", priority=-1)
    with stream:
        again = plait.accelerator.current_stream()
    assert again is not stream and again == stream and hash(again) == hash(stream)
    assert again.native_handle == stream.stream_id != 0
    assert stream != other and stream != 3 and other.priority == -1
    defaults = [plait.accelerator.current_stream(number) for number in (0, 1)]
    assert defaults[0] != defaults[1] and defaults[0] != plait.Stream("cpu")
    assert defaults[0].stream_id == 0 and "default one of ext:0" in repr(defaults[0])
    assert "of ext:0, native handle 0x" in repr(stream)


def test_time_between_events(library: ctypes.CDLL) -> None:
    start, end = (plait.Event(enable_timing=True) for _ in range(2))
    with pytest.raises(ValueError, match="two recorded events"):
        start.elapsed_time(end)
    start.record()
    _ = plait.ones(3, device="ext") + 1
    end.record()
    assert start.elapsed_time(end) >= 0
    plain = plait.accelerator.current_stream().record_event()
    with pytest.raises(ValueError, match="made to be timed"):
        start.elapsed_time(plain)


def test_on_the_cpu_streams_and_events_do_nothing() -> None:
    stream, event = plait.Stream("cpu"), plait.Event("cpu", enable_timing=True)
    with stream:
        assert plait.ones(2).sum().item() == 2
    stream.wait_stream(plait.Stream("cpu"))
    stream.wait_event(stream.record_event(event))
    event.wait()
    assert stream.query() and event.query() and stream == plait.Stream("cpu")
    assert stream.device == event.device == plait.device("cpu") and event.event_id == 0
    with pytest.raises(NotImplementedError, match="events of an accelerator"):
        event.elapsed_time(event)


def test_what_is_refused(library: ctypes.CDLL) -> None:
    ext, cpu = plait.Stream("ext"), plait.Stream("cpu")
    for call, error, text in [
        (lambda: ext.wait_event(3), TypeError, "wait_event: `event` must be an Event, got int"),
        (lambda: ext.wait_stream(None), TypeError, "wait_stream: `stream` must be a Stream"),
        (lambda: ext.record_event(cpu), TypeError, "record_event: `event` must be an Event"),
        (lambda: ext.record_event(plait.Event("cpu")), ValueError, "of cpu, the stream of ext:0"),
        (lambda: plait.Event("ext:1").record(ext), ValueError, "of ext:1, the stream of ext:0"),
        (lambda: plait.Event("ext").wait(3), TypeError, "wait: `stream` must be a Stream, got int"),
        (lambda: plait.Event("ext").elapsed_time(3), TypeError, "`end_event` must be an Event"),
        (lambda: plait.Stream("ext:7"), ValueError, "no device ext:7: ext has 2"),
        (lambda: plait.Stream("rocm"), NotImplementedError, "no component for the device rocm:0"),
        (lambda: plait.Stream(1.5), TypeError, "Stream: `device` must be a device, int or None"),
        (lambda: plait.Stream(True), TypeError, "Stream: `device` must be a device, int or None"),
        (lambda: plait.accelerator.synchronize("cpu"), ValueError, "must be an accelerator"),
        (lambda: plait.accelerator.current_stream([]), TypeError, "must be a device, int or None"),
        (lambda: plait.Stream(2), ValueError, "Stream: there is no device ext:2: ext has 2"),
        (lambda: plait.Event("ext:7"), ValueError, "Event: there is no device ext:7: ext has 2"),
        (lambda: plait.set_default_device("ext:7"), ValueError, "no device ext:7: ext has 2"),
        (lambda: plait.set_default_device("rocm"), NotImplementedError, "for the device rocm:0"),
        (lambda: plait.device("ext:7").__enter__(), ValueError, "no device ext:7: ext has 2"),
        (lambda: plait.accelerator.set_stream(3), TypeError, "`stream` must be a Stream, got int"),
        (lambda: plait.accelerator.stream(3), TypeError, "`stream` must be a Stream or None"),
    ]:
        with pytest.raises(error, match=text):
            call()


@pytest.mark.parametrize(
    "name", ["current_stream", "synchronize", "memory_stats", "reset_peak_memory_stats"]
)
def test_devices_that_are_not_there(library: ctypes.CDLL, name: str) -> None:
    function = getattr(plait.accelerator, name)
    for number in ("ext:9", plait.device("ext", 9), 9):
        with pytest.raises(ValueError, match=f"{name}: there is no device ext:9: ext has 2"):
            function(number)
    with pytest.raises(ValueError, match=f"{name}: there is no device ext:-1"):
        function(-1)
    with pytest.raises(NotImplementedError, match=f"{name}: no component for the device rocm:0"):
        function("rocm")
    assert plait.get_default_device() == plait.device("cpu")


def test_the_accelerator(library: ctypes.CDLL) -> None:
    accelerator = plait.accelerator
    assert accelerator.is_available() and accelerator.device_count() == 2
    assert accelerator.current_accelerator() == plait.device("ext", 0)
    assert accelerator.current_device_index() == 0
    with plait.device("ext", 1):
        assert accelerator.current_accelerator() == plait.device("ext", 1)
        assert accelerator.current_device_index() == plait.Stream().device.index == 1
        x = plait.zeros(1000)
        assert str(x.device) == "ext:1" and plait.Event().device == x.device
    with plait.device("meta"):
        assert accelerator.current_accelerator() == plait.device("ext", 0)
    before = accelerator.memory_allocated()
    y = plait.zeros(1000, device="ext")
    assert accelerator.memory_allocated() - before >= y.nbytes
    assert accelerator.memory_stats("ext")["allocated_bytes.all.current"] > 0
    assert accelerator.memory_reserved(0) >= accelerator.memory_allocated(0)
    accelerator.empty_cache()


def test_the_cache_of_one_device_is_emptied(library: ctypes.CDLL) -> None:
    def reserved(index: int) -> int:
        unused = plait.accelerator.memory_reserved(index)
        return unused - plait.accelerator.memory_allocated(index)

    for index in (0, 1):
        plait.ones(100_000, device=f"ext:{index}")  # freed at once
        assert reserved(index) >= 400_000
    before = reserved(0)
    with plait.device("ext", 1):
        plait.accelerator.empty_cache()
    assert reserved(1) == 0 and reserved(0) == before
    for index in (1, 0):  # what is given out again has the right values
        assert plait.ones(100_000, device=f"ext:{index}").cpu().sum() == 100_000


def test_equal_and_allclose_compare_on_the_device(library: ctypes.CDLL) -> None:
    def copies(call: Callable[[], object]) -> int:
        before = library.example_device_get(b"copies")
        call()
        return int(library.example_device_get(b"copies") - before)

    here = plait.randn(1000, 600)
    here[999, 599] = 1  # for a smaller number, what is added below would be a large part of it
    x, y = here.to("ext"), here.to("ext")
    assert plait.equal(x, y) and plait.allclose(x, y) and x.equal(y)
    assert copies(lambda: plait.equal(x, y)) == copies(lambda: plait.allclose(x, y[:1])) == 1
    y[999, 599] += 1e-6
    assert not plait.equal(x, y) and plait.allclose(x, y)
    assert not plait.allclose(x, y, rtol=0, atol=1e-8)
    y[0, 0] = float("nan")
    assert not plait.allclose(x, y) and plait.allclose(y, y, equal_nan=True)
    assert not plait.equal(y, y) and not plait.equal(x, x[1:])
    assert plait.allclose(x[:0], y[:0]) and plait.equal(x[:0], y[:0])
    # what is on two devices, or of two dtypes, is compared on the host
    assert plait.equal(x, here) and plait.allclose(here, x) and plait.equal(x, here.to("ext:1"))
    assert plait.equal(x.bool(), x.bool().int()) and plait.allclose(x.double(), x)
    with pytest.raises(plait_abi.ShapeError, match=r"allclose: shapes must broadcast"):
        plait.allclose(x, x[1:])


def test_each_device_counts_its_own_memory(library: ctypes.CDLL) -> None:
    accelerator = plait.accelerator
    first, second = (accelerator.memory_stats(number) for number in (0, 1))
    x = plait.zeros(100_000, device="ext:1")
    assert accelerator.memory_stats(0) == first
    grown = accelerator.memory_stats("ext:1")
    assert grown["allocated_bytes.all.current"] >= second["allocated_bytes.all.current"] + x.nbytes
    assert grown["allocation.all.current"] == second["allocation.all.current"] + 1
    assert grown["allocation.all.allocated"] == second["allocation.all.allocated"] + 1
    assert accelerator.max_memory_allocated(1) >= accelerator.memory_allocated(1)
    with plait.device("ext:1"):
        assert accelerator.memory_allocated() == accelerator.memory_allocated(1)
        assert accelerator.memory_allocated() != accelerator.memory_allocated(0)
    cached = plait.memory_stats("ext:1")["cached_bytes"]
    del x
    assert accelerator.memory_allocated(1) == second["allocated_bytes.all.current"]
    assert plait.memory_stats("ext:1")["cached_bytes"] >= cached + 400_000
    assert plait.memory_stats("ext:1")["largest_cached"] >= 400_000
    assert accelerator.memory_reserved(1) >= 400_000


def test_the_peak_of_a_device_begins_anew(library: ctypes.CDLL) -> None:
    accelerator = plait.accelerator
    x = plait.zeros(100_000, device="ext:1")
    other = accelerator.max_memory_allocated(0)
    assert accelerator.max_memory_allocated(1) >= x.nbytes
    del x
    accelerator.reset_peak_memory_stats(1)
    assert accelerator.max_memory_allocated(1) == accelerator.memory_allocated(1)
    assert accelerator.max_memory_allocated(0) == other
    x = plait.zeros(50_000, device="ext:1")
    assert accelerator.max_memory_allocated("ext:1") >= accelerator.memory_allocated(1) >= x.nbytes


def test_a_copy_from_pinned_memory_is_not_waited_for(gate: Gate) -> None:
    gate.close()
    source = plait.arange(4.0)
    pinned = source.pin_memory()
    late = pinned.to("ext", non_blocking=True)
    early = source.to("ext", non_blocking=True)
    target = plait.zeros(4, device="ext")
    target.copy_(pinned, non_blocking=True)
    pinned[0] = source[0] = 9.0  # before the copy from `pinned` has begun
    there = late.to("cpu", non_blocking=True)
    assert there.is_pinned() and not plait.accelerator.current_stream().query()
    gate.open()
    plait.accelerator.synchronize()
    assert there.tolist() == late.cpu().tolist() == target.cpu().tolist() == [9.0, 1.0, 2.0, 3.0]
    assert early.cpu().tolist() == [0.0, 1.0, 2.0, 3.0], (
        "memory that is not pinned was read at once"
    )


def test_pinned_memory(library: ctypes.CDLL) -> None:
    count = library.example_device_get
    count.restype = ctypes.c_int64
    before = count(b"pinned_bytes")
    x = plait.arange(6.0).reshape(2, 3).t()
    pinned = x.pin_memory()
    assert count(b"pinned_bytes") - before == 24
    assert pinned.is_pinned() and not x.is_pinned() and pinned.pin_memory() is pinned
    assert pinned.tolist() == x.tolist() and pinned.stride() == x.stride()
    assert pinned[0].is_pinned() and not pinned.clone().is_pinned()
    storage = x.untyped_storage()
    assert storage.pin_memory("ext:1").is_pinned() and not storage.is_pinned()
    assert pinned.untyped_storage().is_pinned()
    assert plait.zeros(0, 3).pin_memory().shape == (0, 3)
    assert x[:, ::2].pin_memory().tolist() == x[:, ::2].tolist()
    leaf = plait.ones(2, requires_grad=True)
    (leaf.pin_memory() * 3).sum().backward()
    assert leaf.grad.tolist() == [3.0, 3.0]
    del pinned, storage
    gc.collect()
    assert count(b"pinned_bytes") == before
    with pytest.raises(RuntimeError, match="on the CPU is required, got one on ext:0"):
        plait.zeros(1, device="ext").pin_memory()
    with pytest.raises(ValueError, match="must be an accelerator"):
        x.pin_memory("cpu")


@pytest.mark.parametrize(
    "make",
    [
        lambda **how: plait.zeros(2, 3, **how),
        lambda **how: plait.ones((2, 3), dtype=plait.int32, **how),
        lambda **how: plait.full((2, 3), 4.0, **how),
        lambda **how: plait.empty(2, 3, **how).fill_(1),
        lambda **how: plait.tensor([[1, 2, 3]], **how),
        lambda **how: plait.rand(3, generator=plait.Generator().manual_seed(1), **how),
        lambda **how: plait.randn(3, generator=plait.Generator().manual_seed(1), **how),
        lambda **how: plait.randint(9, (3,), generator=plait.Generator().manual_seed(1), **how),
        lambda **how: plait.randperm(9, generator=plait.Generator().manual_seed(1), **how),
        lambda **how: plait.arange(5, **how),
        lambda **how: plait.linspace(0, 1, 5, **how),
        lambda **how: plait.eye(3, **how),
        lambda **how: plait.empty_strided((2, 3), (1, 2), **how).fill_(1),
        lambda **how: plait.zeros_like(plait.ones(2, 3).T, **how),
        lambda **how: plait.empty_like(plait.ones(2, 3).T, **how).fill_(1),
        lambda **how: plait.full_like(plait.ones(2), 3.0, **how),
        lambda **how: plait.ones(1).new_zeros(2, 3, **how),
        lambda **how: plait.ones(1).new_tensor([2, 3], **how),
        lambda **how: plait.hann_window(5, **how),
    ],
)
def test_new_tensors_in_pinned_memory(library: ctypes.CDLL, make: Any) -> None:
    pinned, plain = make(pin_memory=True), make(pin_memory=False)
    assert pinned.is_pinned() and not plain.is_pinned()
    assert pinned.tolist() == plain.tolist()
    assert (pinned.dtype, pinned.stride()) == (plain.dtype, plain.stride())
    assert not make(pin_memory=None).is_pinned()
    if plain.dtype.is_floating_point:
        with plait.no_grad():
            leaf = make(pin_memory=True, requires_grad=True)
        assert leaf.is_leaf and leaf.requires_grad and leaf.is_pinned()


def test_what_cannot_be_pinned(library: ctypes.CDLL) -> None:
    for make in (plait.zeros, plait.tensor):
        with pytest.raises(RuntimeError, match="pin_memory: a tensor on the CPU is required"):
            make([1], device="ext", pin_memory=True)
    target = plait.ones(2)
    with pytest.raises(TypeError, match="zeros: `pin_memory` and `out` exclude each other"):
        plait.zeros(2, out=target, pin_memory=True)
    assert target.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="floating"):
        plait.zeros(2, dtype=plait.int64, pin_memory=True, requires_grad=True)


def test_gradients_of_copies_that_are_not_waited_for(library: ctypes.CDLL) -> None:
    x = plait.ones(3, requires_grad=True)
    (x.to("ext", non_blocking=True) * 2).cpu().sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_saved_values_wait_in_pinned_memory(library: ctypes.CDLL) -> None:
    count = library.example_device_get
    count.restype = ctypes.c_int64
    before = count(b"pinned_bytes")
    x = plait.rand(4, device="ext", requires_grad=True)
    with plait.autograd.graph.save_on_cpu(pin_memory=True):
        y = (x * x).exp()
    assert count(b"pinned_bytes") > before
    y.sum().backward()
    value = x.detach().cpu()
    assert plait.allclose(x.grad.cpu(), 2 * value * (value * value).exp())


@pytest.mark.parametrize("arguments", [("ext", None, True), ("ext",)])
def test_modules_move_without_waiting(gate: Gate, arguments: tuple[Any, ...]) -> None:
    model = plait.nn.Linear(2, 3)
    pinned = plait.ones(3, 2).pin_memory()
    model.weight.data = pinned
    gate.close()
    model.to(*arguments, **({} if len(arguments) > 1 else {"non_blocking": True}))
    pinned.fill_(7)  # before the copy has begun
    gate.open()
    assert model.weight.cpu().flatten().tolist() == [7.0] * 6


@pytest.mark.parametrize("recorded", [False, True])
def test_memory_that_another_stream_uses_is_kept(gate: Gate, recorded: bool) -> None:
    stream = plait.Stream("ext")
    with stream:
        gate.close()
    x = plait.zeros(5000, device="ext")
    address = x.data_ptr()
    if recorded:
        x.record_stream(stream)
    del x
    y = plait.zeros(5000, device="ext")
    assert (y.data_ptr() == address) is not recorded
    with pytest.raises(TypeError, match="`stream` must be a Stream, got int"):
        y.record_stream(3)
    with pytest.raises(ValueError, match="is on ext:0, `stream` is one of cpu"):
        y.record_stream(plait.Stream("cpu"))
    gate.open()  # the end of a stream waits for its work


class Producer:
    """An array of another library on the pretend device; it notes what it was asked."""

    def __init__(self, x: Any, known: tuple[str, ...] = ("max_version", "copy", "dl_device")):
        self.x, self.known = x, (*known, "stream")
        self.asked: list[dict[str, Any]] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = self.x.__dlpack_device__()
        return device

    def __dlpack__(self, **keywords: Any) -> Any:
        self.asked.append(keywords)
        if set(keywords) - set(self.known):
            raise TypeError("unexpected keyword")
        return self.x.__dlpack__(**keywords)


def test_a_producer_is_told_our_stream(library: ctypes.CDLL) -> None:
    stream = plait.Stream("ext")
    producer = Producer(plait.arange(3, device="ext"))
    import_ = plait.from_dlpack(producer)
    with stream:
        again = plait.from_dlpack(producer)
    assert [request["stream"] for request in producer.asked] == [0, stream.native_handle]
    assert import_.data_ptr() == again.data_ptr() == producer.x.data_ptr()
    assert (import_ + 1).cpu().tolist() == [1, 2, 3]
    old = Producer(plait.arange(3, device="ext"), known=())
    assert plait.from_dlpack(old).cpu().tolist() == [0, 1, 2]
    assert old.asked[-1] == {"stream": 0}
    here = Producer(plait.arange(3))
    plait.from_dlpack(here)
    assert "stream" not in here.asked[0]


@pytest.mark.parametrize(("argument", "waits"), [("handle", True), (-1, False)])
def test_the_consumers_stream_waits(gate: Gate, argument: Any, waits: bool) -> None:
    stream = plait.Stream("ext")
    x = gate.close()
    capsule = x.__dlpack__(stream=stream.native_handle if argument == "handle" else argument)
    assert stream.query() is not waits
    gate.open()
    stream.synchronize()
    with stream:
        assert plait.from_dlpack(capsule).data_ptr() == x.data_ptr()


def test_without_a_number_the_default_stream_waits(gate: Gate) -> None:
    default = plait.accelerator.current_stream("ext")
    for number in (None, 0):
        with plait.Stream("ext"):
            x = gate.close()
            x.__dlpack__(stream=number)
        assert not default.query()
        gate.open()
        default.synchronize()


def test_dlpack_to_the_cpu(library: ctypes.CDLL) -> None:
    x = plait.arange(4.0, device="ext") * 2
    for known in (("max_version", "copy", "dl_device"), ()):
        producer = Producer(x, known)
        there = plait.from_dlpack(producer, device="cpu")
        assert there.tolist() == [0.0, 2.0, 4.0, 6.0]
        assert producer.asked[0]["dl_device"] == (1, 0)
    assert np.from_dlpack(x, device="cpu").tolist() == [0.0, 2.0, 4.0, 6.0]
    moved = plait.from_dlpack(np.arange(3), device="ext:1")
    assert str(moved.device) == "ext:1" and moved.cpu().tolist() == [0, 1, 2]
    with pytest.raises(BufferError):
        plait.from_dlpack(x, device="cpu", copy=False)
    with pytest.raises(BufferError, match="needs an array on ext:0, which is on cpu"):
        plait.from_dlpack(np.arange(3), device="ext", copy=False)
    copied = plait.from_dlpack(x, copy=True)
    assert copied.device == x.device and copied.data_ptr() != x.data_ptr()


@pytest.mark.parametrize(
    ("stream", "error", "text"),
    [
        ("1", TypeError, "`stream` must be an int or None, got '1'"),
        (-2, BufferError, "`stream` must be the number of a stream, -1 or None for a tensor on"),
        (2**70, TypeError, "`stream` must be an int or None"),
    ],
)
def test_bad_streams_of_dlpack(
    library: ctypes.CDLL, stream: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        plait.zeros(1, device="ext").__dlpack__(stream=stream)


def test_the_default_device(library: ctypes.CDLL) -> None:
    with plait.device("ext:1"):
        output = [plait.zeros(2), plait.tensor([1.0]), plait.rand(2), plait.as_tensor(np.ones(2))]
        model = plait.nn.Sequential(plait.nn.Linear(2, 3), plait.nn.BatchNorm1d(3))
        result = model(plait.rand(4, 2))
        assert plait.from_numpy(np.ones(2)).device.type == "cpu"
    assert {str(each.device) for each in [*output, result, *model.buffers()]} == {"ext:1"}
    assert plait.zeros(2).device.type == "cpu"


def test_errors_name_the_device(library: ctypes.CDLL) -> None:
    with pytest.raises(ValueError, match="`other` is on cpu, an earlier one on ext:0"):
        _ = plait.ones(2, device="ext") + plait.ones(2)
