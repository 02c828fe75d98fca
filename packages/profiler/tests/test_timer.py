"""Timers: what they run, and what they make of the samples."""

from __future__ import annotations

import gc
import math

import pytest

import plait_core as pc
from plait_profiler import Measurement, Timer, TimerComparison


class Clock:
    """A clock that a statement advances."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def work(self, seconds: float) -> None:
        self.now += seconds


def test_a_sample_is_a_mean_of_its_runs() -> None:
    clock = Clock()
    result = Timer("work(0.5)", globals={"work": clock.work}, timer=clock).timeit(10)
    assert result.times == [pytest.approx(0.5)]
    assert result.number_per_run == 10
    assert result.stmt == "work(0.5)"


def test_code_of_several_lines_and_its_setup_share_names() -> None:
    calls: list[int] = []
    code = "for i in range(2):\n    seen.append(i + start)\n"
    Timer(code, "start = 3", globals={"seen": calls}).timeit(1)
    assert calls[:2] == [3, 4]


def test_samples_are_long_enough_for_the_clock() -> None:
    clock = Clock()
    timer = Timer(lambda: clock.work(1e-5), timer=clock)
    result = timer.blocked_autorange(0.05)
    assert result.number_per_run == pytest.approx(200, abs=1)
    assert sum(result.times) * result.number_per_run >= 0.05
    assert len(timer.adaptive_autorange().times) == 5


def test_a_long_statement_runs_once_a_sample() -> None:
    clock = Clock()
    result = Timer(lambda: clock.work(2.0), timer=clock).blocked_autorange(3.0)
    assert result.number_per_run == 1
    assert result.times == [2.0, 2.0]


def test_in_turns_both_have_as_many_samples() -> None:
    clock = Clock()
    fast = Timer(lambda: clock.work(1.0), timer=clock)
    slow = Timer(lambda: clock.work(2.0), timer=clock)
    both = fast.compare(slow, 0.0)
    assert both.ratio == 0.5
    assert len(both.first.times) == len(both.second.times) >= 3


@pytest.mark.parametrize(
    ("ratios", "interval", "significant"),
    [
        ([0.9] * 5, (0.0, math.inf), False),  # 2 / 2^5 is more than 5 %
        ([0.9, 0.8, 0.95, 0.85, 0.7, 0.99], (0.7, 0.99), True),
        ([0.9, 0.8, 1.1, 0.85, 0.7, 0.99], (0.7, 1.1), False),
        ([2.0, 0.5] + [1.5] * 10, (1.5, 1.5), True),  # 2 at each end may be outside of 12
    ],
)
def test_significance(
    ratios: list[float], interval: tuple[float, float], significant: bool
) -> None:
    both = TimerComparison(Measurement(ratios, 1), Measurement([1.0] * len(ratios), 1))
    assert both.interval == pytest.approx(interval)
    assert both.significant is significant
    assert ("no significant" in repr(both)) is not significant


def test_settings_are_as_before() -> None:
    threads = pc.get_num_threads()
    calls = []

    def look() -> None:
        calls.append((pc.get_num_threads(), gc.isenabled()))

    Timer(look, num_threads=1).timeit(1)
    assert set(calls) == {(1, False)}
    assert pc.get_num_threads() == threads
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError):
        Timer("1 / 0").timeit(1)
    assert gc.isenabled()


def test_what_cannot_be_timed() -> None:
    with pytest.raises(TypeError, match="stmt"):
        Timer(3)  # type: ignore[arg-type]
    for alone in ("break", "continue", "return 3"):
        with pytest.raises(SyntaxError):
            Timer(alone)
    with pytest.raises(ValueError, match="timeit: `number` must be at least 1; got 0"):
        Timer().timeit(0)
    with pytest.raises(TypeError, match="compare: `other` must be a Timer, got int"):
        Timer().compare(3)  # type: ignore[arg-type]


def test_code_may_be_indented_or_empty() -> None:
    calls: list[int] = []
    code = """
        seen.append(1)
        seen.append(2)
    """
    Timer(code, setup="  seen.append(0)", globals={"seen": calls}).timeit(1)
    assert calls == [0, 1, 2, 1, 2]  # one run is the warm-up
    assert Timer("").timeit(1).number_per_run == 1
    assert len(Timer().blocked_autorange(0).times) == 1
