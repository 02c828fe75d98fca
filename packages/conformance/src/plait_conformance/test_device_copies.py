"""Role ``device``: copies between the host and the device, on it, and between two of its kind."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plait_abi
from plait_conformance._checks import relayouts
from plait_conformance._device import HOST_MEMORY, Device, Stream
from plait_conformance._memory import Pool
from plait_conformance._tables import address_of, runtime

DTYPES = (
    *("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"),
    *("complex64", "complex128"),
)
COPY_ASYNC = 1  # PLAIT_COPY_ASYNC


def copy_(to: Any, source: Any) -> None:
    plait_abi.operator("copy_")(to, source)


def numbers(shape: tuple[int, ...], dtype: str = "float32") -> Any:
    return (np.arange(np.prod(shape, dtype=int)) % 100).reshape(shape).astype(dtype)


@pytest.fixture
def stream(device: Device) -> Iterator[Stream]:
    result = device.stream()
    yield result
    device.synchronize()
    result.close()


@pytest.mark.parametrize("dtype", DTYPES)
def test_there_and_back(device: Device, dtype: str) -> None:
    for shape in ((), (0,), (1,), (3, 5), (1 << 18,), (2, 0, 3)):
        array = numbers(shape, dtype)
        (back,) = device.take(device.put(array))
        assert back.dtype == array.dtype and back.shape == array.shape
        np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize("layout", list(relayouts()))
def test_layouts_of_the_host(device: Device, layout: str) -> None:
    array = numbers((4, 5, 3))
    target = device.put(np.zeros_like(array))
    copy_(target, relayouts()[layout](array))
    np.testing.assert_array_equal(device.take(target)[0], array)
    back = relayouts()[layout](np.zeros_like(array))
    copy_(back, target)
    np.testing.assert_array_equal(back, array)


def test_layouts_of_the_device(device: Device) -> None:
    array = numbers((4, 5, 3))
    for name, relayout in device.relayouts().items():
        laid_out = relayout(array)
        np.testing.assert_array_equal(device.take(laid_out)[0], array, err_msg=name)
        target = device.put(np.zeros_like(array))
        copy_(target, laid_out)
        np.testing.assert_array_equal(device.take(target)[0], array, err_msg=name)


def test_what_lies_between_the_elements_stays(device: Device) -> None:
    base = device.put(np.full(10, -1, np.float32))
    copy_(plait_abi.operator("as_strided")(base, (5,), (2,)), numbers((5,)))
    np.testing.assert_array_equal(device.take(base)[0], [0, -1, 1, -1, 2, -1, 3, -1, 4, -1])


@pytest.mark.parametrize(
    ("to", "source"), [("float64", "float32"), ("float32", "float64"), ("int64", "float32")]
)
def test_other_dtypes(device: Device, to: str, source: str) -> None:
    array = numbers((3, 4), source)
    target = device.put(np.zeros((3, 4), to))
    copy_(target, array)
    np.testing.assert_array_equal(device.take(target)[0], array.astype(to))
    back = np.zeros((3, 4), to)
    copy_(back, device.put(array))
    np.testing.assert_array_equal(back, array.astype(to))


def test_smaller_shapes_are_expanded(device: Device) -> None:
    target = device.put(np.zeros((2, 3), np.float32))
    copy_(target, numbers((3,)))
    np.testing.assert_array_equal(device.take(target)[0], [[0, 1, 2], [0, 1, 2]])


@pytest.mark.parametrize("shift", [1, -1, 3])
def test_overlapping_views(device: Device, shift: int) -> None:
    def shifted(base: Any) -> Any:
        view = plait_abi.operator("as_strided")
        to, source = (shift, 0) if shift > 0 else (0, -shift)
        size = (200 - abs(shift),)
        plait_abi.operator("copy_")(view(base, size, (1,), to), view(base, size, (1,), source))
        return base

    want = numbers((200,))
    if shift > 0:
        want[shift:] = want[:-shift].copy()
    else:
        want[:shift] = want[-shift:].copy()
    np.testing.assert_array_equal(device.take(shifted(device.put(numbers((200,)))))[0], want)


def test_the_host_may_change_its_memory_at_once(device: Device, stream: Stream) -> None:
    host, target = numbers((1000,)), device.put(np.zeros(1000, np.float32))
    device.synchronize()
    device.occupy(stream)
    with stream.current():
        copy_(target, host)
    host[...] = -1
    stream.synchronize()
    np.testing.assert_array_equal(device.take(target)[0], numbers((1000,)))


def test_the_host_sees_copies_at_once(device: Device, stream: Stream) -> None:
    source = device.put(numbers((1000,)))
    late, host = device.put(np.zeros(1000, np.float32)), np.zeros(1000, np.float32)
    device.synchronize()
    device.occupy(stream)
    with stream.current():
        copy_(late, source)
        copy_(host, late)
    np.testing.assert_array_equal(host, numbers((1000,)))


def test_a_copy_to_the_host_waits_for_its_stream(device: Device, stream: Stream) -> None:
    """By the table: the runtime waits for the stream before it asks for such a copy."""
    source, host = device.put(numbers((1000,))), np.zeros(1000, np.float32)
    late = device.put(host)
    address = address_of(late)
    device.synchronize()
    device.occupy(stream)
    with stream.current():
        copy_(late, source)
    ends = HOST_MEMORY, device.handle
    device.copy_bytes(host.ctypes.data, address, host.nbytes, stream, *ends)
    np.testing.assert_array_equal(host, numbers((1000,)))


def test_pinned_memory(device: Device, stream: Stream) -> None:
    table = device.table
    if not table.pinned_alloc:
        pytest.skip(f"{device} needs no pinned memory")
    array, thread = numbers((1000,)), runtime().plain("thread")
    there, back = (ctypes.c_void_p() for _ in range(2))
    for block in (there, back):
        status = table.pinned_alloc(table.ctx, thread, array.nbytes, ctypes.byref(block))
        runtime().check(status, "pinned_alloc")
        assert block.value and block.value % 64 == 0
        ctypes.memset(block, 0, array.nbytes)
    ctypes.memmove(there, array.ctypes.data, array.nbytes)
    memory = Pool(device).take(array.nbytes)
    host, nbytes = HOST_MEMORY, array.nbytes
    ends = (
        (memory.address, device.handle, there, host),
        (back, host, memory.address, device.handle),
    )
    device.synchronize()
    device.occupy(stream)
    for to, to_device, source, source_device in ends:
        status = table.copy(
            *(table.ctx, thread, to, to_device, source, source_device),
            *(nbytes, stream.pointer, COPY_ASYNC),
        )
        runtime().check(status, "copy")
    event = device.event().record(stream)
    event.synchronize()
    assert ctypes.string_at(back, nbytes) == array.tobytes()
    event.close()
    memory.free()
    for block in (there, back):
        table.pinned_free(table.ctx, block, nbytes)


def test_between_two_devices(device: Device) -> None:
    if device.count < 2:
        pytest.skip(f"{device} is the only one")
    base, _, index = device.name.partition(":")
    other = Device(f"{base}:{(int(index) + 1) % device.count}")
    array = numbers((3, 4))
    for to, source in ((other, device), (device, other)):
        target = to.put(np.zeros_like(array))
        copy_(target, source.put(array))
        np.testing.assert_array_equal(to.take(target)[0], array)


def test_between_two_busy_devices(device: Device) -> None:
    if device.count < 2:
        pytest.skip(f"{device} is the only one")
    base, _, index = device.name.partition(":")
    other = Device(f"{base}:{(int(index) + 1) % device.count}")
    ones, late = device.put(np.ones(1000, np.float32)), device.put(np.zeros(1000, np.float32))
    target, busy = other.put(np.zeros(1000, np.float32)), other.put(np.full(1000, 5, np.float32))
    device.synchronize()
    other.synchronize()
    device.occupy(device.default)
    copy_(late, ones)  # the source is written late,
    other.occupy(other.default)
    copy_(target, busy)  # and so is the target, before
    copy_(target, late)
    plait_abi.operator("add_")(target, 1)
    np.testing.assert_array_equal(other.take(target)[0], np.full(1000, 2, np.float32))
