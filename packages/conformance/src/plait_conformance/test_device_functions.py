"""Role ``device``: functions that a device may have: facts, memory of the driver, recorded work,
records of work, and events of other processes. What a device does not have is skipped.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import pytest

import plait_abi
from plait_abi import binding
from plait_conformance._device import Device

SIZE = 1000
T = TypeVar("T")


def asked(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function, and skip the test if the device does not have it."""
    try:
        return function(*arguments)
    except NotImplementedError as error:
        pytest.skip(str(error))


def doubled(tensor: Any, out: Any) -> None:
    """Put work into the current stream that adds a tensor to itself."""
    plait_abi.operator("copy_")(out, plait_abi.operator("add")(tensor, tensor))


@pytest.fixture
def on_side(device: Device) -> Iterator[binding.Stream]:
    """A stream that is the current one during the test."""
    try:
        stream = binding.Stream(device.name)
    except NotImplementedError as error:
        pytest.skip(str(error))
    binding.synchronize(device.name)
    with stream:
        yield stream
    binding.synchronize(device.name)


def test_the_properties_are_those_of_a_device(device: Device) -> None:
    all_devices = [
        asked(binding.properties, f"{device.name.partition(':')[0]}:{i}")
        for i in range(device.count)
    ]
    for each in all_devices:
        assert each["name"] and each["memory"] > 0 and each["units"] > 0
    uuids = [each["uuid"] for each in all_devices if any(each["uuid"])]
    assert len(set(uuids)) == len(uuids), "two devices have one UUID"
    assert asked(binding.properties, device.name) == binding.properties(device.name)


def test_zero_is_a_priority(device: Device) -> None:
    lowest, highest = binding.priorities(device.name)
    assert highest <= 0 <= lowest
    if device.table.priorities:
        with pytest.raises(ValueError, match="priority"):
            binding.Stream(device.name, priority=lowest + 1)


def test_memory_of_the_driver_is_counted(device: Device) -> None:
    free, total = asked(binding.memory_info, device.name)
    assert 0 < free <= total
    nbytes = 64 << 20
    data = device.take_memory(nbytes)
    try:
        assert data % 64 == 0
        assert binding.memory_info(device.name)[0] <= free, "no less is free"
    finally:
        device.table.memory_free(device.table.ctx, device.handle, data, nbytes)
    assert binding.memory_info(device.name)[1] == total


def test_more_memory_than_there_is_is_refused_without_an_error_object(device: Device) -> None:
    _free, total = asked(binding.memory_info, device.name)
    with pytest.raises(MemoryError, match="without a text"):
        device.take_memory(2 * total)


def test_every_block_is_listed(device: Device) -> None:
    x = device.put(np.ones(SIZE, np.float32))
    blocks = asked(binding.memory_snapshot, device.name)
    assert any(block["live"] and block["requested"] >= 4 * SIZE for block in blocks)
    ordered = sorted(blocks, key=lambda block: block["address"])
    for first, second in itertools.pairwise(ordered):
        assert first["address"] + first["bytes"] <= second["address"], "two blocks overlap"
    for block in blocks:
        assert block["segment"] <= block["address"] and block["requested"] <= block["bytes"]
    device.take(x)


def test_memory_is_that_of_its_device(device: Device) -> None:
    asked(binding.memory_info, device.name)
    data = device.take_memory(SIZE)
    try:
        number = asked(binding.memory_device, device.name, data)
        assert number == binding.device(device.name).index
        assert binding.memory_device(device.name, data + SIZE - 1) == number
        here = np.ones(SIZE, np.uint8)
        with pytest.raises(ValueError, match="memory"):
            binding.memory_device(device.name, here.ctypes.data)
    finally:
        device.table.memory_free(device.table.ctx, device.handle, data, SIZE)


def test_recorded_work_is_done_at_each_launch(device: Device, on_side: binding.Stream) -> None:
    x, y = (device.put(np.ones(SIZE, np.float32)) for _ in range(2))
    doubled(x, y)  # what is set up at the first call cannot be recorded
    binding.synchronize(device.name)
    try:
        pool = binding.memory_pool(device.name)
    except NotImplementedError:
        pool = None
    binding.use_memory_pool(on_side, pool)
    asked(binding.capture_begin, on_side)
    assert binding.is_capturing(on_side)
    doubled(x, y)
    graph = binding.capture_end(on_side)
    binding.use_memory_pool(on_side, None)
    assert not binding.is_capturing(on_side)
    for value in (3, -5):
        plait_abi.operator("copy_")(x, np.full(SIZE, value, np.float32))
        binding.graph_launch(graph, on_side)
        np.testing.assert_array_equal(device.take(y)[0], np.full(SIZE, 2 * value, np.float32))


def test_recorded_work_is_not_done_at_once(device: Device, on_side: binding.Stream) -> None:
    x, y = (device.put(np.full(SIZE, value, np.float32)) for value in (1, 7))
    doubled(x, device.put(np.zeros(SIZE, np.float32)))
    binding.synchronize(device.name)
    asked(binding.capture_begin, on_side)
    plait_abi.operator("copy_")(y, x)
    graph = binding.capture_end(on_side)
    np.testing.assert_array_equal(device.take(y)[0], np.full(SIZE, 7, np.float32))
    binding.graph_launch(graph, on_side)
    np.testing.assert_array_equal(device.take(y)[0], np.ones(SIZE, np.float32))


def test_an_event_is_opened_from_its_description(device: Device) -> None:
    event = asked(binding.Event, device.name, False, True)
    handle, fd, offset = binding.share_event(event)
    try:
        assert len(handle) <= 128
        # some drivers open what they made in other processes only
        opened = binding.open_event(device.name, handle, fd, offset)
    except RuntimeError as error:
        pytest.skip(f"not in the same process: {error}")
    finally:
        if fd >= 0:
            os.close(fd)
    event.record()
    opened.synchronize()
    assert event.query() and opened.query()


def test_records_of_work_have_times_in_order(device: Device) -> None:
    if not device.table.activity_start:
        pytest.skip(f"{device} keeps no records")
    x, y = (device.put(np.ones(SIZE, np.float32)) for _ in range(2))
    doubled(x, y)
    begin = time.monotonic_ns()

    def work() -> None:
        for _ in range(3):
            doubled(x, y)

    records = device.records(work)
    end = time.monotonic_ns()
    kernels = [record for record in records if record["kind"] == 1]
    assert len(kernels) >= 3
    for record in records:
        assert begin <= record["begin"] <= record["end"] <= end, "by CLOCK_MONOTONIC"
        assert record["queued"] <= record["begin"]
    assert all(record["launch"] and record["name"] for record in kernels)
