"""Two profiles side by side: what became slower, faster, more or less often."""

from __future__ import annotations

from typing import Any

from plait_profiler._averages import EventAverage, key_averages
from plait_profiler._recorded import Recorded
from plait_profiler._recording import Recording
from plait_profiler._sums import BY
from plait_profiler._tables import Column, Table, dropped_notes, time_text

METRICS = ("self_cpu_time_total", "cpu_time_total", "self_device_time_total", "device_time_total")


def compare(
    a: Recorded | Recording,
    b: Recorded | Recording,
    *,
    by: str = "name",
    metric: str = "self_cpu_time_total",
) -> Table:
    """Return what changed from one recording to another, the largest change first.

    A change has two parts, whose sum it is: that of the number of events, at the speed that they
    had in `a`, and that of the speed, for the number of events in `b`. The column ``what`` names
    the larger one: ``slower``, ``faster``, ``more often``, ``less often``; or ``new`` and ``gone``
    for what only one of the two has.

    Args:
        a, b: profiles, or what `load` read, before and after, of the same number of steps.
        by: ``name``, ``signature``, ``module`` or ``line``, as for `key_averages`.
        metric: which time to compare: ``self_cpu_time_total``, ``cpu_time_total``,
            ``self_device_time_total`` or ``device_time_total``. The times without those of nested
            events add up to the whole change.

    Returns:
        A table with ``key``, ``what``, ``change``, ``by_count``, ``by_speed``, ``time_a``,
        ``time_b``, ``count_a`` and ``count_b``; times in microseconds.

    Raises:
        TypeError: if `a` or `b` is no profile.
        ValueError: if `by` or `metric` is none of these.

    Example:
        >>> from plait_profiler import compare, profile, record_function
        >>> profiles = []
        >>> for times in (1, 50):
        ...     with profile() as prof:
        ...         for _ in range(times):
        ...             with record_function("work"):
        ...                 total = sum(range(1000))
        ...     profiles.append(prof)
        >>> row = compare(*profiles)[0]
        >>> row["key"], row["count_a"], row["count_b"]
        ('work', 1, 50)
    """
    if metric not in METRICS:
        raise ValueError(f"compare: `metric` must be one of {', '.join(METRICS)}; got {metric!r}")
    if by not in BY:
        raise ValueError(f"compare: `by` must be one of {', '.join(BY)}; got {by!r}")
    first, second = _recording_of(a, "a"), _recording_of(b, "b")
    before, after = _by_key(first, by), _by_key(second, by)
    rows = [
        _row(key[0], before.get(key), after.get(key), metric)
        for key in dict.fromkeys([*before, *after])
    ]
    rows.sort(key=lambda row: -abs(row["change"]))
    whole = sum(row["change"] for row in rows) if metric.startswith("self") else None
    columns = [
        Column("key", by.capitalize(), left=True, width=70),
        Column("what", "What", left=True),
        Column("change", "Change", _signed),
        Column("by_count", "By count", _signed),
        Column("by_speed", "By speed", _signed),
        Column("time_a", "Time A", time_text),
        Column("time_b", "Time B", time_text),
        Column("count_a", "Calls A"),
        Column("count_b", "Calls B"),
    ]
    notes = [] if whole is None else [f"All changes together: {_signed(whole)}"]
    for name, recording in (("A", first), ("B", second)):
        notes += [f"{name}: {note}" for note in dropped_notes(recording)]
    return Table(columns, rows, title=f"{metric}, B minus A", notes=notes)


def _recording_of(source: Any, argument: str) -> Recording:
    if isinstance(source, Recording):
        return source
    if not isinstance(source, Recorded):
        kind = type(source).__name__
        raise TypeError(f"compare: `{argument}` must be a profile or a Recording; got {kind}")
    return source.recording()


def _by_key(recording: Recording, by: str) -> dict[tuple[str, str], EventAverage]:
    return {(a.key, a.category): a for a in key_averages(recording, by=by)}


def _row(
    key: str, before: EventAverage | None, after: EventAverage | None, metric: str
) -> dict[str, Any]:
    time_a, time_b = (getattr(x, metric) if x else 0.0 for x in (before, after))
    count_a, count_b = (x.count if x else 0 for x in (before, after))
    change = time_b - time_a
    if before is None or after is None:
        by_count, label = change, "new" if before is None else "gone"
    else:
        by_count = (count_b - count_a) * time_a / count_a if count_a else 0.0
        label = _describe(change, by_count, change - by_count)
    return {
        "key": key,
        "what": label,
        "change": change,
        "by_count": by_count,
        "by_speed": change - by_count,
        "time_a": time_a,
        "time_b": time_b,
        "count_a": count_a,
        "count_b": count_b,
    }


def _describe(change: float, by_count: float, by_speed: float) -> str:
    if not by_count and not by_speed:
        return ""
    if abs(by_count) > abs(by_speed):
        return "more often" if by_count > 0 else "less often"
    return "slower" if by_speed > 0 else "faster"


def _signed(microseconds: float) -> str:
    return ("+" if microseconds > 0 else "") + time_text(microseconds)
