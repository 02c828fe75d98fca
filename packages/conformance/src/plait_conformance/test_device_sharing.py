"""Role ``device``: its memory in other processes, if the device supports it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from plait_conformance._device import Device
from plait_conformance._memory import Block, Pool
from plait_conformance._sharing import Opener, open_memory, shared_memory

SIZES = (1, 300, 4096, 10_000, 1 << 20)


@pytest.fixture(autouse=True)
def shares(device: Device) -> None:
    if not device.table.share:
        pytest.skip(f"{device} shares no memory with other processes")
    assert device.table.share_open and device.table.share_close


@pytest.fixture
def opener(device: Device, pytestconfig: pytest.Config) -> Iterator[Opener]:
    libraries = [os.path.abspath(path) for path in pytestconfig.getoption("--load")]
    process = Opener(device, libraries)
    yield process
    process.close()


def filled(pool: Pool, size: int, letter: bytes) -> Block:
    block = pool.take(size)
    block.write(letter * size)
    return block


def test_another_process_reads_and_writes_it(device: Device, opener: Opener) -> None:
    pool = Pool(device)
    # blocks that lie beside one another, of which the other process has every second one
    neighbours = [filled(pool, size, b"k") for size in SIZES for _ in range(2)]
    freed = [filled(pool, size, b"g") for size in SIZES for _ in range(2)]
    for block in freed:
        memory = shared_memory(device, block.address, block.nbytes)
        assert opener.exchange(memory, block.nbytes, b"w" * block.nbytes) == b"g" * block.nbytes
    for block in freed:
        assert block.read() == b"w" * block.nbytes, "what was written there is not seen here"
    for block in neighbours:
        assert block.read() == b"k" * block.nbytes, "the other process wrote to another block"
    for block in (*neighbours, *freed):
        block.free()


def test_memory_is_opened_again_after_it_was_closed(device: Device, opener: Opener) -> None:
    block = filled(Pool(device), 5000, b"a")
    memory = shared_memory(device, block.address, block.nbytes)
    for number in range(20):
        before, after = b"%c" % (97 + number), b"%c" % (98 + number)
        assert opener.exchange(memory, 5000, after * 5000) == before * 5000
        assert block.read() == after * 5000
    block.free()


def test_what_is_said_of_memory_fits(device: Device) -> None:
    blocks = [filled(Pool(device), size, b"a") for size in SIZES]
    for block in blocks:
        memory = shared_memory(device, block.address, block.nbytes)
        assert memory.length <= len(memory.handle), "the handle is longer than its room"
        assert memory.fd == -1 or os.fstat(memory.fd), "the descriptor is not open"
        assert memory.fd >= 0 or memory.length, "there is neither a descriptor nor a handle"
        again = shared_memory(device, block.address, block.nbytes)
        assert again.offset == memory.offset and again.length == memory.length
    for block in blocks:
        block.free()


def test_memory_that_does_not_exist_is_an_error(device: Device) -> None:
    block = filled(Pool(device), 300, b"a")
    memory = shared_memory(device, block.address, block.nbytes)
    memory.fd, memory.length = -1, 0
    for i in range(len(memory.handle)):
        memory.handle[i] = 0
    with pytest.raises(Exception, match=r"\w") as caught:
        open_memory(device, memory, 300)
    assert "without a text" not in str(caught.value), "the error has no text"
    assert block.read() == b"a" * 300
    block.free()
