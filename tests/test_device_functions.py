"""What a device may bring besides copies and streams, on the pretend accelerator: facts, a cache of
its memory, recorded graphs, events of other processes, records of its work, and generators.
"""

from __future__ import annotations

import copy
import ctypes
import gc
import json
import multiprocessing
import multiprocessing.reduction
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from plugins import EXAMPLES, compiled

import plait
import plait_abi
import plait_core as pc
from plait.profiler import Kind, profile
from plait_abi import binding

HERE = Path(__file__).parent
MIB = 1 << 20


@pytest.fixture(scope="module", name="cache")
def caching_plugin(device: ctypes.CDLL) -> Iterator[None]:
    """The allocator of <plait/caching_allocator.hpp> serves the device."""
    plait_abi.load(str(compiled(EXAMPLES / "caching.cpp", "-fvisibility=hidden")))
    yield
    gc.collect()
    pc.accelerator.synchronize()
    pc.accelerator.empty_cache()
    plait_abi.detach("example-caching")


@pytest.fixture(name="ask")
def asking(device: ctypes.CDLL) -> Iterator[Callable[[str, int], None]]:
    """A function that asks the device for faults or delays until the end of the test."""
    device.example_device_set.argtypes = [ctypes.c_char_p, ctypes.c_int64]
    asked = []

    def ask(name: str, value: int) -> None:
        asked.append(name)
        assert device.example_device_set(name.encode(), value)

    yield ask
    for name in asked:
        device.example_device_set(name.encode(), 0)


def test_facts_of_a_device(device: ctypes.CDLL, ask: Callable[[str, int], None]) -> None:
    first, second = pc.accelerator.properties("ext:0"), pc.accelerator.properties("ext:1")
    assert first.name == "pretend accelerator" and first.peers and not first.unified
    assert first.uuid != second.uuid and len(first.uuid) == 16
    assert pc.accelerator.priorities() == (1, -2)
    free, total = pc.accelerator.memory_info()
    assert 0 < free <= total == first.memory
    ask("limit", 64 * MIB)
    assert pc.accelerator.memory_info()[1] == 64 * MIB
    with pytest.raises(ValueError, match="there is no device ext:7"):
        pc.accelerator.properties("ext:7")
    with pytest.raises(ValueError, match="must be an accelerator"):
        pc.accelerator.memory_info("cpu")


def test_streams_have_the_priorities_of_the_device(device: ctypes.CDLL) -> None:
    assert pc.Stream("ext", priority=-2).priority == -2
    with pytest.raises(ValueError, match=r"Stream: `priority` must be from -2 .* to 1 .*, got 2"):
        pc.Stream("ext", priority=2)


