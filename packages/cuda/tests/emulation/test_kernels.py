"""Kernels on the emulated driver: their results, and the text of each error that it finds."""

from __future__ import annotations

import ctypes
from array import array
from pathlib import Path

import pytest
from emulated_driver import Driver, run

ILLEGAL_ADDRESS, MISALIGNED, LAUNCH_FAILED = 700, 716, 719


def fails(driver: Driver, code: int) -> str:
    """Wait for the device, which must meet this fault, and return its text."""
    assert driver.synchronize() == code
    assert driver.synchronize() == code, "a fault is for ever"
    return driver.trap()


@pytest.mark.parametrize("threads", [1, 32, 100, 1024])
@pytest.mark.parametrize("blocks", [1, 3, 70])
def test_threads_loop_over_elements(driver: Driver, threads: int, blocks: int) -> None:
    x = driver.put(array("f", range(1000)))
    y = driver.alloc(4000)
    assert driver.launch("scale_f32", x, y, 1000, 2, grid=(blocks, 1, 1), threads=threads) == 0
    assert driver.take(y, 1000) == [2.0 * i for i in range(1000)]


def test_unwritten_memory_shows(driver: Driver) -> None:
    assert driver.take(driver.alloc(16), 4, "i") == [-1] * 4


@pytest.mark.parametrize("threads", [32, 64, 256, 1024])
@pytest.mark.parametrize("blocks", [1, 9])
def test_a_sum_with_barriers(driver: Driver, threads: int, blocks: int) -> None:
    x = driver.put(array("d", range(5000)))
    y = driver.put(array("d", [0]))
    shape = {"grid": (blocks, 1, 1), "threads": threads, "shared": 8 * threads}
    assert driver.launch("sum_shared_f64", x, y, 5000, **shape) == 0  # type: ignore[arg-type]
    assert driver.take(y, 1, "d") == [sum(range(5000))]


def test_a_sum_by_shuffles(driver: Driver) -> None:
    x = driver.put(array("f", range(3200)))
    y = driver.alloc(400)
    assert driver.launch("sum_rows_f32", x, y, 100, grid=(13, 1, 1), threads=256) == 0
    assert driver.take(y, 100) == [sum(range(32 * i, 32 * i + 32)) for i in range(100)]


def test_what_lanes_exchange(driver: Driver) -> None:
    y = driver.alloc(640)
    assert driver.launch("lanes_f32", 0, y) == 0
    values = driver.take(y, 160)
    lanes = range(32)
    assert values[:32] == [3] * 32
    assert values[32:64] == [min(i + 1, 31) for i in lanes]
    assert values[64:96] == [max(i - 1, 0) for i in lanes]
    assert values[96:128] == [i ^ 5 for i in lanes]
    assert values[128:] == [sum(1 << i for i in range(0, 16, 3))] * 32


def test_vectors(driver: Driver) -> None:
    x = driver.put(array("f", range(10)))
    y = driver.alloc(40)
    assert driver.launch("pairs_f32", x, y, 10) == 0
    assert driver.take(y, 10) == list(range(10))
    driver.launch("pairs_f32", x + 4, y, 2)
    text = fails(driver, MISALIGNED)
    assert "it reads element 0 of global memory" in text
    assert "the address is no multiple of 8" in text


def test_shared_memory_of_bytes_and_vectors(driver: Driver) -> None:
    y = driver.alloc(400)
    assert driver.launch("parts_f32", 0, y, threads=100, shared=1000) == 0
    assert driver.take(y, 100) == [(i + 1) % 100 for i in range(100)]


@pytest.mark.parametrize(
    ("suffix", "code"), [("f32", "f"), ("f64", "d"), ("i8", "b"), ("i16", "h"), ("i64", "q")]
)
def test_atomic_operations(driver: Driver, suffix: str, code: str) -> None:
    y = driver.put(array(code, [1, 2, 0, 0, 4, 4, 4]))
    assert driver.launch(f"swapped_{suffix}", 0, y) == 0
    assert driver.take(y, 7, code) == [5, 7, 1, 2, -3, 9, 4]


