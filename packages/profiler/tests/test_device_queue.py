"""Queues of devices, against loops over moments."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import synthetic
from recordings import ACCELERATOR, Builder

from plait_profiler import Kind, load, profile
from plait_profiler._device_queue import device_queues, queue_depths


@pytest.mark.parametrize("seed", range(20))
def test_depths_and_sums_are_those_of_a_loop_over_moments(seed: int) -> None:
    chance = random.Random(seed)
    result = Builder()
    depth, running, waits = [0] * 400, [0] * 400, []
    for stream in (1, 2):
        at = chance.randint(10, 60)
        for _ in range(chance.randint(1, 12)):
            begin = at + chance.choice([0, 0, 3, 12])
            at = begin + chance.randint(1, 9)
            wait = chance.randint(1, 10)
            waits.append(wait)
            fields = {"b": wait << 16 | stream, "device": ACCELERATOR}
            result.add(Kind.DEVICE, "work", begin, at, **fields)
            for moment in range(begin - wait, at):
                depth[moment] += 1
                running[moment] += moment >= begin
    recording = result.build()
    times, depths = queue_depths(recording)[1, ACCELERATOR]
    at_each = [0] * 400
    for time, value in zip(times.tolist(), depths.tolist(), strict=True):
        at_each[time:] = [value] * (400 - time)
    assert at_each == depth
    (row,) = device_queues(recording)
    first = next(i for i, n in enumerate(running) if n)
    last = 400 - next(i for i, n in enumerate(reversed(running)) if n)
    inside = running[first:last]
    pauses = "".join("0" if n else "1" for n in inside).split("0")
    expected = {
        "count": len(waits),
        "time": len(inside) / 1e3,
        "busy": sum(n > 0 for n in inside) / 1e3,
        "utilization": sum(n > 0 for n in inside) / len(inside),
        "idle": sum(n == 0 for n in inside) / 1e3,
        "longest_idle": max(map(len, pauses)) / 1e3,
        "mean_depth": sum(depth[first:last]) / len(inside),
        "most_depth": max(depth),
        "ahead": sum(waits) / len(waits) / 1e3,
        "most_ahead": max(waits) / 1e3,
    }
    assert {key: row[key] for key in expected} == pytest.approx(expected)
    assert (row["device"], row["process"]) == ("cuda:0", 1)


def test_work_without_a_time_in_the_queue_waits_since_its_call() -> None:
    result = Builder()
    result.op("mm", 10, 20, a=1)
    result.add(Kind.DEVICE, "mm", 50, 70, a=1, device=ACCELERATOR)
    result.add(Kind.DEVICE, "copy", 80, 90, device=ACCELERATOR)  # no call is known
    times, depths = queue_depths(result.build())[1, ACCELERATOR]
    assert times.tolist() == [10, 70, 80, 90] and depths.tolist() == [1, 0, 1, 0]


def test_processes_and_devices_have_rows_of_their_own() -> None:
    recording = synthetic.recording(3000, processes=2)
    table = device_queues(recording)
    assert [(row["process"], row["device"]) for row in table] == [(100, "cuda:0"), (101, "cuda:0")]
    works = np.flatnonzero(recording.rows["kind"] == Kind.DEVICE)
    assert sum(row["count"] for row in table) == len(works)
    assert all(0 < row["utilization"] <= 1 for row in table)
    text = str(table)
    assert "Queues of devices" in text and "3 events were dropped" in text


def test_a_profile_without_devices_has_no_rows(tmp_path: Path) -> None:
    with profile() as prof:
        pass
    prof.save(tmp_path / "one.plaitprof")
    assert len(prof.device_queues()) == 0 == len(load(tmp_path / "one.plaitprof").device_queues())
