"""Work on accelerators in a profile: rows with the times of events around each call, where a device
keeps no records of its own; test_device_functions.py has those.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
from plugins import EXAMPLES, compiled

import plait
from plait.profiler import Kind, profile


@pytest.fixture(scope="module", name="device_library")
def without_records() -> Path:
    return compiled(EXAMPLES / "device.c", "-DPLAIT_TARGET=PLAIT_VERSION(0,4)")


def test_each_launch_has_a_row_by_the_devices_clock(device: ctypes.CDLL) -> None:
    w = plait.ones(3, device="ext", requires_grad=True)
    device.example_device_set(b"delay_us", 3000)
    try:
        with profile() as prof:
            y = w * w
            y.sum().backward()
    finally:
        device.example_device_set(b"delay_us", 0)
    recording = prof.recording()
    rows = recording.rows
    calls = rows[(rows["kind"] == Kind.OP) & (rows["device"] == 12 << 8)]
    work = rows[rows["kind"] == Kind.DEVICE]
    names = [recording.signatures[each].name for each in work["signature"]]
    assert names[:2] == ["mul", "sum"]
    assert (work["duration"] >= 3_000_000).all()
    for row in work:
        [call] = calls[calls["a"] == row["a"]]
        # one clock is matched with the other by a wait, which takes a little time itself
        assert row["start"] + row["duration"] > call["start"]
        assert row["link"] == call["link"]
        assert row["device"] == 12 << 8
    # one stream does one thing after another
    ends = (work["start"] + work["duration"])[:-1]
    assert (work["start"][1:] + 1_000_000 >= ends).all()


def test_an_error_of_the_device_is_told_by_the_program_or_at_the_end(device: ctypes.CDLL) -> None:
    x = plait.ones(3, device="ext")
    plait.accelerator.synchronize("ext")
    device.example_device_set(b"fail_in", 1)
    prof = profile()
    with pytest.raises(ValueError, match="exp: the pretend device was told to fail"), prof:
        x.exp()
    assert [each.name for each in prof.recording().signatures if each.name == "exp"] == ["exp"]
    x.exp()
    plait.accelerator.synchronize("ext")


def test_profiles_side_by_side_have_the_work_that_they_saw_launched(device: ctypes.CDLL) -> None:
    w = plait.ones(3, device="ext")
    outer, inner, late = profile(), profile(), profile()
    with outer:
        w * w
        with inner:
            w + w
        late.start()
        w - w
    w / w
    late.stop()

    def works(prof: profile) -> list[str]:
        recording = prof.recording()
        rows = recording.rows[recording.rows["kind"] == Kind.DEVICE]
        return [recording.signatures[each].name for each in rows["signature"]]

    assert works(outer) == ["mul", "add", "sub"]
    assert works(inner) == ["add"]
    assert works(late)[0] == "sub" and "add" not in works(late)
