"""The libraries that are compared, and how a piece of work is timed on the device."""

from __future__ import annotations

import dataclasses
import importlib
import statistics
import time
from collections.abc import Callable
from typing import Any

__all__ = ["Options", "Side", "in_turns", "sides", "timed"]


@dataclasses.dataclass(frozen=True)
class Options:
    """What the command line asks for.

    Attributes:
        device: the device's name, ``"cuda"``.
        small: sizes that the emulation of the driver can run.
        seconds: time that a part may take; in small sizes, that it may measure.
        limit: time after which tests and processes of a part are ended.
    """

    device: str
    small: bool
    seconds: float
    limit: float


@dataclasses.dataclass(frozen=True)
class Side:
    """A library with PyTorch's names."""

    name: str
    library: Any

    def synchronize(self) -> None:
        """Wait for the device."""
        self.library.cuda.synchronize()


def sides(options: Options) -> list[Side]:
    """Return plait, and PyTorch if it is installed with this device."""
    result = [Side("plait", importlib.import_module("plait"))]
    if not options.small:
        try:
            torch = importlib.import_module("torch")
        except (ImportError, OSError):  # not installed, or a library of it is missing
            return result
        if torch.cuda.is_available():
            result.append(Side("torch", torch))
    return result


def timed(side: Side, work: Callable[[], Any], count: int) -> float:
    """Return the seconds of one of ``count`` calls, the device's work included."""
    side.synchronize()
    begin = time.perf_counter()
    for _ in range(count):
        work()
    side.synchronize()
    return (time.perf_counter() - begin) / count


def in_turns(works: dict[Side, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """Return each side's median seconds for its work, measured in turns for about ``seconds``."""
    counts = {}
    for side, work in works.items():
        work()
        once = timed(side, work, 1)
        counts[side] = max(1, min(1000, int(0.05 / max(once, 1e-7))))
    times: dict[str, list[float]] = {side.name: [] for side in works}
    end = time.perf_counter() + seconds
    while len(times["plait"]) < 3 or (time.perf_counter() < end and len(times["plait"]) < 30):
        for side, work in works.items():
            times[side.name].append(timed(side, work, counts[side]))
    return {name: statistics.median(values) for name, values in times.items()}
