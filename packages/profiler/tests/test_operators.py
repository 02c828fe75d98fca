"""Operators, shapes, memory and backward nodes in a profile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import plait_abi
import plait_core as pc
from plait_profiler import profile, record_function


def test_operators_within_a_range() -> None:
    x = pc.ones(4, 5)
    with profile(record_shapes=True) as prof, record_function("step"):
        (x + x).relu()
        pc.cat([x, x])
        x.sum(1)
    events = prof.events()
    step = events[0]
    assert step.name == "step"
    calls = {event.name: event for event in events if event.category == "operator"}
    assert {"add", "relu", "cat", "sum"} <= set(calls)
    assert calls["add"].cpu_parent is step
    assert calls["add"].input_shapes is not None
    assert calls["add"].input_shapes[:2] == [[4, 5], [4, 5]]
    assert calls["cat"].input_shapes is not None
    assert calls["cat"].input_shapes[0] == [[4, 5], [4, 5]]
    assert "[[4, 5], [4, 5]" in prof.key_averages(group_by_input_shape=True).table()


def test_shapes_are_grouped_by_if_wanted() -> None:
    x, y = pc.ones(2), pc.ones(3)
    with profile(record_shapes=True) as prof:
        for a in (x, y, y):
            a.exp()
    counts = [average.count for average in prof.key_averages() if average.key == "exp"]
    assert counts == [3]
    separate = prof.key_averages(group_by_input_shape=True)
    assert sorted(average.count for average in separate if average.key == "exp") == [1, 2]


def test_memory_belongs_to_the_operator_that_took_it(tmp_path: Path) -> None:
    x = pc.ones(1000)
    with profile(profile_memory=True) as prof:
        y = x + x
        del y
    [add] = [average for average in prof.key_averages() if average.key == "add"]
    assert add.self_cpu_memory_usage >= 4000
    assert "Self CPU Mem" in prof.key_averages().table(sort_by="self_cpu_memory_usage")
    prof.export_chrome_trace(tmp_path / "trace.json")
    lines = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    references = [line["args"]["bytes"] for line in lines if line["name"] == "cpu memory"]
    assert max(references) >= 4000
    assert references[-1] == 0


def test_an_operator_that_fails() -> None:
    x, y = pc.ones(2), pc.ones(3)
    with profile() as prof, pytest.raises(ValueError, match="add"):
        x + y
    assert [event.failed for event in prof.events() if event.name == "add"] == [True]


def test_a_running_profile_is_an_observer_in_the_report() -> None:
    def observers() -> list[str]:
        return [line.provider for line in plait_abi.report() if line.kind == "observer"]

    with profile():
        (watching,) = observers()
    assert "profiler" in watching and "/" not in watching
    assert observers() == []


def test_without_a_profile_nothing_is_watched() -> None:
    x = pc.ones(2)
    with profile() as prof:
        pass
    x + x
    assert len(prof.events()) == 0
