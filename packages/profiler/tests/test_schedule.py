"""Schedules, steps and the life of a profile."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import plait_core as pc
from plait_profiler import (
    ProfilerAction,
    _categories,
    _library,
    _modules,
    _profile,
    profile,
    record_function,
    schedule,
)


def ranges(prof: profile) -> list[str]:
    recording = prof.recording()
    return [recording.signatures[each].name for each in recording.rows["signature"]]


def test_each_cycle_is_a_recording() -> None:
    calls: list[list[str]] = []
    plan = schedule(wait=1, warmup=1, active=2, repeat=2)
    with profile(schedule=plan, on_trace_ready=lambda p: calls.append(ranges(p))) as prof:
        for i in range(10):
            with record_function(f"work {i}"):
                pass
            prof.step()
    assert calls == [
        ["ProfilerStep#2", "work 2", "ProfilerStep#3", "work 3"],
        ["ProfilerStep#6", "work 6", "ProfilerStep#7", "work 7"],
    ]
    assert ranges(prof) == calls[1]


def test_a_recording_that_the_block_ends() -> None:
    ready: list[Any] = []
    with profile(schedule=schedule(wait=0, warmup=0, active=5), on_trace_ready=ready.append) as p:
        pc.ones(2)
        p.step()
        assert p.current_action is ProfilerAction.RECORD
        pc.zeros(2)
    assert ready == [p]
    assert ranges(p) == ["ProfilerStep#0", "ones", "ProfilerStep#1", "zeros"]


def test_without_a_recorded_step_there_is_nothing() -> None:
    with profile(schedule=schedule(wait=5, warmup=1, active=1), on_trace_ready=pytest.fail) as p:
        p.step()
    with pytest.raises(RuntimeError, match="no events"):
        p.recording()


def test_numbers_of_a_schedule_are_checked() -> None:
    with pytest.raises(ValueError, match=r"active.*got wait=1, warmup=1, active=0"):
        schedule(wait=1, warmup=1, active=0)
    assert schedule(wait=1, warmup=0, active=1, skip_first=2)(3) is ProfilerAction.RECORD_AND_SAVE


def test_a_decorated_function() -> None:
    prof = profile()

    @prof
    def work() -> int:
        pc.ones(2)
        return 3

    assert work() == 3
    assert work() == 3
    assert ranges(prof) == ["ones"]


def test_misuse_is_an_error() -> None:
    prof = profile()
    with pytest.raises(RuntimeError, match="not started"):
        prof.stop()
    with pytest.raises(RuntimeError, match="outside"):
        prof.step()
    with prof, pytest.raises(RuntimeError, match="runs already"):
        prof.start()
    with pytest.raises(ValueError, match="capacity"):
        profile(capacity=0)
    with pytest.raises(TypeError, match="activities"):
        profile(activities=["cpu"])  # type: ignore[list-item]


def test_arguments_of_the_wrong_type() -> None:
    for wrong in ({"capacity": 1.5}, {"schedule": 3}, {"on_trace_ready": "file"}):
        [name] = wrong
        with pytest.raises(TypeError, match=f"profile: `{name}` must be"):
            profile(**wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="capacity"):
        profile(capacity=1 << 64)


def test_a_schedule_that_fails_leaves_the_profile_usable() -> None:
    answers: list[Any] = [0, ProfilerAction.RECORD]
    prof = profile(schedule=lambda step: answers.pop(0))
    with pytest.raises(TypeError, match="`schedule` must return a ProfilerAction; got 0"):
        prof.start()
    with prof:
        pc.ones(2)
    assert ranges(prof) == ["ones"]


def test_a_profile_that_is_dropped_while_it_runs_ends() -> None:
    watchers = _modules._watchers, _categories._watchers
    prof = profile(profile_memory=True)
    prof.start()
    assert _library.observer().recording()
    del prof
    gc.collect()
    assert not _library.observer().recording()
    assert (_modules._watchers, _categories._watchers) == watchers


def test_an_interrupt_while_a_profile_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    watchers = _modules._watchers
    prof = profile()
    with monkeypatch.context() as patched:
        patched.setattr(_profile, "Recorder", interrupted)
        with pytest.raises(KeyboardInterrupt):
            prof.start()
    assert _modules._watchers == watchers
    with prof:
        pc.ones(2)
    assert ranges(prof) == ["ones"]
