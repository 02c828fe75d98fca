"""Role ``device``: memory that several streams use, errors that are found late, and forks.

``test_allocator`` also runs for the device, with the tests that every allocator must pass.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import plait_abi
from plait_conformance._device import Device, Stream
from plait_conformance._memory import Pool, in_child

NBYTES = 4096
# A process that begins with the device unused.
START = """
import os, signal, sys, warnings
from plait_conformance.plugin import load_libraries
load_libraries(sys.argv[2:])
from plait_conformance._device import Device
from plait_conformance._memory import Pool
device = Device(sys.argv[1])
"""
FORK_BEFORE_USE = """
warnings.simplefilter("ignore")  # threads of other libraries
child = os.fork()
if child == 0:
    signal.alarm(20)
    try:
        device.event().close()
    except RuntimeError as error:
        os._exit(0 if "fork" in str(error) else 1)
    Pool(device).take(64).write(b"x" * 64)
    device.synchronize()
    os._exit(0)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print("the child hangs" if status == -signal.SIGALRM else f"the child ended with {status}")
"""
END_WITH_WORK = """
block = Pool(device).take(1 << 20)
for _ in range(50):
    block.write(b"x" * (1 << 20))
print("the program ended")
"""
ELEMENTS = 1024


@pytest.fixture
def streams(device: Device) -> Iterator[tuple[Stream, Stream]]:
    result = (device.stream(), device.stream())
    yield result
    device.synchronize()
    for stream in result:
        stream.close()


def copy_on(stream: Stream, to: Any, source: Any) -> None:
    with stream.current():
        plait_abi.operator("copy_")(to, source)


def tensor_on(device: Device, stream: Stream, value: float) -> Any:
    with stream.current():
        return device.put(np.full(ELEMENTS, value, np.float32))


def test_memory_is_not_given_out_while_another_stream_uses_it(
    device: Device, streams: tuple[Stream, Stream]
) -> None:
    first, second = streams
    pool = Pool(device)
    block, copied = pool.take(NBYTES, first), pool.take(NBYTES, second)
    block.write(b"a" * NBYTES, first)
    device.synchronize()
    device.occupy(second)
    device.copy_bytes(copied.address, block.address, NBYTES, second, *2 * (device.handle,))
    block.used_in(second)
    block.free()
    others = [pool.take(NBYTES, first) for _ in range(4)]
    for other in others:
        other.write(b"b" * NBYTES, first)
    first.synchronize()
    second.synchronize()
    assert copied.read(second) == b"a" * NBYTES, "memory was given out while a stream still read it"
    for each in (*others, copied):
        each.free()


def test_tensors_are_kept_while_another_stream_uses_them(
    device: Device, streams: tuple[Stream, Stream]
) -> None:
    first, second = streams
    source, target = tensor_on(device, first, 1), tensor_on(device, second, 0)
    device.synchronize()
    device.occupy(second)
    copy_on(second, target, source)
    del source
    others = [tensor_on(device, first, 2) for _ in range(4)]
    first.synchronize()
    with second.current():
        np.testing.assert_array_equal(device.take(target)[0], np.ones(ELEMENTS, np.float32))
    del others


def test_memory_comes_in_order_within_a_stream(
    device: Device, streams: tuple[Stream, Stream]
) -> None:
    first, _ = streams
    source, target = tensor_on(device, first, 1), tensor_on(device, first, 0)
    device.occupy(first)
    copy_on(first, target, source)
    del source  # the block may be given out again at once
    others = [tensor_on(device, first, 2) for _ in range(4)]
    with first.current():
        np.testing.assert_array_equal(device.take(target)[0], np.ones(ELEMENTS, np.float32))
        for other in others:
            np.testing.assert_array_equal(device.take(other)[0], np.full(ELEMENTS, 2, np.float32))


def test_many_tensors(device: Device) -> None:
    arrays = [np.full(1 + 37 * number % 5000, number, np.float32) for number in range(400)]
    tensors = [device.put(array) for array in arrays]
    for array, tensor in zip(arrays, tensors, strict=True):
        np.testing.assert_array_equal(device.take(tensor)[0], array)


def test_tensors_without_elements(device: Device) -> None:
    for shape in ((0,), (3, 0), (0, 2, 5)):
        x = device.put(np.zeros(shape, np.float32))
        (got,) = device.take(plait_abi.operator("add")(x, 1))
        assert got.shape == shape


def call_wrongly(device: Device, wait: Callable[[], object]) -> None:
    """Make a call whose index is too large, and wait for it."""
    x, index = device.put(np.zeros(3, np.float32)), device.put(np.array([7]))
    plait_abi.operator("gather")(x, 0, index)
    wait()


def test_an_error_is_told_once_and_the_device_goes_on(device: Device) -> None:
    device.synchronize()
    with pytest.raises(IndexError, match=r"gather.*7"):
        call_wrongly(device, device.synchronize)
    device.synchronize()
    x = device.put(np.ones(3, np.float32))
    np.testing.assert_array_equal(device.take(plait_abi.operator("add")(x, 1))[0], [2, 2, 2])


def test_whoever_waits_is_told_the_error(device: Device) -> None:
    x, event = device.put(np.ones(3, np.float32)), device.event()
    device.synchronize()
    for wait in (
        device.default.synchronize,
        lambda: event.record(device.default).synchronize(),
        lambda: device.take(x),  # a copy to the host waits for earlier calls
    ):
        with pytest.raises(IndexError, match="gather"):
            call_wrongly(device, wait)
    event.close()
    np.testing.assert_array_equal(device.take(x)[0], [1, 1, 1])


def test_the_device_says_that_it_is_dead_after_a_fork(device: Device) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("there is no fork")
    tensors = [device.put(np.ones(3, np.float32))]
    event = device.event().record(device.default)

    def work() -> None:
        for use in (
            lambda: plait_abi.operator("add")(tensors[0], 1),
            lambda: device.take(tensors[0]),
            lambda: device.put(np.ones(3)),
            lambda: device.synchronize(),
            lambda: event.synchronize(),
            lambda: device.stream(),
        ):
            try:
                use()
            except RuntimeError as error:
                assert "fork" in str(error), error
            else:
                raise AssertionError("the child of a fork used the device")
        tensors.clear()
        event.close()

    in_child(work)
    np.testing.assert_array_equal(device.take(tensors[0])[0], [1, 1, 1])
    event.close()


def run_program(device: Device, config: pytest.Config, code: str) -> str:
    libraries = [os.path.abspath(path) for path in config.getoption("--load")]
    command = [sys.executable, "-c", START + code, device.name, *libraries]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"exit {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


def test_a_child_of_a_fork_before_the_first_use(
    device: Device, pytestconfig: pytest.Config
) -> None:
    """It may use the device, or is refused by PLAIT_DEVICE_STARTED."""
    if not hasattr(os, "fork"):
        pytest.skip("there is no fork")
    text = run_program(device, pytestconfig, FORK_BEFORE_USE)
    assert "the child ended with 0" in text, (
        f"{text}: a device whose driver `init` starts must set PLAIT_DEVICE_STARTED"
    )


def test_a_process_ends_with_work_in_flight(device: Device, pytestconfig: pytest.Config) -> None:
    assert "the program ended" in run_program(device, pytestconfig, END_WITH_WORK)
