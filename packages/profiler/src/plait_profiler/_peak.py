"""Speeds of operators, compared with the peak of the machine."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import plait_abi
from plait_profiler._averages import EventAverage, key_averages
from plait_profiler._recording import Recording
from plait_profiler._tables import Column, Table, count_text, dropped_notes, percent, time_text


class Peak(NamedTuple):
    """The peak of a device: ``flops``, floating-point operations in a second, and ``bandwidth``,
    bytes in a second, read and written together.

    Example:
        >>> from plait_profiler import Peak
        >>> Peak(flops=2e12, bandwidth=1e11).flops
        2000000000000.0
    """

    flops: float
    bandwidth: float


def machine_peak(device: str = "cpu") -> Peak:
    """Measure what a device reaches: float32 operations of a large matrix product, and bytes of a
    large copy, each the best of several runs with the threads that operators use now.

    The first call for a device and a number of threads takes about a second; others return the
    same. Peaks of data sheets are higher; these are what a kernel can be expected to reach.

    Args:
        device: ``cpu``, ``cuda:1``.

    Raises:
        ImportError: if ``plait_core``, whose operators are measured, is not installed.

    Example:
        >>> from plait_profiler import machine_peak
        >>> peak = machine_peak()
        >>> peak.flops > 1e7, peak.bandwidth > 1e7
        (True, True)
    """
    return _measured(device, int(plait_abi.require("core").get_num_threads()))


@functools.cache
def _measured(device: str, threads: int) -> Peak:
    del threads  # it is a part of the cache's key
    core: Any = plait_abi.require("core")
    flops = 0.0
    for size in (512, 1024, 2048, 4096):
        x = core.ones(size, size, device=device)

        def product(x: Any = x) -> None:
            (x @ x)[0, 0].item()  # waits for the device

        took = _best_time(product)
        flops = max(flops, 2.0 * size**3 / took)
        if took > 0.05:
            break
    source = core.ones(1 << 25, device=device)  # 128 MiB, more than caches hold
    target = core.zeros(1 << 25, device=device)

    def copy() -> None:
        target.copy_(source)
        target[0].item()  # waits for the device

    return Peak(flops, 2.0 * 4 * (1 << 25) / _best_time(copy))


def _best_time(run: Callable[[], Any]) -> float:
    """Return the shortest time of a run, of as many as fit in a quarter of a second."""
    run()
    times: list[float] = []
    end = time.perf_counter() + 0.25
    while len(times) < 3 or time.perf_counter() < end:
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times)


def far_from_peak(recording: Recording, peak: Peak | None = None, *, device: str = "cpu") -> Table:
    """Return which operators lose most time against the peak of the machine.

    An operator needs at least the time of its operations at the peak's rate, and of its bytes at
    the peak's bandwidth; the longer of the two is its floor (the roofline model). Its share is the
    floor divided by its own time; its loss is the difference. Bytes are those of arguments and
    results: tensors that are in the processor's cache can be faster than the peak, and have shares
    above 1. Numbers other than float32 have other peaks.

    Args:
        recording: of a profile.
        peak: to compare with; None measures it, see `machine_peak`.
        device: for ``cpu`` operators that launched no work on accelerators are shown, with the
            host's time; for another one those that did, with the device's time.

    Returns:
        A table with ``key`` (the signature), ``count``, ``time`` and ``lost`` (microseconds),
        ``share``, ``bound`` (``compute`` or ``memory``, what the longer time is for),
        ``flop_rate`` and ``bandwidth`` (in a second). What loses most is first. Operators whose
        formulas are not known are missing, and so are composite ones, for those that they called.

    References:
        Williams, Waterman, Patterson: Roofline, Communications of the ACM 52(4), 2009.

    Example:
        >>> import numpy as np
        >>> from plait_profiler import Peak
        >>> from plait_profiler._peak import far_from_peak
        >>> from plait_profiler._recording import ROW, Kind, Recording, Signature
        >>> rows = np.zeros(1, ROW)
        >>> rows["kind"], rows["duration"] = Kind.OP, 1000
        >>> mm = Signature("mm", Kind.OP, operations=20_000, read=300, written=100)
        >>> row = far_from_peak(Recording(rows, [mm]), Peak(flops=1e11, bandwidth=1e10))[0]
        >>> row["key"], round(row["share"], 3), row["bound"], round(row["lost"], 3)
        ('mm', 0.2, 'compute', 0.8)
    """
    averages = [
        average
        for average in key_averages(recording, by="signature")
        if average.category == "operator"
        and (average.self_flops or average.self_bytes)
        and (average.device_time_total > 0) == (device.partition(":")[0] != "cpu")
    ]
    if averages and peak is None:
        peak = machine_peak(device)
    rows = [_row(average, peak) for average in averages if peak is not None]
    rows.sort(key=lambda row: -row["lost"])

    def in_billions(value: float) -> str:
        return count_text(value / 1e9)

    columns = [
        Column("key", "Operator", left=True, width=80),
        Column("count", "# of Calls"),
        Column("time", "Time", time_text),
        Column("lost", "Lost", time_text),
        Column("share", "% of peak", percent),
        Column("bound", "Bound", left=True),
        Column("flop_rate", "GFLOP/s", in_billions),
        Column("bandwidth", "GB/s", in_billions),
    ]
    notes = dropped_notes(recording)
    if peak is not None:
        text = f"{in_billions(peak.flops)} GFLOP/s, {in_billions(peak.bandwidth)} GB/s"
        notes.insert(0, f"Peak of {device}: {text}")
    return Table(columns, rows, title="Operators far from the machine's peak", notes=notes)


def _row(average: EventAverage, peak: Peak) -> dict[str, Any]:
    time_ = average.device_time_total or average.cpu_time_total
    compute, memory = 1e6 * average.flops / peak.flops, 1e6 * average.bytes / peak.bandwidth
    least = max(compute, memory)
    return {
        "key": average.key,
        "count": average.count,
        "time": time_,
        "lost": time_ - least,
        "share": least / time_ if time_ else 0.0,
        "bound": "compute" if compute >= memory else "memory",
        "flop_rate": average.flop_rate,
        "bandwidth": average.bandwidth,
    }
