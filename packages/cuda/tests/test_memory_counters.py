"""The counters of the device's memory under PyTorch's names."""

from __future__ import annotations

import pytest
from emulation_control import Emulation, run_program

import plait_core as pc

cuda = pc.cuda

MiB = 1 << 20
METRICS = ["allocation", "allocated_bytes", "requested_bytes", "active", "active_bytes"]
METRICS += ["segment", "reserved_bytes", "inactive_split", "inactive_split_bytes"]
KINDS = ["all", "large_pool", "small_pool"]
NUMBERS = ["current", "peak", "allocated", "freed"]


def changes(before: dict[str, int]) -> dict[str, int]:
    """Return what is different from earlier numbers, by name."""
    return {name: n - before[name] for name, n in cuda.memory_stats().items() if n != before[name]}


@pytest.fixture
def begin() -> dict[str, int]:
    """The counters when nothing is cached and every counter that grows is 0."""
    cuda.synchronize()
    cuda.empty_cache()
    cuda.reset_peak_memory_stats()
    cuda.reset_accumulated_memory_stats()
    return dict(cuda.memory_stats())


def test_all_names_are_there_and_agree() -> None:
    x = pc.ones(1000, device="cuda")
    stats = cuda.memory_stats()
    assert list(stats) == sorted(stats)
    for metric in METRICS:
        for kind in KINDS:
            current, peak, added, freed = (stats[f"{metric}.{kind}.{each}"] for each in NUMBERS)
            assert 0 <= current <= peak and added >= 0 and freed >= 0, (metric, kind)
        for each in ("current", "allocated", "freed"):
            parts = [stats[f"{metric}.{kind}.{each}"] for kind in KINDS]
            assert parts[0] == parts[1] + parts[2], (metric, each)
    for name in ("num_ooms", "num_alloc_retries", "num_sync_all_streams", "num_device_alloc"):
        assert stats[name] >= 0
    nested = cuda.memory_stats_as_nested_dict()
    assert nested["active_bytes"]["small_pool"]["peak"] == stats["active_bytes.small_pool.peak"]
    assert nested["num_ooms"] == stats["num_ooms"]
    del x


def test_a_small_request(begin: dict[str, int]) -> None:
    x = pc.empty(1000, dtype=pc.uint8, device="cuda")
    after = changes(begin)
    for kind in ("all", "small_pool"):
        assert after[f"allocated_bytes.{kind}.current"] == 1024
        assert after[f"requested_bytes.{kind}.current"] == 1000
        assert after[f"allocation.{kind}.allocated"] == after[f"active.{kind}.current"] == 1
        assert after.get(f"segment.{kind}.current", 0) * 2 * MiB == after.get(
            f"reserved_bytes.{kind}.allocated", 0
        )
    assert not any("large_pool" in name for name in after)
    del x
    after = changes(begin)
    assert after["allocated_bytes.all.freed"] == 1024
    assert after["allocated_bytes.all.peak"] == 1024
    assert not any(name.startswith("alloc") and name.endswith("current") for name in after)


def test_a_large_request_and_what_is_reserved(begin: dict[str, int]) -> None:
    x = pc.empty(30 * MiB, dtype=pc.uint8, device="cuda")
    after = changes(begin)
    assert after["reserved_bytes.large_pool.current"] == 30 * MiB
    assert after["segment.large_pool.current"] == after["num_device_alloc"] == 1
    del x
    assert cuda.max_memory_reserved() == begin["reserved_bytes.all.current"] + 30 * MiB
    cuda.empty_cache()
    after = changes(begin)
    assert after["reserved_bytes.large_pool.freed"] == 30 * MiB and after["num_device_free"] == 1
    assert "reserved_bytes.all.current" not in after
    assert cuda.max_memory_reserved() == begin["reserved_bytes.all.current"] + 30 * MiB
    cuda.reset_peak_memory_stats()
    assert cuda.max_memory_reserved() == cuda.memory_reserved()


def test_free_parts_of_a_segment_cannot_be_given_back(begin: dict[str, int]) -> None:
    x = pc.empty(2 * MiB, dtype=pc.uint8, device="cuda")  # of a segment of 20 MiB
    after = changes(begin)
    assert after["inactive_split.large_pool.current"] == 1
    assert after["inactive_split_bytes.large_pool.current"] == 18 * MiB
    y = pc.empty(2 * MiB, dtype=pc.uint8, device="cuda")
    del x
    after = changes(begin)
    assert after["inactive_split.large_pool.current"] == 2
    assert after["inactive_split_bytes.large_pool.current"] == 18 * MiB
    del y  # one free block now, which is the whole segment
    assert "inactive_split.large_pool.current" not in changes(begin)
    assert "inactive_split_bytes.large_pool.current" not in changes(begin)


def test_memory_that_waits_for_a_stream_is_active(
    begin: dict[str, int], emulation: Emulation
) -> None:
    stream = cuda.Stream()
    x = pc.empty(3 * MiB, dtype=pc.uint8, device="cuda")
    cuda.synchronize()
    emulation.set("delay_us", 100_000)
    with cuda.stream(stream):
        x.fill_(1)
    del x
    after = changes(begin)
    assert "allocated_bytes.all.current" not in after
    assert after["active_bytes.large_pool.current"] == 3 * MiB
    emulation.set("delay_us", 0)
    stream.synchronize()
    cuda.empty_cache()
    assert "active_bytes.all.current" not in changes(begin)


def test_the_end_of_memory_is_counted() -> None:
    run_program(
        """
        cuda = plait.cuda
        def number(name):
            return cuda.memory_stats()[name]

        x = plait.empty(40 << 20, dtype=plait.uint8, device="cuda")
        del x
        assert number("num_alloc_retries") == number("num_ooms") == 0
        x = plait.empty(50 << 20, dtype=plait.uint8, device="cuda")  # what is cached is given back
        assert (number("num_alloc_retries"), number("num_ooms")) == (1, 0)
        text = "CUDA out of memory. Tried to allocate"
        refused(cuda.OutOfMemoryError, lambda: plait.empty(60 << 20, device="cuda"), text)
        assert (number("num_alloc_retries"), number("num_ooms")) == (2, 1)
        refused(cuda.OutOfMemoryError, lambda: plait.empty(1 << 60, device="cuda"), text)
        assert number("num_ooms") == 2
        text = cuda.memory_summary()
        assert "requests without memory" in text and "segment of 52428800 bytes" in text
        assert len(cuda.memory_summary(abbreviated=True)) < len(text)
        cuda.reset_accumulated_memory_stats()
        stats = cuda.memory_stats()
        assert stats["num_ooms"] == stats["num_alloc_retries"] == 0
        assert stats["segment.all.allocated"] == 0
        assert stats["allocated_bytes.all.current"] == 50 << 20
        assert plait.accelerator.max_memory_reserved() == stats["reserved_bytes.all.peak"]
        """,
        PLAIT_CUDA_MEMORY=str(64 * MiB),
    )


def test_a_device_that_was_not_used_has_counters() -> None:
    run_program(
        """
        stats = plait.cuda.memory_stats(1)
        assert set(stats.values()) == {0} and stats.keys() == plait.cuda.memory_stats(0).keys()
        """,
        PLAIT_CUDA_DEVICES="2",
    )
