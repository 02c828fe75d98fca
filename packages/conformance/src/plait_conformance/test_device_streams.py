"""Role ``device``: streams and events.

A stream is kept busy, so that what follows in it is not done yet when the next line runs. Results
are read through a third stream, which nothing orders behind the others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import plait_abi
from plait_abi import binding
from plait_conformance._device import Device, Event, Stream, until

ELEMENTS = 1000


class Track:
    """Streams of a device, and a tensor of zeros that one of them writes ones to, later."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.streams: list[Stream] = []
        self.events: list[Event] = []
        self.ones = device.put(np.ones(ELEMENTS, np.float32))
        self.target = device.put(np.zeros(ELEMENTS, np.float32))
        self.other = device.put(np.zeros(ELEMENTS, np.float32))
        device.synchronize()
        self.first, self.second, self.reader = self.stream(), self.stream(), self.stream()

    def stream(self) -> Stream:
        self.streams.append(self.device.stream())
        return self.streams[-1]

    def event(self, *, timed: bool = False) -> Event:
        self.events.append(self.device.event(timed=timed))
        return self.events[-1]

    def write_later(self, stream: Stream) -> None:
        """Put ones into the target, behind other work."""
        self.device.occupy(stream)
        self.copy(stream, self.target, self.ones)

    def copy(self, stream: Stream, to: Any, source: Any) -> None:
        with stream.current():
            plait_abi.operator("copy_")(to, source)

    def check(self, tensor: Any, message: str) -> None:
        """The tensor has ones, for a reader that waits for nothing."""
        with self.reader.current():
            (array,) = self.device.take(tensor)
        np.testing.assert_array_equal(array, np.ones(ELEMENTS, np.float32), err_msg=message)

    def close(self) -> None:
        self.device.synchronize()
        for event in self.events:
            event.close()
        for stream in self.streams:
            stream.close()


@pytest.fixture
def track(device: Device) -> Iterator[Track]:
    result = Track(device)
    yield result
    result.close()


def test_work_in_a_stream_is_done_in_order(track: Track) -> None:
    add, mul = plait_abi.operator("add_"), plait_abi.operator("mul_")
    want = np.float32(0)
    with track.first.current():
        for number in range(50):
            add(track.target, number)
            mul(track.target, 0.5)
            want = (want + np.float32(number)) * np.float32(0.5)
    track.first.synchronize()
    with track.reader.current():
        np.testing.assert_array_equal(track.device.take(track.target)[0], np.full(ELEMENTS, want))


def wait_for_stream(track: Track) -> None:
    track.first.synchronize()


def wait_for_device(track: Track) -> None:
    track.device.synchronize()


def wait_for_event(track: Track) -> None:
    track.event().record(track.first).synchronize()


def ask_stream(track: Track) -> None:
    until(lambda: track.first.done)


def ask_event(track: Track) -> None:
    event = track.event().record(track.first)
    until(lambda: event.done)


def stream_by_table(track: Track) -> None:
    track.device.wait_by_table("stream_synchronize", track.device.handle, track.first.pointer)


def device_by_table(track: Track) -> None:
    track.device.wait_by_table("synchronize", track.device.handle)


def event_by_table(track: Track) -> None:
    if not track.device.table.event_wait:
        pytest.skip(f"{track.device} has no events")
    track.device.wait_by_table("event_wait", track.event().record(track.first).pointer)


WAITS = [
    *(wait_for_stream, wait_for_device, wait_for_event, ask_stream, ask_event),
    *(stream_by_table, device_by_table, event_by_table),
]


@pytest.mark.parametrize("wait", WAITS)
def test_what_is_waited_for_is_done(track: Track, wait: Callable[[Track], None]) -> None:
    track.write_later(track.first)
    wait(track)
    track.check(track.target, f"{wait.__name__} returned before the work was done")
    until(lambda: track.first.done)


def test_the_default_stream(track: Track) -> None:
    default = track.device.default
    track.write_later(default)
    default.synchronize()
    track.check(track.target, "the default stream was waited for")


def test_a_stream_waits_for_another(track: Track) -> None:
    track.write_later(track.first)
    track.second.wait(track.event().record(track.first))
    track.copy(track.second, track.other, track.target)
    track.second.synchronize()
    track.check(track.other, "the second stream did not wait for the first one's event")


def test_a_stream_waits_for_the_event_as_it_was(track: Track) -> None:
    event = track.event()
    track.write_later(track.first)
    track.second.wait(event.record(track.first))
    event.record(track.reader).synchronize()  # which is idle
    track.copy(track.second, track.other, track.target)
    track.second.synchronize()
    track.check(track.other, "the event was recorded again, and the wait for the old one ended")


def test_an_event_can_be_recorded_again(track: Track) -> None:
    event = track.event().record(track.reader)
    event.synchronize()
    track.write_later(track.first)
    event.record(track.first).synchronize()
    track.check(track.target, "an event that was recorded again is reached where it was before")


def test_an_event_that_was_never_recorded_is_reached(track: Track) -> None:
    event = track.event()
    assert event.done
    event.synchronize()
    track.second.wait(event)
    track.second.synchronize()


def test_an_event_given_up_is_still_waited_for(track: Track) -> None:
    event = track.event()
    track.write_later(track.first)
    track.second.wait(event.record(track.first))
    event.close()
    track.copy(track.second, track.other, track.target)
    track.second.synchronize()
    track.check(track.other, "the event was given up before it was reached")


def test_the_work_of_a_stream_given_up_is_done(track: Track) -> None:
    stream = track.device.stream()
    track.write_later(stream)
    stream.close()
    track.device.synchronize()
    track.check(track.target, "the stream was given up with work in it")


def test_a_chain_of_streams(track: Track) -> None:
    streams = [track.stream() for _ in range(8)]
    values = [track.device.put(np.zeros(ELEMENTS, np.float32)) for _ in streams]
    track.device.synchronize()
    track.write_later(track.first)
    before, source = track.first, track.target
    for stream, value in zip(streams, values, strict=True):
        stream.wait(track.event().record(before))
        track.copy(stream, value, source)
        before, source = stream, value
    before.synchronize()
    track.check(source, "the last of a chain of streams")


def test_streams_serve_several_threads(track: Track) -> None:
    streams = [track.stream() for _ in range(4)]
    values = [track.device.put(np.zeros(ELEMENTS, np.float32)) for _ in streams]
    track.device.synchronize()
    result: list[float | BaseException] = []

    def work(stream: Stream, value: Any) -> None:
        try:
            for _ in range(20):
                with stream.current():
                    plait_abi.operator("add_")(value, 1)
            stream.synchronize()
            with stream.current():
                result.extend(set(track.device.take(value)[0].tolist()))
        except BaseException as error:
            result.append(error)

    threads = [
        threading.Thread(target=work, args=pair) for pair in zip(streams, values, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert result == [20.0] * 4


def test_priorities_are_taken(track: Track) -> None:
    for priority in (*binding.priorities(track.device.name), 0):
        stream = track.device.stream(priority)
        track.copy(stream, track.target, track.ones)
        stream.synchronize()
        stream.close()
    track.check(track.target, "a stream with a priority")


def test_elapsed_time(track: Track) -> None:
    if not track.device.table.event_elapsed:
        pytest.skip(f"{track.device} has no clock")
    begin, end = track.event(timed=True).record(track.first), track.event(timed=True)
    track.device.occupy(track.first)
    end.record(track.first).synchronize()
    assert begin.milliseconds_to(end) > 0
    assert end.milliseconds_to(begin) == -begin.milliseconds_to(end)
    assert begin.milliseconds_to(begin) == 0
