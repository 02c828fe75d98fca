"""Role ``allocator``: memory of the CPU, or of a device."""

from __future__ import annotations

import itertools
import os
import random
import threading

import pytest

import plait_abi
from plait_conformance._memory import Block, Pool, in_child, repeated
from plait_conformance._tables import MEMORY_ERROR, error_of_thread, runtime

ALIGNMENT = 64
SIZES = (0, 1, 2, 7, 63, 64, 65, 100, 1000, 4096, 4097, 100_000, 1 << 20, (5 << 20) + 3)
TOO_MUCH = (1 << 60, (1 << 63) - 1, (1 << 64) - 1)


def contents(nbytes: int, number: int) -> bytes:
    return random.Random(number).randbytes(min(nbytes, 64)) * (nbytes // 64 + 1)


def fill(block: Block, number: int) -> None:
    block.write(contents(block.nbytes, number)[: block.nbytes])


def check(block: Block, number: int) -> None:
    same = block.read() == contents(block.nbytes, number)[: block.nbytes]
    assert same, f"{block.nbytes} bytes at {block.address:#x} changed while others were used"


@pytest.mark.parametrize("nbytes", SIZES)
def test_blocks_are_aligned(pool: Pool, nbytes: int) -> None:
    blocks = [pool.take(nbytes) for _ in range(3)]
    for block in blocks:
        assert block.address or not nbytes, "status 0 and no memory"
        at = block.address % ALIGNMENT
        assert at == 0, f"a block of {nbytes} bytes is {at} bytes behind a multiple of {ALIGNMENT}"
    for block in blocks:
        block.free()


def test_blocks_are_apart_and_keep_what_is_written(pool: Pool) -> None:
    chance = random.Random(0)
    live: list[tuple[Block, int]] = []
    for number in range(600):
        if live and chance.random() < 0.4:
            block, written = live.pop(chance.randrange(len(live)))
            check(block, written)
            block.free()
        block = pool.take(chance.choice((1, 8, 64, 100, 1000, 5000, 70_000)))
        fill(block, number)
        live.append((block, number))
        if number == 300:
            pool.trim()
    ranges = sorted((block.address, block.address + block.nbytes) for block, _ in live)
    for (_, end), (begin, _) in itertools.pairwise(ranges):
        assert end <= begin, f"two blocks that are in use overlap at {begin:#x}"
    for block, written in live:
        check(block, written)
        block.free()


def test_large_blocks_can_be_used_to_the_end(pool: Pool) -> None:
    for nbytes in SIZES:
        block = pool.take(nbytes)
        fill(block, nbytes)
        check(block, nbytes)
        block.free()


def test_blocks_are_freed_on_other_threads(pool: Pool) -> None:
    result: list[BaseException] = []
    blocks: list[tuple[Block, int]] = [(pool.take(1000), number) for number in range(50)]
    for block, number in blocks:
        fill(block, number)

    def work(own_blocks: list[tuple[Block, int]]) -> None:
        try:
            for block, number in own_blocks:
                check(block, number)
                block.free()
                fresh = pool.take(2000)
                fill(fresh, number)
                check(fresh, number)
                fresh.free()
        except BaseException as error:
            result.append(error)

    threads = [threading.Thread(target=work, args=(blocks[part::4],)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not result, result


def test_statistics_add_up(pool: Pool) -> None:
    before = pool.statistics()
    if before is None:
        pytest.skip(f"{pool} counts nothing")
    blocks = [pool.take(10_000) for _ in range(5)]
    during = pool.statistics()
    assert during is not None
    grown = during.live_bytes - before.live_bytes
    assert grown >= 50_000, f"50000 bytes were taken, live_bytes grew by {grown}"
    for name, least in (("live_blocks", 5), ("allocations", 5)):
        if getattr(during, name):
            assert getattr(during, name) - getattr(before, name) >= least, name
    if during.peak_bytes:
        assert during.peak_bytes >= during.live_bytes
    for block in blocks:
        block.free()
    pool.trim()
    after = pool.statistics()
    assert after is not None and after.live_bytes == before.live_bytes
    assert after.live_blocks == before.live_blocks


def test_the_peak_begins_anew(pool: Pool) -> None:
    if not pool.table.reset_peak:
        pytest.skip(f"{pool} keeps the peak of the process")
    pool.take(5_000_000).free()
    pool.reset_peak()
    start = pool.statistics()
    assert start is not None, "`reset_peak` without `stats`"
    assert start.peak_bytes >= start.live_bytes
    pool.take(3_000_000).free()
    grown = pool.statistics()
    assert grown is not None and grown.peak_bytes - start.peak_bytes >= 3_000_000
    pool.reset_peak()
    end = pool.statistics()
    assert end is not None and end.peak_bytes < grown.peak_bytes


@pytest.mark.parametrize("nbytes", TOO_MUCH)
def test_out_of_memory_is_a_status(pool: Pool, nbytes: int) -> None:
    runtime().plain("clear", runtime().plain("thread"))
    assert pool.ask(nbytes)[0] == MEMORY_ERROR
    text = error_of_thread()  # that of an allocator which says who has the memory
    assert text is None or "memory" in text
    runtime().plain("clear", runtime().plain("thread"))
    block = pool.take(1000)
    fill(block, 1)
    check(block, 1)
    block.free()


def test_out_of_memory_is_an_error_of_the_operator(pool: Pool) -> None:
    device = pool.device.name if pool.device else "cpu"
    for _ in range(2):
        with pytest.raises(plait_abi.OutOfMemoryError):
            plait_abi.operator("empty")((1 << 57,), dtype="float64", device=device)
    assert plait_abi.operator("empty")((3,), device=device).shape == (3,)


def test_it_works_in_the_child_of_a_fork(pool: Pool) -> None:
    if pool.device is not None or not hasattr(os, "fork"):
        pytest.skip("a device that is in use is dead in the child")
    survivor, dropped = pool.take(5000), pool.take(5000)
    fill(survivor, 1)

    def work() -> None:
        check(survivor, 1)
        dropped.free()
        blocks = [pool.take(nbytes) for nbytes in SIZES]
        for number, block in enumerate(blocks):
            fill(block, number)
        for number, block in enumerate(blocks):
            check(block, number)
            block.free()
        survivor.free()

    with repeated(lambda: pool.take(3000).free()):
        for _ in range(5):
            in_child(work)
    check(survivor, 1)
    survivor.free()
    dropped.free()