def test_barriers_of_warps_and_atomic_sums_are_no_races(driver: Driver) -> None:
    y = driver.alloc(1024)
    assert driver.launch("warp_shared_f32", 0, y, threads=256, shared=1024) == 0
    assert driver.take(y, 256) == [(i + 1) % 32 for i in range(256)]
    assert driver.launch("shared_sum_f32", 0, y, threads=100, shared=4) == 0
    assert driver.take(y, 1) == [100]


def test_stacks_hold_4_kilobytes_of_each_of_1024_threads(driver: Driver) -> None:
    y = driver.alloc(4096)
    assert driver.launch("deep_f32", 0, y, threads=1024) == 0
    assert driver.take(y, 1024) == [sum(range(i, i + 1024)) for i in range(1024)]


def test_a_kernel_reports_to_the_host(driver: Driver) -> None:
    record = driver.handle("cuMemHostAlloc", ctypes.c_size_t(40), 3)
    ctypes.memset(record, 0, 40)
    assert driver.launch("reports_f32", 0, record, 77) == 0
    assert driver.synchronize() == 0
    code, claimed = (ctypes.c_uint32 * 2).from_address(record)
    assert (code, claimed) == (1, 1)
    assert ctypes.c_uint64.from_address(record + 8).value == 77
    assert list((ctypes.c_double * 3).from_address(record + 16)) == [7, 0, 3]
    driver.call("cuMemFreeHost", ctypes.c_void_p(record))


def test_an_element_outside_of_the_allocation(driver: Driver) -> None:
    x = driver.put(array("f", range(1000)))
    driver.launch("scale_f32", x, x, 1001)
    text = fails(driver, ILLEGAL_ADDRESS)
    assert text.startswith("scale_f32, samples.cpp:")
    assert "block (0, 0, 0), thread 8: it reads element 1000 of global memory" in text
    assert "the allocation has 4000 bytes" in text


def test_an_element_outside_of_the_size_that_is_given(driver: Driver) -> None:
    x = driver.put(array("f", range(1000)))
    driver.launch("scale_checked_f32", x, x, 100, 1)
    assert "it reads element 100" in (text := fails(driver, ILLEGAL_ADDRESS))
    assert text.endswith("there are 100 elements")


def test_memory_that_was_freed(driver: Driver) -> None:
    x = driver.handle("cuMemAlloc_v2", ctypes.c_size_t(400))
    driver.call("cuMemFree_v2", ctypes.c_uint64(x))
    driver.launch("scale_f32", x, x, 1)
    assert fails(driver, ILLEGAL_ADDRESS).endswith("there is no memory of the device")


def test_memory_of_the_host(driver: Driver) -> None:
    values = array("f", [1])
    driver.launch("scale_f32", values.buffer_info()[0], values.buffer_info()[0], 1)
    assert fails(driver, ILLEGAL_ADDRESS).endswith("there is no memory of the device")


def test_an_address_that_is_not_aligned(driver: Driver) -> None:
    x = driver.put(array("f", range(1000)))
    driver.launch("scale_f32", x + 2, x, 1)
    assert fails(driver, MISALIGNED).endswith("the address is no multiple of 4")


def test_a_barrier_that_some_threads_miss(driver: Driver) -> None:
    y = driver.alloc(1024)
    driver.launch("missed_barrier_f32", 0, y, 12, threads=256)
    text = fails(driver, LAUNCH_FAILED)
    assert text.startswith("missed_barrier_f32, samples.cpp:")
    assert "12 of 256 threads reached the barrier at samples.cpp:" in text
    assert text.endswith("; 244 had returned")


def test_threads_at_two_barriers(driver: Driver) -> None:
    driver.launch("two_barriers_f32", 0, 0, 12, threads=256)
    text = fails(driver, LAUNCH_FAILED)
    assert "12 of 256 threads reached the barrier at samples.cpp:" in text
    assert ", and thread 12 the one at samples.cpp:" in text


