"""Two functions timed in turns: medians of interleaved rounds, in one process."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Case", "Comparison", "Figure", "Seconds", "compare"]

Case = tuple[str, Callable[[], Any], Callable[[], Any], float | None]
"""Name, plait's function, the peer's function, and the bar: the largest ratio that passes."""

SHORTEST = 2e-3  # a sample lasts at least this long, so that the clock does not matter
LONG = 0.5  # seconds: a call that takes longer is warmed up once
FEWEST, MOST = 3, 41
SETTLE = 5e-3  # seconds before a sample: threads that wait for work by spinning (OpenMP's and
# OpenBLAS's do, for milliseconds) would else run on the core that the other side's need


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
    """Time both functions of a case in turns, for about ``budget`` seconds in all.

    The order alternates between rounds, so that changes of the machine's speed affect both equally.
    The first call of each is not timed.
    """
    name, ours, theirs, bar = case
    sides = [(ours, _repetitions(ours)), (theirs, _repetitions(theirs))]
    samples: tuple[list[float], list[float]] = ([], [])
    begun = time.perf_counter()
    was_on = gc.isenabled()
    gc.disable()
    try:
        rounds = 0
        while rounds < FEWEST or (rounds < MOST and time.perf_counter() - begun < budget):
            for side in (0, 1) if rounds % 2 == 0 else (1, 0):
                time.sleep(SETTLE)
                samples[side].append(_sample(*sides[side]))
            gc.collect()
            rounds += 1
    finally:
        if was_on:
            gc.enable()
    return Comparison(name, *map(statistics.median, samples), bar, rounds)


def _repetitions(function: Callable[[], Any]) -> int:
    """Return how often to call a function in a sample; warms it up."""
    start = time.perf_counter()
    function()
    if time.perf_counter() - start > LONG:
        return 1
    start = time.perf_counter()
    function()
    once = time.perf_counter() - start
    if once >= SHORTEST:
        return 1
    count = max(1, math.ceil(SHORTEST / max(once, 1e-8)))
    return max(1, math.ceil(SHORTEST / max(_sample(function, count), 1e-9)))


def _sample(function: Callable[[], Any], count: int) -> float:
    result = None
    start = time.perf_counter()
    for _ in range(count):
        result = function()
    seconds = (time.perf_counter() - start) / count
    return float(result) if isinstance(result, Seconds) else seconds