def test_memory_is_cached_and_given_back(cache: None) -> None:
    x = pc.zeros(1000, device="ext")
    y = pc.zeros(3 * MIB // 4, device="ext")
    blocks = [block for block in pc.accelerator.memory_snapshot() if block["live"]]
    assert sorted(block["requested"] for block in blocks) == [4000, 3 * MIB]
    assert {block["bytes"] % 512 for block in blocks} == {0}
    stats = pc.memory_stats("ext")
    assert stats["live_bytes"] == sum(block["bytes"] for block in blocks)
    assert stats["live_bytes"] + stats["cached_bytes"] == 22 * MIB
    address = x.data_ptr()
    del x
    x = pc.ones(900, device="ext")
    assert x.data_ptr() == address  # the same stream has it again at once
    assert x.sum().item() == 900 and not y.any().item()
    del x, y
    pc.accelerator.empty_cache()
    assert pc.accelerator.memory_snapshot() == []


def test_memory_is_not_given_out_while_another_stream_uses_it(
    cache: None, ask: Callable[[str, int], None]
) -> None:
    x = pc.arange(1000.0, device="ext")
    side = pc.Stream("ext")
    side.wait_stream(pc.accelerator.current_stream())
    ask("delay_us", 60_000_000)  # until it is set to 0
    with side:
        y = x + 1
    address = x.data_ptr()
    del x
    waiting = [block["address"] for block in pc.accelerator.memory_snapshot() if block["waiting"]]
    assert waiting == [address]
    z = pc.zeros(1000, device="ext")
    assert z.data_ptr() != address
    ask("delay_us", 0)
    side.synchronize()
    assert y[999].item() == 1000


def test_the_error_says_who_has_the_memory(cache: None, ask: Callable[[str, int], None]) -> None:
    gc.collect()
    pc.accelerator.empty_cache()
    ask("limit", 64 * MIB)
    x = pc.zeros(4 * MIB, device="ext")
    with pytest.raises(plait_abi.OutOfMemoryError) as caught:
        pc.zeros(16 * MIB, device="ext")
    text = str(caught.value)
    for part in (
        "EXT out of memory. Tried to allocate 64.00 MiB on ext:0, "
        "which has 48.00 MiB of 64.00 MiB free",
        "16.00 MiB are live in 1 blocks (the largest: 16.00 MiB)",
    ):
        assert part in text, text
    del x
    y = pc.zeros(12 * MIB, device="ext")  # what is cached is given back first
    assert y.nbytes == 48 * MIB


def test_a_graph_repeats_its_work_on_the_memory_that_it_had(
    cache: None, device: ctypes.CDLL
) -> None:
    x = pc.tensor([1.0, 2.0], device="ext")
    graph = pc.accelerator.Graph()
    with graph.capture():
        stream = pc.accelerator.current_stream()
        assert binding.is_capturing(stream)
        y = x * 3
        side = pc.Stream("ext")
        side.wait_stream(stream)
        with side:
            assert binding.is_capturing(side)
            z = y + 1
        stream.wait_stream(side)
        w = z * z
    assert not binding.is_capturing(stream)
    others = [pc.full((2,), 9.0, device="ext") for _ in range(50)]
    for values in ([1.0, 2.0], [5.0, -1.0]):
        x.copy_(pc.tensor(values))
        graph.replay()
        assert w.tolist() == [(3 * value + 1) ** 2 for value in values]
    assert all(other.tolist() == [9, 9] for other in others)
    addresses = {block["address"] for block in pc.accelerator.memory_snapshot() if block["private"]}
    assert {y.data_ptr(), z.data_ptr(), w.data_ptr()} <= addresses
    assert not addresses & {other.data_ptr() for other in others}
    del y, z
    pc.accelerator.empty_cache()
    graph.replay()  # its memory stays, even what no tensor has
    assert w.tolist() == [256, 4]
    graph.reset()
    del w
    pc.accelerator.empty_cache()
    assert not [block for block in pc.accelerator.memory_snapshot() if block["private"]]


def test_what_waits_for_the_device_cannot_be_recorded(cache: None) -> None:
    x = pc.ones(2, device="ext")
    graph = pc.accelerator.Graph()
    with pytest.raises(RuntimeError, match="the host read a tensor"), graph.capture():
        (x + 1).tolist()
    with pytest.raises(RuntimeError, match="nothing was recorded"):
        graph.replay()
    with graph.capture():
        y = x + 1
    graph.replay()
    assert y.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="already been captured"):
        graph.begin()
    with pytest.raises(RuntimeError, match="without `begin`"):
        graph.end()


def test_graphs_may_have_one_pool(cache: None) -> None:
    x = pc.ones(2, device="ext")
    first = pc.accelerator.Graph()
    with first.capture():
        y = x + 1
    second = pc.accelerator.Graph(first.pool)
    with second.capture():
        z = y * 10
    x.fill_(3)
    first.replay()
    second.replay()
    assert z.tolist() == [40, 40]


def _records(link: Any) -> None:
    """In another process: record the event behind slow work, and say when it is there."""
    library, handle, fd, offset = link.recv()
    plait_abi.load(library)
    device = ctypes.CDLL(library)
    event = binding.open_event("ext", handle, fd.detach(), offset)
    device.example_device_set(b"delay_us", ctypes.c_int64(300_000))
    pc.ones(3, device="ext") + 1
    event.record()
    link.send("recorded")
    event.synchronize()
    link.send("reached")
    link.recv()


