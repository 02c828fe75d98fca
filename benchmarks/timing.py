"""Two functions timed in turns: medians of interleaved rounds, in one process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from plait_profiler._timer import repetitions, sample, take_turns

__all__ = ["Case", "Comparison", "Figure", "Seconds", "compare"]

Case = tuple[str, Callable[[], Any], Callable[[], Any], float | None]
"""Name, plait's function, the peer's function, and the bar: the largest ratio that passes."""


class Seconds(float):
    """The result of a function that was timed elsewhere, which replaces its own time."""


@dataclass(frozen=True)
class Comparison:
    """Median seconds of a call on both sides, and their ratio: below 1 plait is faster."""

    name: str
    plait: float
    peer: float
    bar: float | None
    rounds: int

    @property
    def ratio(self) -> float:
        """Of the medians."""
        return self.plait / self.peer

    @property
    def passed(self) -> bool:
        """The ratio is not above the bar, or there is none."""
        return self.bar is None or self.ratio <= self.bar


@dataclass(frozen=True)
class Figure:
    """A measurement that is not a ratio of two times.

    Attributes:
        name: what was measured.
        value: the result.
        limit: the largest value that passes, or None.
        unit: of both.
        note: how it was measured, or what it is compared to.
    """

    name: str
    value: float
    limit: float | None
    unit: str
    note: str = ""

    @property
    def passed(self) -> bool:
        """The value is not above the limit, or there is none."""
        return self.limit is None or self.value <= self.limit


def compare(case: Case, budget: float = 2.0) -> Comparison:
    """Time both functions of a case in turns, for about ``budget`` seconds in all."""
    name, ours, theirs, bar = case
    samplers = [_sampler(function) for function in (ours, theirs)]
    plait, peer = take_turns(samplers, budget)
    return Comparison(name, statistics.median(plait), statistics.median(peer), bar, len(plait))


def _sampler(function: Callable[[], Any]) -> Callable[[], float]:
    """Return a function that times one call, as a mean of as many as the clock needs."""
    count = repetitions(lambda number: sample(function, number))

    def seconds() -> float:
        result: Any = None
        begin = time.perf_counter()
        for _ in range(count):
            result = function()
        duration = (time.perf_counter() - begin) / count
        return float(result) if isinstance(result, Seconds) else duration

    return seconds
