"""Streams, events, copies, memory and facts of the device."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from emulation_control import Emulation, run_program

import plait_core as pc

cuda = pc.cuda
LONG = 60_000_000  # microseconds: work that has not begun when a test looks; then it is set to 0


def test_work_of_a_stream_is_done_later_and_in_order(emulation: Emulation) -> None:
    x = pc.ones(1000, device="cuda")
    cuda.synchronize()
    emulation.set("delay_us", LONG)
    stream, event = cuda.Stream(), cuda.Event()
    with cuda.stream(stream):
        y = ((x + 1) * 2 - 3) ** 2
        event.record()
    assert not stream.query() and not event.query()
    emulation.set("delay_us", 0)
    event.synchronize()
    assert stream.query() and event.query()
    assert float(y.cpu().max()) == 1.0


def test_streams_wait_for_events(emulation: Emulation) -> None:
    first, second = cuda.Stream(), cuda.Stream()
    x = pc.zeros(100, device="cuda")
    cuda.synchronize()
    emulation.set("delay_us", 20_000)
    with cuda.stream(first):
        x.add_(1)
        x.mul_(5)
    second.wait_stream(first)
    with cuda.stream(second):
        y = x + 1
    second.synchronize()
    assert y.cpu().tolist() == [6.0] * 100


def test_memory_that_another_stream_uses_is_not_given_out(emulation: Emulation) -> None:
    stream = cuda.Stream()
    x = pc.full((5000,), 7.0, device="cuda")
    address = x.data_ptr()
    cuda.synchronize()
    emulation.set("delay_us", LONG)
    with cuda.stream(stream):
        y = x + 1
    del x
    gc.collect()
    z = pc.empty(5000, device="cuda")
    assert z.data_ptr() != address
    emulation.set("delay_us", 0)
    stream.synchronize()
    assert float(y.cpu().min()) == 8.0


def test_pinned_memory_is_copied_without_a_wait(emulation: Emulation) -> None:
    source = pc.arange(10_000.0).pin_memory()
    assert source.is_pinned()
    stream = cuda.Stream()
    waits = emulation.get("waits")
    emulation.set("delay_us", LONG)
    with cuda.stream(stream):
        x = source.to("cuda", non_blocking=True)
        back = pc.empty(10_000).pin_memory()
        back.copy_(x + 1, non_blocking=True)
        assert not stream.query() and emulation.get("waits") == waits
    emulation.set("delay_us", 0)
    stream.synchronize()
    assert pc.equal(back, source + 1)


def test_pinned_memory_serves_again() -> None:
    x = pc.empty(5000).pin_memory()
    address = x.data_ptr()
    del x
    gc.collect()
    assert pc.empty(5000).pin_memory().data_ptr() == address


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "bool", "complex64"])
@pytest.mark.parametrize("n", [0, 1, 31, 1025, 100_000])
def test_bytes_come_back(dtype: str, n: int) -> None:
    x = pc.arange(n).to(getattr(pc, dtype))
    assert pc.equal(x.cuda().cpu(), x)
    assert pc.equal(x.pin_memory().cuda(non_blocking=True).cpu(), x)


def test_times_of_events() -> None:
    first, second = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    first.record()
    pc.ones(1000, device="cuda").exp()
    second.record()
    assert first.elapsed_time(second) >= 0
    with pytest.raises(ValueError, match="made to be timed"):
        cuda.Event().elapsed_time(second)


def test_priorities_and_streams_of_others() -> None:
    lowest, highest = cuda.Stream.priority_range()
    assert highest < lowest == 0
    stream = cuda.Stream(priority=highest)
    assert stream.priority == highest
    with pytest.raises(ValueError, match="`priority` must be from"):
        cuda.Stream(priority=highest - 1)
    same = cuda.ExternalStream(stream.cuda_stream)
    assert same == stream and isinstance(same, cuda.Stream) and isinstance(stream, cuda.Stream)
    with cuda.stream(same):
        assert cuda.current_stream() == stream
        x = pc.ones(3, device="cuda") + 1
    same.synchronize()
    assert x.cpu().tolist() == [2, 2, 2]
    assert cuda.current_stream() == cuda.default_stream()


def test_threads_have_streams_of_their_own() -> None:
    results: list[float] = []

    def work(value: float) -> None:
        with cuda.stream(cuda.Stream()):
            x = pc.full((1000,), value, device="cuda")
            for _ in range(20):
                x = x * 1.0 + 1.0
            results.append(float(x.cpu().sum()))

    threads = [threading.Thread(target=work, args=(float(i),)) for i in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(results) == [20_000.0, 21_000.0, 22_000.0, 23_000.0]


def test_facts() -> None:
    facts = cuda.get_device_properties("cuda:0")
    assert facts.name == cuda.get_device_name() and facts.total_memory > 1 << 20
    assert (facts.major, facts.minor) == cuda.get_device_capability(0)
    assert facts.warp_size == 32 and facts.multi_processor_count > 0
    free, total = cuda.mem_get_info()
    assert 0 < free <= total == facts.total_memory
    assert cuda.is_bf16_supported() and cuda.get_arch_list() == [f"sm_{facts.major}{facts.minor}"]


def test_counters_of_memory() -> None:
    cuda.synchronize()
    gc.collect()
    before = cuda.memory_allocated()
    x = pc.zeros(1 << 18, device="cuda")
    assert cuda.memory_allocated() == before + (1 << 20) <= cuda.memory_reserved()
    cuda.reset_peak_memory_stats()
    y = pc.zeros(1 << 18, device="cuda")
    del y
    assert cuda.max_memory_allocated() == before + (2 << 20)
    text = cuda.memory_summary()
    assert "allocated bytes" in text and "segment of" in text
    blocks = [b for s in cuda.memory_snapshot() for b in s["blocks"]]
    live = sum(b["size"] for b in blocks if b["state"] == "active_allocated")
    assert live == cuda.memory_allocated()
    del x
    cuda.empty_cache()
    assert cuda.memory_allocated() == before


def test_random_numbers_are_those_of_the_cpu() -> None:
    pc.manual_seed(5)
    want = pc.rand(1000)
    pc.manual_seed(5)
    assert pc.equal(pc.rand(1000, device="cuda").cpu(), want)
    cuda.manual_seed_all(5)
    state = cuda.get_rng_state()
    first = pc.rand(10, device="cuda").cpu()
    assert pc.equal(first, want[:10]) and cuda.initial_seed() == 5
    cuda.set_rng_state(state)
    assert pc.equal(pc.rand(10, device="cuda").cpu(), first)


def test_dlpack_hands_streams_over(emulation: Emulation) -> None:
    stream = cuda.Stream()
    cuda.synchronize()
    emulation.set("delay_us", 20_000)
    with cuda.stream(stream):
        x = pc.ones(100, device="cuda") * 3
        # a consumer that works in the default stream, as 1 says
        other = pc.from_dlpack(_Capsule(x.__dlpack__(stream=1)))
    y = other + 1  # in the default stream, behind what `stream` does
    assert y.cpu().tolist() == [4.0] * 100
    assert x.__dlpack_device__() == (2, 0)
    for number in (0, -2):
        with pytest.raises(BufferError, match="`stream` must be"):
            x.__dlpack__(stream=number)


class _Capsule:
    """A producer with a finished capsule."""

    def __init__(self, capsule: object) -> None:
        self._capsule = capsule

    def __dlpack__(self, **words: object) -> object:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0


def test_the_array_interface_of_cuda() -> None:
    x = pc.ones(4, 6, device="cuda")[:, ::2]
    facts = x.__cuda_array_interface__
    assert facts["shape"] == (4, 3) and facts["typestr"] == "<f4" and facts["version"] == 3
    assert facts["data"] == (x.data_ptr(), False) and facts["strides"] == (24, 8)
    assert facts["stream"] == 1
    assert np.dtype(facts["typestr"]) == np.float32
    assert not hasattr(pc.ones(2), "__cuda_array_interface__")
    with cuda.stream(cuda.Stream()) as _:
        assert x.__cuda_array_interface__["stream"] == cuda.current_stream().cuda_stream


def test_the_current_device() -> None:
    assert cuda.current_device() == 0
    with cuda.device(0), cuda.device_of(pc.ones(1)):
        assert pc.ones(1, device="cuda").device.index == 0
    with pytest.raises(ValueError, match="there is no device cuda:7"):
        cuda.set_device(7)
    pc.set_default_device("cuda")
    try:
        assert pc.ones(2).device.type == "cuda"
    finally:
        pc.set_default_device(None)


def test_a_context_that_another_library_made_current_is_noticed() -> None:
    x = pc.ones(3, device="cuda")
    Emulation().call("cuCtxSetCurrent", None)
    y = x + 1
    event = cuda.Event()
    Emulation().call("cuCtxSetCurrent", None)
    event.record()
    event.synchronize()
    assert y.cpu().tolist() == [2, 2, 2]


def test_two_devices() -> None:
    run_program(
        """
        cuda = plait.cuda
        assert cuda.device_count() == 2 and cuda.can_device_access_peer(0, 1) in (True, False)
        x = plait.arange(1000.0, device="cuda:0")
        y = x.to("cuda:1")
        assert y.device.index == 1 and plait.equal(y.cpu(), x.cpu())
        cuda.set_device(1)
        assert plait.ones(2, device="cuda").device.index == cuda.current_device() == 1
        with cuda.device(0):
            assert plait.ones(2).cuda().device.index == 0
        assert cuda.current_device() == 1
        with cuda.stream(cuda.Stream(0)):  # its device is the current one there
            assert cuda.current_device() == 0 and plait.ones(2, device="cuda").device.index == 0
        assert cuda.current_device() == 1
        refused(ValueError, lambda: x + y, "cuda:1")
        with cuda.stream(cuda.Stream(0)), cuda.stream(cuda.Stream(1)):
            z = (x * 2).to("cuda:1") + y
            assert plait.equal(z.cpu(), x.cpu() * 3)
        assert cuda.memory_allocated(0) > 0 and cuda.memory_allocated(1) > 0
        cuda.manual_seed_all(3)
        a, b = plait.rand(5, device="cuda:0"), plait.rand(5, device="cuda:1")
        assert plait.equal(a.cpu(), b.cpu())
        import threading
        seen = []
        thread = threading.Thread(target=lambda: seen.append(cuda.current_device()))
        thread.start(), thread.join()
        assert seen == [0]  # each thread has a current device of its own
        """,
        PLAIT_CUDA_DEVICES="2",
    )


def test_a_training_in_a_stream_is_that_of_the_default_stream() -> None:
    run_program("""
        from plait import nn, optim

        def train(stream):
            plait.manual_seed(0)
            model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4)).to("cuda")
            optimizer = optim.Adam(model.parameters(), lr=0.01)
            x, t = plait.randn(16, 8).cuda(), plait.randint(0, 4, (16,)).cuda()
            plait.cuda.synchronize()
            emulation.set("delay_us", 300)  # work that does not wait for other work comes too early
            losses = []
            with plait.cuda.stream(stream):
                for _ in range(6):
                    optimizer.zero_grad()
                    loss = nn.functional.cross_entropy(model(x), t)
                    loss.backward()
                    optimizer.step()
                    losses.append(loss.item())
            emulation.set("delay_us", 0)
            return losses

        assert train(plait.cuda.Stream()) == train(plait.cuda.default_stream())
    """)
