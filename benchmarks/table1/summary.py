"""Statistics of measured times: medians, spreads, throughput, ratios."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from turns import Case, Record

__all__ = ["Summary", "by_case", "mean_ratio", "ratio", "summary", "throughput"]


@dataclass(frozen=True)
class Summary:
    """Statistics of several times: the median, and the quartiles as ``low`` and ``high``."""

    median: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """Half of the distance of the quartiles over the median."""
        return (self.high - self.low) / 2 / self.median


def summary(seconds: Sequence[float]) -> Summary:
    """Return median and quartiles; of fewer than four values the smallest and the largest.

    Raises:
        ValueError: without values.
    """
    if not seconds:
        raise ValueError("summary: seconds is empty, at least one time is required")
    if len(seconds) < 4:
        return Summary(statistics.median(seconds), min(seconds), max(seconds))
    low, middle, high = statistics.quantiles(seconds, n=4, method="inclusive")
    return Summary(middle, low, high)


def throughput(record: Record, items: int) -> float:
    """Return what a side did in a second: ``items`` in a sample, batch samples in a step."""
    return record.case.batch * items / summary(record.seconds).median


def ratio(one: Record, other: Record) -> float:
    """Return the median of the first one's times over that of the other's; NaN without times."""
    if not one.seconds or not other.seconds:
        return math.nan
    return summary(one.seconds).median / summary(other.seconds).median


def mean_ratio(ratios: Iterable[float]) -> float:
    """Return the geometric mean of the ratios that are there; NaN if there is none."""
    there = [value for value in ratios if not math.isnan(value)]
    return statistics.geometric_mean(there) if there else math.nan


def by_case(records: Iterable[Record], section: str) -> dict[Case, dict[str, Record]]:
    """Return the records of a section by case and side, in their order."""
    results: dict[Case, dict[str, Record]] = {}
    for record in records:
        if record.case.section == section:
            results.setdefault(record.case, {})[record.peer] = record
    return results