def test_an_event_is_reached_in_another_process(device_library: Path, device: ctypes.CDLL) -> None:
    event = pc.Event("ext", interprocess=True)
    handle, fd, offset = binding.share_event(event)
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_records, args=(theirs,))
    process.start()
    ours.send((str(device_library), handle, multiprocessing.reduction.DupFd(fd), offset))
    os.close(fd)
    assert event.query()  # nobody has recorded it
    assert ours.recv() == "recorded"
    event.wait()  # of the current stream
    x = pc.ones(1, device="ext") + 1
    assert x.item() == 2
    assert event.query()
    event.synchronize()
    assert ours.recv() == "reached"
    ours.send("end")
    process.join(240)
    assert process.exitcode == 0


def test_an_event_is_timed_or_of_several_processes(device: ctypes.CDLL) -> None:
    with pytest.raises(ValueError, match="cannot be timed"):
        pc.Event("ext", enable_timing=True, interprocess=True)
    with pytest.raises(ValueError, match="made for other processes"):
        binding.share_event(pc.Event("ext"))
    with pytest.raises(ValueError, match="an event of an accelerator"):
        binding.share_event(pc.Event("cpu"))


def test_records_of_the_device_are_rows_with_the_time_in_the_queue(
    device: ctypes.CDLL, ask: Callable[[str, int], None], tmp_path: Path
) -> None:
    x = pc.ones(3, device="ext")
    pc.accelerator.synchronize()
    ask("delay_us", 300_000)
    with profile() as prof:
        y = x * x
        z = y + 1
        z.cpu()
    recording = prof.recording()
    rows = recording.rows[recording.rows["kind"] == Kind.DEVICE]
    names = [recording.signatures[each].name for each in rows["signature"]]
    assert names == ["mul", "add", "copy"]
    # a record lies within the program's time, and does not contain the delay before its begin
    mul, add = (event for event in prof.events() if event.kernels)
    assert mul.kernels[0].name == "mul" and mul.device_time_total > 0
    assert mul.queue_time >= 300_000 > mul.device_time_total
    assert add.queue_time >= 300_000 > add.device_time_total
    prof.export_chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    queued = [row["args"]["queue time (us)"] for row in trace if row.get("cat") == "kernel"]
    assert len(queued) == 3 and queued[0] == pytest.approx(mul.queue_time, abs=1)
    assert rows[2]["a"] == 0  # no call of an operator launched it


@pytest.fixture(name="lagged")
def lagged_generator() -> Iterator[None]:
    plait_abi.load(str(compiled(HERE / "lagged_generator.c")))
    yield
    plait_abi.detach("lagged")


def test_a_generator_has_a_state_of_any_size(lagged: None) -> None:
    generator = pc.Generator().manual_seed(3)
    assert generator.initial_seed() == 3
    state = generator.get_state()
    assert isinstance(state, bytes) and len(state) == 5056
    first = pc.rand(4, generator=generator)
    assert generator.get_state() != state
    others = [generator.clone_state(), pickle.loads(pickle.dumps(generator)), copy.copy(generator)]
    second = pc.rand(4, generator=generator)
    for other in others:
        assert pc.equal(pc.rand(4, generator=other), second)
    assert pc.equal(pc.rand(4, generator=generator.set_state(state)), first)
    assert pc.equal(pc.rand(4, generator=generator.manual_seed(3)), first)
    with pytest.raises(ValueError, match="`lagged` has 5056 bytes, got 16"):
        generator.set_state(bytes(16))
    with pytest.raises(TypeError, match="must be the bytes that get_state"):
        generator.set_state((3, 0))
    with pytest.raises(ValueError, match="set_state: the position must be below 607"):
        generator.set_state(b"\xff" * 5056)


def test_the_default_state_is_that_of_the_component(lagged: None) -> None:
    pc.manual_seed(1)
    state = pc.get_rng_state()
    x = pc.randn(5)
    pc.set_rng_state(state)
    assert pc.equal(pc.randn(5), x)
    pc.manual_seed(1)
    assert pc.equal(pc.randn(5), x)


