"""The caching allocator: alignment, reuse, counters, bounds."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

import pytest

import plait_core as pc

MEGABYTE = 1 << 20


def stat(name: str) -> int:
    return int(pc.memory_stats()[name])


@pytest.mark.parametrize("elements", [17, 100, 1000, 5000, 8192, 8193, 70_000, 600_000, 3_000_000])
def test_blocks_are_aligned_and_writable(elements: int) -> None:
    kept = [pc.full((elements,), i) for i in range(3)]
    for i, x in enumerate(kept):
        assert x.data_ptr() % 64 == 0
        assert float(x[0]) == float(x[-1]) == i


@pytest.mark.parametrize("elements", [64, 4096, 50_000, 1_000_000])
def test_freed_memory_is_reused_at_once(elements: int) -> None:
    first = pc.zeros(elements)
    where = first.data_ptr()
    system = stat("system_allocations")
    for _ in range(20):
        del first
        first = pc.ones(elements)
        assert first.data_ptr() == where
    assert stat("system_allocations") == system


def test_counters_follow_what_lives() -> None:
    gc.collect()
    live, blocks, count = stat("live_bytes"), stat("live_blocks"), stat("allocations")
    x = pc.zeros(1000, 1000)
    y = pc.zeros(100)
    assert stat("live_bytes") - live >= 4_000_400
    assert stat("live_bytes") - live <= 4_000_400 * 1.4
    assert stat("live_blocks") - blocks == 2
    assert stat("allocations") - count == 2
    assert stat("peak_bytes") >= stat("live_bytes")
    del x, y
    assert stat("live_bytes") == live
    assert stat("live_blocks") == blocks


def test_many_small_tensors_leave_little_behind() -> None:
    pc.empty_cache()
    before = stat("cached_bytes")
    kept = [pc.empty(64) for _ in range(100_000)]
    taken = 100_000 * 256
    assert stat("live_bytes") >= taken
    del kept
    assert stat("cached_bytes") - before <= 0.1 * taken
    pc.empty_cache()
    assert stat("cached_bytes") - before <= 0.1 * taken


def test_empty_cache_gives_memory_back() -> None:
    x = pc.zeros(16 * MEGABYTE)
    del x
    assert stat("cached_bytes") >= 64 * MEGABYTE
    assert stat("largest_cached") >= 64 * MEGABYTE
    pc.empty_cache()
    assert stat("cached_bytes") < 8 * MEGABYTE
    assert stat("largest_cached") == 0


def test_impossible_sizes_are_an_error() -> None:
    for n in (1 << 50, 1 << 58):
        with pytest.raises(MemoryError, match="empty"):
            pc.empty(n)
    assert float(pc.ones(3).sum()) == 3


def test_the_cache_is_bounded(in_new_process: Callable[..., str]) -> None:
    code = """
import plait_core as pc
for n in range(1, 40):
    x = pc.zeros(n * 100_000)
    del x
print(pc.memory_stats()["cached_bytes"])
"""
    assert int(in_new_process(code, PLAIT_CACHE_BYTES=str(4 * MEGABYTE))) <= 5 * MEGABYTE
    assert int(in_new_process(code)) >= 15 * MEGABYTE


def test_threads_share_it() -> None:
    failures: list[str] = []

    def work(seed: int) -> None:
        kept: list[pc.Tensor] = []
        for i in range(400):
            n = (seed * 7919 + i * 104729) % 20_000 + 1
            x = pc.full((n,), seed)
            if len(kept) > 8:
                kept.pop(i % 8)
            kept.append(x)
            if any(float(k[0]) != seed or float(k[-1]) != seed for k in kept):
                failures.append(f"thread {seed} lost a block at step {i}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
