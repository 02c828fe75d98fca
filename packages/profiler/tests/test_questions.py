"""Two profiles compared, operators far from the peak, and what ran alone."""

from __future__ import annotations

import random

import pytest
from recordings import ACCELERATOR, Builder, nested

from plait_profiler._averages import key_averages
from plait_profiler._compare import compare
from plait_profiler._overlap import overlap
from plait_profiler._peak import Peak, far_from_peak, machine_peak
from plait_profiler._recording import Kind, Recording


def calls(*durations: tuple[str, int]) -> Recording:
    result, at = Builder(), 0
    for name, duration in durations:
        result.op(name, at, at + duration)
        at += duration
    return result.build()


def test_what_changed_between_two_profiles() -> None:
    a = calls(("mul", 1000), ("mul", 1000), ("exp", 5000), ("sum", 10), ("abs", 4), ("sin", 4000))
    b = calls(*[("mul", 1000)] * 5, ("exp", 2000), ("log", 10), ("abs", 4), ("sin", 5500))
    rows = {row["key"]: row for row in compare(a, b)}
    assert list(rows) == ["mul", "exp", "sin", "sum", "log", "abs"]
    assert {key: row["what"] for key, row in rows.items()} == {
        "mul": "more often",
        "exp": "faster",
        "sin": "slower",
        "sum": "gone",
        "log": "new",
        "abs": "",
    }
    assert [rows["exp"][key] for key in ("change", "time_a", "time_b")] == [-3, 5, 2]
    assert [rows["mul"][key] for key in ("by_count", "count_a", "count_b")] == [3, 2, 5]
    assert "All changes together: +1.500us" in str(compare(a, b))
    assert compare(b, a)[0]["what"] == "less often"


@pytest.mark.parametrize("by", ["name", "signature", "module", "line"])
def test_the_parts_of_changes_are_their_sums(by: str) -> None:
    a, b = nested(1), nested(2)
    rows = compare(a, b, by=by)
    for row in rows:
        assert row["by_count"] + row["by_speed"] == pytest.approx(row["change"])
    whole = key_averages(b).self_cpu_time_total - key_averages(a).self_cpu_time_total
    assert sum(rows.values("change")) == pytest.approx(whole)
    assert all(row["change"] == 0 for row in compare(a, a, by=by))


def test_signatures_are_compared_apart() -> None:
    recordings = []
    for slow in (100, 900):
        result = Builder()
        result.op("exp", 0, 50, inputs=(("float32", (2,), None),))
        result.op("exp", 100, 100 + slow, inputs=(("float64", (2,), (4,)), 2, [None]))
        recordings.append(result.build())
    [row, other] = compare(*recordings, by="signature")
    assert row["key"] == "exp(float64[2] by [4], 2, [None])" and row["what"] == "slower"
    assert other["key"] == "exp(float32[2])" and other["change"] == 0
    a, b = recordings
    with pytest.raises(ValueError, match="compare: `metric` must be one of"):
        compare(a, b, metric="time")
    with pytest.raises(ValueError, match="compare: `by` must be one of"):
        compare(a, b, by="colour")


def test_what_loses_most_is_first() -> None:
    result = Builder()
    result.op("linear", 0, 9000, composite=True, operations=77)
    result.op("mm", 0, 8000, 1, operations=400_000, read=100, written=0)
    result.op("add", 10_000, 12_000, operations=10, read=9_000, written=1_000)
    result.op("add", 13_000, 15_000, operations=10, read=9_000, written=1_000)
    result.op("item", 20_000, 30_000)  # nothing is known of it
    result.op("gpu", 40_000, 50_000, a=1, operations=500_000)
    result.add(Kind.DEVICE, "gpu", 41_000, 141_000, a=1, device=ACCELERATOR)
    recording = result.build()
    peak = Peak(flops=100e9, bandwidth=10e9)
    rows = far_from_peak(recording, peak)
    assert rows.values("key") == ["mm", "add"]
    assert rows[0]["lost"] == pytest.approx(4.0) and rows[0]["bound"] == "compute"
    assert rows[0]["flop_rate"] == pytest.approx(50e9)
    assert rows[1]["share"] == pytest.approx(0.5) and rows[1]["bound"] == "memory"
    assert rows[1]["lost"] == pytest.approx(2.0) and rows[1]["count"] == 2
    assert "Peak of cpu: 100 GFLOP/s, 10 GB/s" in str(rows)
    [row] = far_from_peak(recording, peak, device="cuda:0")
    assert (row["key"], row["time"], row["lost"]) == ("gpu", 100.0, pytest.approx(95.0))
    assert len(far_from_peak(Builder().build())) == 0  # without a measurement


@pytest.mark.slow
def test_the_peak_of_this_machine() -> None:
    peak = machine_peak()
    assert peak.flops > 1e8 and peak.bandwidth > 1e8
    assert machine_peak() is peak


@pytest.mark.parametrize("seed", range(20))
def test_time_alone_is_that_of_a_loop_over_moments(seed: int) -> None:
    chance = random.Random(seed)
    result = Builder()
    result.add(Kind.BACKWARD, "backward", 5, 90)
    result.add(Kind.BACKWARD, "backward", 100, 120)  # of one thread
    result.add(Kind.NODE, "single", 101, 110, depth=1)
    busy: list[set[str]] = [set() for _ in range(200)]
    names = []
    for thread in (1, 2, 3):
        at = chance.randint(0, 20)
        while at < 85:
            end = at + chance.randint(0, 15)
            name = f"{thread} {at}"
            names.append(name)
            result.add(Kind.NODE, name, at, end, depth=thread == 1, thread=thread)
            result.op("inner", at, end, depth=1 + (thread == 1), thread=thread)
            for moment in range(at, end):
                busy[moment].add(name)
            at = end + chance.randint(1, 9)
    expected = {
        name: sum(busy[moment] == {name} for moment in range(5, 90)) / 1e3 for name in names
    }
    results = {row["key"]: row["alone"] for row in overlap(result.build())}
    assert results == pytest.approx({name: time for name, time in expected.items() if time})


def test_a_device_waits_for_the_host() -> None:
    result = Builder()
    result.op("launch", 0, 10, a=1)
    result.op("prepare", 20, 60)
    result.op("launch", 60, 70, a=2)
    result.op("after", 90, 99)
    result.add(Kind.DEVICE, "launch", 5, 25, a=1, device=ACCELERATOR)
    result.add(Kind.DEVICE, "launch", 65, 80, a=2, device=ACCELERATOR)
    table = overlap(result.build())
    idle = {row["key"]: row["device_idle"] for row in table}
    assert idle == {"prepare": 0.035, "launch": 0.005}
    assert "idle between their first and last work: 0.040us" in str(table)
    assert len(overlap(Builder().build())) == 0