def test_a_shuffle_that_some_lanes_miss(driver: Driver) -> None:
    y = driver.alloc(1024)
    driver.launch("missed_shuffle_f32", 0, y, 12, threads=64)
    text = fails(driver, LAUNCH_FAILED)
    assert "12 of 32 lanes of warp 0 reached the shuffle at samples.cpp:" in text
    assert text.endswith("; 20 had returned")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("write_after_read_f32", "it writes byte 0 of shared memory, which thread 31 read at "),
        ("write_after_write_f32", "it writes byte 0 of shared memory, which thread 0 wrote at "),
        ("read_after_write_f32", "it reads byte 0 of shared memory, which thread 0 wrote at "),
    ],
)
def test_a_race_in_shared_memory(driver: Driver, name: str, text: str) -> None:
    driver.launch(name, threads=32, shared=4)
    trap = fails(driver, LAUNCH_FAILED)
    assert trap.startswith(f"{name}, samples.cpp:")
    assert text + "samples.cpp:" in trap
    assert trap.endswith("; no barrier is between them")


def test_shared_memory_that_nobody_wrote(driver: Driver) -> None:
    y = driver.alloc(128)
    driver.launch("shared_sum_f32", 0, y, threads=32, shared=4)  # wrote it in another block
    driver.launch("unwritten_shared_f32", 0, y, threads=32, shared=128)
    text = fails(driver, LAUNCH_FAILED)
    assert text.endswith("it reads byte 0 of shared memory, which nobody has written")


def test_too_little_shared_memory(driver: Driver) -> None:
    driver.launch("outside_shared_f32", 0, 0, 33, shared=128)
    text = fails(driver, ILLEGAL_ADDRESS)
    assert text.endswith(
        "33 elements of 4 bytes after 0 bytes do not fit in the 128 bytes of the launch"
    )
    driver.library.plait_emulation_revive()
    driver.launch("outside_shared_f32", 0, 0, 16, shared=128)
    text = fails(driver, ILLEGAL_ADDRESS)
    assert text.endswith("thread 16: it writes element 16 of shared memory, which has 16 elements")


ORDER = """
import sys
from array import array
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from emulated_driver import Driver, run
driver = Driver(Path(sys.argv[1]))
y = driver.put(array("f", [0.0] * 101))
assert driver.launch("numbers_f32", 0, y, 100, grid=(100, 1, 1)) == 0
print([int(i) for i in driver.take(y, 100)])
"""


def test_the_order_of_blocks_comes_from_a_seed(driver_path: Path) -> None:
    orders = [run(ORDER, driver_path, PLAIT_CUDA_SEED=seed).stdout for seed in ("1", "1", "2")]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(map(int, orders[0].strip("[]\n").split(","))) == list(range(100))


RACES = """
import sys
from array import array
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from emulated_driver import Driver, run
driver = Driver(Path(sys.argv[1]))
y = driver.put(array("f", [0.0] * 512))
assert driver.launch("neighbours_f32", 0, y, grid=(4, 1, 1), threads=128) == 0
print(driver.synchronize(), driver.take(y, 2))
y = driver.put(array("f", [0.0] * 8))
assert driver.launch("last_block_f32", 0, y, grid=(7, 1, 1), threads=64, shared=4) == 0
print(driver.synchronize(), driver.take(y, 1))
assert driver.launch("same_value_f32", 0, y, 64, grid=(2, 1, 1), threads=32) == 0
print(driver.synchronize(), driver.take(y, 1))
assert driver.launch("global_race_f32", 0, y, 16, threads=32) == 0
print(driver.synchronize(), driver.trap())
driver.library.plait_emulation_revive()
assert driver.launch("same_value_f32", 0, y, 16, threads=32) == 0
print(driver.synchronize(), driver.trap())
"""


def test_races_in_global_memory(driver_path: Path) -> None:
    done = run(RACES, driver_path, PLAIT_CUDA_CHECK="1")
    assert done.returncode == 0, done.stderr
    ordered, counted, equal, race, unequal = done.stdout.splitlines()
    assert ordered == "0 [1.0, 2.0]"
    assert counted == "0 [21.0]"
    assert equal == "0 [0.0]"
    assert unequal.startswith("719 same_value_f32, samples.cpp:")
    assert "thread 16: it writes element 0 of global memory at 0x" in unequal
    assert race.startswith("719 global_race_f32, samples.cpp:")
    assert "thread 1: it writes element 0 of global memory at 0x" in race
    assert ", which thread 0 of block (0, 0, 0) wrote at samples.cpp:" in race
    assert race.endswith("; nothing orders them")
