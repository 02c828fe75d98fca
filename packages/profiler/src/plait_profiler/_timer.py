"""Times of short pieces of code: warmed up, many samples, medians, two of them in turns."""

from __future__ import annotations

import contextlib
import gc
import itertools
import math
import statistics
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

SHORTEST = 2e-3  # a sample lasts at least this long, so that the clock does not matter
LONG = 0.5  # seconds: a call that takes longer is warmed up once
FEWEST, MOST = 3, 41  # rounds of two statements in turns
SETTLE = 5e-3  # seconds before a sample in turns: threads that wait for work by spinning (OpenMP's
# and OpenBLAS's do, for milliseconds) would else run on the core that the other side needs

Clock = Callable[[], float]


def clock() -> float:
    """Return seconds of a clock, when an accelerator, if there is one, has done its work.

    Example:
        >>> from plait_profiler._timer import clock
        >>> clock() <= clock()
        True
    """
    core = sys.modules.get("plait_core")
    if core is not None and core.accelerator.is_available():
        core.accelerator.synchronize()
    return time.perf_counter()


@dataclass
class Measurement:
    """Samples of one statement's time.

    Args:
        metadata: Further facts of the measurement; or None.

    Attributes:
        times: seconds for one run of the statement, one for each sample.
        number_per_run: how often the statement ran in a sample.
        label, sub_label, description: as given to the timer.
        stmt: the statement, or the function's name.
        num_threads: of operators.

    Example:
        >>> from plait_profiler import Measurement
        >>> m = Measurement([1.0, 2.0, 9.0], 100, stmt="f()")
        >>> m.median, m.mean, m.iqr
        (2.0, 4.0, 4.0)
    """

    times: list[float]
    number_per_run: int
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    stmt: str = ""
    num_threads: int = 1
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def median(self) -> float:
        """Seconds of one run."""
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        """Seconds of one run."""
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        """The distance between the quartiles, in seconds; 0 for a single sample."""
        if len(self.times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return high - low

    @property
    def has_warnings(self) -> bool:
        """The samples are too few, or lie too far apart, to be relied on."""
        return len(self.times) < 5 or self.iqr > 0.1 * self.median

    def __repr__(self) -> str:
        title = self.label or self.stmt
        for more in (self.sub_label, self.description):
            title += f", {more}" if more else ""
        text = (
            f"<Measurement: {title}>\n"
            f"  {seconds_text(self.median)} median, "
            f"{seconds_text(self.iqr)} between the quartiles, "
            f"{len(self.times)} samples of {self.number_per_run} runs, {self.num_threads} threads"
        )
        if self.has_warnings:
            text += "\n  few samples, or far apart: take more, on a quieter machine"
        return text


@dataclass
class TimerComparison:
    """Two statements that were timed in turns.

    Attributes:
        first, second: their samples, of the same rounds.

    Example:
        >>> from plait_profiler import Measurement, TimerComparison
        >>> first = Measurement([1.0, 1.1, 0.9, 1.0, 1.0, 1.05], 1)
        >>> second = Measurement([2.0, 2.1, 2.0, 2.2, 1.9, 2.0], 1)
        >>> both = TimerComparison(first, second)
        >>> round(both.ratio, 2), both.significant
        (0.5, True)
    """

    first: Measurement
    second: Measurement

    @property
    def ratio(self) -> float:
        """Of the medians: below 1 the first statement is faster."""
        return self.first.median / self.second.median

    @property
    def interval(self) -> tuple[float, float]:
        """What the median of the rounds' ratios lies in with a probability of at least 95 %.

        Its borders are order statistics of the ratios (the sign test's interval). With fewer than
        6 rounds there is none: it is (0, inf).
        """
        ratios = sorted(a / b for a, b in zip(self.first.times, self.second.times, strict=True))
        n, outside, k = len(ratios), 0.0, 0
        while True:  # the k smallest and the k largest ratios may lie outside
            outside += 2 * math.comb(n, k) / 2**n
            if outside > 0.05 or k > n // 2:
                break
            k += 1
        return (ratios[k - 1], ratios[n - k]) if k else (0.0, math.inf)

    @property
    def significant(self) -> bool:
        """One statement is faster, not only in these samples: 1 is outside the interval."""
        low, high = self.interval
        return low > 1 or high < 1

    def __repr__(self) -> str:
        low, high = self.interval
        verdict = "a significant" if self.significant else "no significant"
        return (
            f"<TimerComparison: {self.first.stmt} / {self.second.stmt}>\n"
            f"  {seconds_text(self.first.median)} / "
            f"{seconds_text(self.second.median)} = {self.ratio:.3f}, "
            f"95 % between {low:.3f} and {high:.3f} in {len(self.first.times)} rounds: "
            f"{verdict} difference"
        )


class Timer:
    """Times a statement, after PyTorch's `torch.utils.benchmark.Timer`.

    It warms up, runs the statement often enough in a sample for the clock, switches the garbage
    collector off, waits for an accelerator before it looks at the clock, and uses one thread unless
    more are requested.

    Args:
        stmt: code, or a function without arguments.
        setup: code that runs once before.
        globals: names that the code may use.
        label, sub_label, description: what a measurement shows.
        num_threads: threads of operators; None leaves the setting.
        timer: a function that returns seconds.

    Raises:
        TypeError: if ``stmt`` is neither text nor callable.

    Example:
        >>> from plait_profiler import Timer
        >>> numbers = list(range(1000))
        >>> m = Timer("sum(numbers)", globals={"numbers": numbers}).timeit(100)
        >>> m.number_per_run, m.median > 0
        (100, True)
    """

    def __init__(
        self,
        stmt: str | Callable[[], Any] = "pass",
        setup: str = "pass",
        *,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        num_threads: int | None = 1,
        timer: Clock = clock,
    ) -> None:
        if not (isinstance(stmt, str) or callable(stmt)):
            raise TypeError(f"Timer: `stmt` must be code or a function, got {type(stmt).__name__}")
        self._titles = (label, sub_label, description)
        self._threads = num_threads
        self._clock = timer
        self._stmt = stmt if isinstance(stmt, str) else getattr(stmt, "__name__", repr(stmt))
        names = dict(globals or {})
        setup = textwrap.dedent(setup)
        if isinstance(stmt, str):
            exec(compile(setup, "<setup>", "exec"), names)
            stmt = textwrap.dedent(stmt).strip("\n") or "pass"
            compile(stmt, "<stmt>", "exec")  # it must stand alone: no `break` or `return`
            body = "\n".join(f"        {line}" for line in stmt.split("\n"))
            code = f"def _run(_times):\n    for _ in _times:\n{body}\n"
            exec(compile(code, "<stmt>", "exec"), names)
            self._loop = names["_run"]
        else:
            exec(compile(setup, "<setup>", "exec"), names)
            self._loop = _loop_of(stmt)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Run the statement ``number`` times, after a warm-up, as one sample.

        Raises:
            ValueError: if ``number`` is less than 1.
        """
        if number < 1:
            raise ValueError(f"Timer.timeit: `number` must be at least 1; got {number}")
        with _quiet(self._threads):
            self._run(max(1, number // 100))
            return self._measurement([self._run(number)], number)

    def blocked_autorange(self, min_run_time: float = 0.2) -> Measurement:
        """Take samples of one length until they lasted ``min_run_time`` seconds.

        Example:
            >>> from plait_profiler import Timer
            >>> measured = Timer("1 + 1").blocked_autorange(0.02)
            >>> sum(measured.times) * measured.number_per_run >= 0.02
            True
        """
        with _quiet(self._threads):
            number = self._number()
            times = [self._run(number)]
            while sum(times) * number < min_run_time:
                times.append(self._run(number))
            return self._measurement(times, number)

    def adaptive_autorange(
        self, threshold: float = 0.1, min_run_time: float = 0.01, max_run_time: float = 10.0
    ) -> Measurement:
        """Take samples until the quartiles are ``threshold`` times the median apart, or less.

        Args:
            min_run_time: The least time in seconds.
            max_run_time: The largest time in seconds.
        """
        with _quiet(self._threads):
            number = self._number()
            times: list[float] = []
            while True:
                times.append(self._run(number))
                measurement = self._measurement(times, number)
                duration = sum(times) * number
                steady = len(times) >= 5 and measurement.iqr <= threshold * measurement.median
                if duration >= max_run_time or (steady and duration >= min_run_time):
                    return measurement

    def compare(self, other: Timer, min_run_time: float = 2.0) -> TimerComparison:
        """Time this statement and another one in turns, for about ``min_run_time`` seconds.

        Their order alternates, so that changes of the machine's speed affect both equally.

        Args:
            other: The timer to compare with.

        Example:
            >>> from plait_profiler import Timer
            >>> short, long = Timer("sum(range(10))"), Timer("sum(range(10000))")
            >>> both = short.compare(long, 0.1)
            >>> both.ratio < 1
            True
        """
        if not isinstance(other, Timer):
            raise TypeError(f"Timer.compare: `other` must be a Timer, got {type(other).__name__}")
        with _quiet(self._threads):
            numbers = self._number(), other._number()
            samplers = [lambda: self._run(numbers[0]), lambda: other._run(numbers[1])]
            first, second = take_turns(samplers, min_run_time)
            return TimerComparison(
                self._measurement(first, numbers[0]), other._measurement(second, numbers[1])
            )

    def _run(self, number: int) -> float:
        begin = self._clock()
        self._loop(itertools.repeat(None, number))
        return (self._clock() - begin) / number

    def _number(self) -> int:
        return repetitions(lambda number: self._run(number) * number)

    def _measurement(self, times: list[float], number: int) -> Measurement:
        return Measurement(
            times, number, *self._titles, stmt=self._stmt, num_threads=_threads() or 1
        )


def _loop_of(function: Callable[[], Any]) -> Callable[[Iterator[None]], None]:
    def run(times: Iterator[None]) -> None:
        for _ in times:
            function()

    return run


def repetitions(run: Callable[[int], float]) -> int:
    """Return how often code is to run in a sample, and warm it up.

    Args:
        run: runs the code so many times and returns the seconds that this took.
    """
    if run(1) > LONG:
        return 1
    once = run(1)
    if once >= SHORTEST:
        return 1
    count = max(1, math.ceil(SHORTEST / max(once, 1e-8)))
    return max(1, math.ceil(SHORTEST / max(run(count) / count, 1e-9)))


def sample(function: Callable[[], Any], count: int) -> float:
    """Return the seconds of ``count`` calls together."""
    begin = time.perf_counter()
    for _ in itertools.repeat(None, count):
        function()
    return time.perf_counter() - begin


def take_turns(samplers: Sequence[Callable[[], float]], budget: float) -> tuple[list[float], ...]:
    """Call functions in turns, for about ``budget`` seconds in all; return what each returned."""
    samples: tuple[list[float], ...] = tuple([] for _ in samplers)
    begin = time.perf_counter()
    with _quiet(None):
        rounds = 0
        while rounds < FEWEST or (rounds < MOST and time.perf_counter() - begin < budget):
            order = range(len(samplers))
            for side in order if rounds % 2 == 0 else reversed(order):
                time.sleep(SETTLE)
                samples[side].append(samplers[side]())
            gc.collect()
            rounds += 1
    return samples


def _threads() -> int | None:
    core = sys.modules.get("plait_core")
    return None if core is None else int(core.get_num_threads())


@contextlib.contextmanager
def _quiet(threads: int | None) -> Iterator[None]:
    """Switch the garbage collector off, and set the number of threads of operators."""
    was_on, before = gc.isenabled(), _threads()
    gc.disable()
    if threads is not None and before is not None:
        sys.modules["plait_core"].set_num_threads(threads)
    try:
        yield
    finally:
        if was_on:
            gc.enable()
        if threads is not None and before is not None:
            sys.modules["plait_core"].set_num_threads(before)


def seconds_text(seconds: float) -> str:
    """Return a time with a unit that suits it.

    Example:
        >>> from plait_profiler._timer import seconds_text
        >>> seconds_text(0.00123)
        '1.23 ms'
    """
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