def test_devices_draw_from_generators_of_their_own(device: ctypes.CDLL, lagged: None) -> None:
    first, second = binding.default_generator("ext:0"), binding.default_generator("ext:1")
    assert str(first.device) == "ext:0" and str(second.device) == "ext:1"
    assert len(binding.default_generators()) == 3
    pc.manual_seed(2)
    states = [each.get_state() for each in binding.default_generators()]
    pc.rand(3)
    assert [each.get_state() for each in (first, second)] == states[1:]
    generator = binding.default_generator()
    before = generator.get_state()
    pc.rand(3, device="ext:1")
    pc.accelerator.synchronize("ext:1")
    assert generator.get_state() == before and first.get_state() == states[1]
    assert second.get_state() != states[2]
    pc.manual_seed(2)
    assert [each.get_state() for each in binding.default_generators()] == states


def test_a_layer_that_is_run_again_draws_the_same_numbers_of_the_device(
    device: ctypes.CDLL, lagged: None
) -> None:
    x = pc.ones(100, device="ext", requires_grad=True)
    y = plait.autograd.checkpoint(lambda t: plait.nn.functional.dropout(t, 0.5), x)
    y.sum().backward()
    assert pc.equal(x.grad.cpu(), y.detach().cpu())


def test_samples_draw_the_same_numbers_of_the_device(device: ctypes.CDLL, lagged: None) -> None:
    x = pc.ones(6, 50, device="ext")
    drawn = plait.func.vmap(lambda t: t + pc.rand_like(t), randomness="same", chunk_size=2)(x)
    assert (drawn == drawn[0]).all().item() and drawn[0].unique().numel() > 40


def test_a_child_does_not_give_back_pinned_memory(device: ctypes.CDLL) -> None:
    device.example_device_get.restype = ctypes.c_int64
    pinned = pc.ones(1000).pin_memory()
    pc.ones(1, device="ext")
    before = device.example_device_get(b"pinned_bytes")
    assert before >= 4000
    child = os.fork()
    if child == 0:
        del pinned
        os._exit(0 if device.example_device_get(b"pinned_bytes") == before else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    del pinned
    assert device.example_device_get(b"pinned_bytes") <= before - 4000


def test_whoever_waits_behind_a_failed_call_is_told(
    device: ctypes.CDLL, ask: Callable[[str, int], None]
) -> None:
    x = pc.ones(2, device="ext")
    pc.accelerator.synchronize()
    first, second, third = (pc.Stream("ext") for _ in range(3))
    launched, over = threading.Event(), threading.Event()
    errors = []

    def fail() -> None:
        with first:
            x.exp()
        launched.set()
        assert over.wait(60)
        try:
            pc.accelerator.synchronize("ext")
        except ValueError as error:
            errors.append(str(error))

    ask("delay_us", 60_000_000)  # until it is set to 0
    ask("fail_in", 1)
    thread = threading.Thread(target=fail)
    thread.start()
    assert launched.wait(60)
    second.synchronize()  # has nothing to do with it
    second.wait_stream(first)
    third.wait_stream(second)
    ask("delay_us", 0)
    with pytest.raises(ValueError, match="exp: the pretend device was told to fail"):
        third.synchronize()
    second.synchronize()  # it is told once
    over.set()
    thread.join()
    assert len(errors) == 1 and errors[0].startswith("exp: ")


def test_an_error_of_a_copy_names_it(device: ctypes.CDLL, ask: Callable[[str, int], None]) -> None:
    pc.accelerator.synchronize()
    ask("fail_copy", 1)
    x = pc.ones(2).to("ext")
    with pytest.raises(RuntimeError, match=r"^copy_: .* told to fail at a copy"):
        pc.accelerator.synchronize()
    del x


def test_settings_of_accelerators() -> None:
    assert pc.accelerator.uses_tf32() == (False, True)
    pc.accelerator.set_tf32(products=True, convolutions=False)
    assert pc.accelerator.uses_tf32() == (True, False)
    pc.accelerator.set_tf32(products=False, convolutions=True)
    pc.accelerator.set_deterministic(True)
    assert pc.accelerator.is_deterministic() and not pc.is_reproducible()
    pc.accelerator.set_deterministic(False)
