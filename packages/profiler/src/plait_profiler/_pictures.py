"""Pictures of a recording for papers and reports, made with Matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from plait_profiler._memory import MemoryTimeline, memory_timeline
from plait_profiler._recording import Category, Kind, Recording
from plait_profiler._tracks import Track, tracks
from plait_profiler._tree import Array

POINTS = 2000
"""More points than this one cannot see in a picture."""

SHORTEST = 1 / 2000
"""Events of less than this share of the picture's width are joined with those beside them."""

GREY = "#cdd3dc"
COLOURS = (
    *("#8fb4e8", "#f2b48a", "#93d0a5", "#d9a3c7", "#e3cf82", "#a8a2e0"),
    *("#86cdd0", "#ea9a9a", "#b5cf7d", "#c9ab8c"),
)
MEMORY_COLOURS = {
    Category.PARAMETER: "#6f94d6",
    Category.GRADIENT: "#a383d1",
    Category.OPTIMIZER_STATE: "#cf85b8",
    Category.INPUT: "#6dbb9c",
    Category.OTHER: "#a7adb8",
    Category.ACTIVATION: "#e3a569",
    Category.TEMPORARY: "#dccb6a",
}


def timeline_figure(
    recording: Recording, *, first_step: int = 0, steps: int = 3, width: float = 10.0
) -> Any:
    """Return a Matplotlib figure of a few steps: a band for each thread and each device.

    Args:
        recording: what a profile recorded.
        first_step: the first step of the picture, counted from 0.
        steps: how many there are. A recording without steps is shown from begin to end.
        width: of the figure, in inches; the height follows from the number of bands.

    Raises:
        ImportError: if Matplotlib is not installed.
        ValueError: if the recording has no event in these steps.

    Example:
        >>> from plait_profiler import profile, timeline_figure
        >>> with profile() as prof:
        ...     pass
        >>> timeline_figure(prof.recording()).savefig("timeline.pdf")  # doctest: +SKIP
    """
    new_figure = _figure_class("timeline_figure")
    begin, end = _borders(recording, first_step, steps)
    visible = [(track, _within(recording, track, begin, end)) for track in tracks(recording)]
    visible = [(track, rows) for track, rows in visible if len(rows)]
    if not visible:
        raise ValueError(
            f"timeline_figure: the recording has no events in {steps} steps from {first_step}"
        )
    depths = [_depths(recording, rows) for _, rows in visible]
    heights = [int(depth.max()) + 1 for depth in depths]
    lanes = sum(heights) + len(visible)
    figure = new_figure(figsize=(width, 0.9 + 0.2 * lanes), layout="constrained")
    axes = figure.add_subplot()
    unit, name = _time_unit(end - begin)
    axes.set(xlim=(0, (end - begin) / unit), ylim=(lanes, 0), xlabel=f"time ({name})")
    top, ticks = 0.0, []
    for (_, rows), depth, height in zip(visible, depths, heights, strict=True):
        _draw_band(axes, recording, rows, depth, top, begin, end, unit)
        ticks.append(top + height / 2)
        top += height + 1
    several = len({track.process for track, _ in visible}) > 1
    labels = [f"{t.name}\nprocess {t.process}" if several else t.name for t, _ in visible]
    axes.set_yticks(ticks, labels)
    axes.tick_params(axis="y", length=0)
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    return figure


def memory_figure(recording: Recording, *, width: float = 10.0, height: float = 4.0) -> Any:
    """Return a Matplotlib figure of the bytes of storages over time, stacked by category.

    A dashed line shows what the allocator had from the system, if that was recorded.

    Args:
        recording: what a profile recorded with ``profile_memory=True``.
        width: of the figure, in inches.
        height: of the figure, in inches.

    Raises:
        ImportError: if Matplotlib is not installed.
        ValueError: if the recording has no allocations.

    Example:
        >>> from plait_profiler import memory_figure, profile
        >>> with profile(profile_memory=True) as prof:
        ...     pass
        >>> memory_figure(prof.recording()).savefig("memory.pdf")  # doctest: +SKIP
    """
    new_figure = _figure_class("memory_figure")
    timeline = memory_timeline(recording)
    if not len(timeline.times):
        raise ValueError("memory_figure: the recording has no allocations")
    begin = min(recording.begin, int(timeline.times[0] * 1e3))
    end = max(recording.end, int(timeline.times[-1] * 1e3), begin + 1)
    edges = np.linspace(0, end - begin, POINTS)
    nbytes = _stacked(timeline, begin, edges)
    used = [c for c in MEMORY_COLOURS if nbytes[c].any()]
    unit, name = _time_unit(end - begin)
    most = max([nbytes.sum(axis=0).max(), *[size for _, size in recording.reserved]])
    size, size_name = _size_unit(float(most))
    figure = new_figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.stackplot(
        edges / unit,
        [nbytes[category] / size for category in used],
        colors=[MEMORY_COLOURS[category] for category in used],
        labels=[category.name.lower().replace("_", " ") for category in used],
        step="post",
        linewidth=0,
    )
    if len(recording.reserved):
        times, sizes = np.array([*recording.reserved, (end, recording.reserved[-1][1])]).T
        line = {"linestyle": "--", "color": "#4a5260", "where": "post", "label": "reserved"}
        axes.step((times - begin) / unit, sizes / size, **line)
    axes.set(xlim=(0, (end - begin) / unit), xlabel=f"time ({name})")
    axes.set(ylim=(0, None), ylabel=f"memory ({size_name})")
    for side in ("right", "top"):
        axes.spines[side].set_visible(False)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside right upper", frameon=False)
    return figure


def _figure_class(function: str) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            f"{function}: Matplotlib is not installed; `pip install matplotlib` brings it"
        ) from error
    return Figure


def _borders(recording: Recording, first_step: int, steps: int) -> tuple[int, int]:
    """Return the times between which the steps are."""
    rows = recording.rows
    choice = rows[rows["kind"] == Kind.STEP]
    if not len(choice):
        if not len(rows):
            return 0, 1
        ends = [
            int((rows["start"][t.rows] + rows["duration"][t.rows]).max()) for t in tracks(recording)
        ]
        begin = int(rows["start"].min())
        return begin, max([begin + 1, *ends])
    first = choice["process"] == choice["process"][0]
    choice = np.sort(choice[first], order="start")[first_step : first_step + steps]
    if not len(choice):
        return 0, 0
    return int(choice["start"][0]), int(choice["start"][-1] + choice["duration"][-1])


def _within(recording: Recording, track: Track, begin: int, end: int) -> Array:
    rows = recording.rows[track.rows]
    visible = (rows["start"] < end) & (rows["start"] + rows["duration"] > begin)
    return np.asarray(track.rows[visible])


def _depths(recording: Recording, rows: Array) -> Array:
    """Return the rows' depths; work on a device has none."""
    columns = recording.rows[rows]
    return np.where(columns["kind"] == Kind.DEVICE, 0, columns["depth"]).astype(np.int64)


def _draw_band(
    axes: Any,
    recording: Recording,
    rows: Array,
    depth: Array,
    top: float,
    begin: int,
    end: int,
    unit: float,
) -> None:
    from matplotlib.collections import PolyCollection

    columns = recording.rows[rows]
    left = np.maximum(columns["start"].astype(np.int64) - begin, 0)
    right = (columns["start"] + columns["duration"]).astype(np.int64) - begin
    right = np.minimum(right, end - begin)
    names = [recording.signatures[number].name for number in columns["signature"].tolist()]
    places = {
        name: number for number, name in enumerate(sorted({s.name for s in recording.signatures}))
    }
    grey = (columns["kind"] & (Kind.RANGE | Kind.STEP | Kind.BACKWARD)) != 0
    visible = _visible(left, right, depth, (end - begin) * SHORTEST)
    boxes, colours = [], []
    for at in visible.tolist():
        x0, x1, y = left[at] / unit, right[at] / unit, top + depth[at]
        x1 = max(x1, x0 + (end - begin) * SHORTEST / unit)
        boxes.append([(x0, y + 0.06), (x1, y + 0.06), (x1, y + 0.94), (x0, y + 0.94)])
        colours.append(GREY if grey[at] else COLOURS[places[names[at]] % len(COLOURS)])
        room = int(130 * (right[at] - left[at]) / (end - begin))  # letters that fit
        if room >= 3:
            text = names[at] if len(names[at]) <= room else names[at][: room - 1] + "…"
            place = {"ha": "center", "va": "center", "fontsize": 7, "clip_on": True}
            axes.text((x0 + x1) / 2, y + 0.5, text, **place)
    axes.add_collection(PolyCollection(boxes, facecolors=colours, edgecolors="none"))


def _visible(left: Array, right: Array, depth: Array, least: float) -> Array:
    """Return which events to draw: of short ones within one place, the first."""
    place = np.where(
        right - left < least, (left // least).astype(np.int64), -1 - np.arange(len(left))
    )
    _, first = np.unique(np.stack([depth, place]), axis=1, return_index=True)
    return np.sort(first)


def _stacked(timeline: MemoryTimeline, begin: int, edges: Array) -> Array:
    """Return for each category and edge the bytes that are held when most are, until the next."""
    time = timeline.times * 1e3 - begin
    sizes: Array = np.concatenate([np.zeros((1, len(Category)), np.int64), timeline.bytes])
    total = sizes.sum(1)
    first = np.searchsorted(time, edges, "right")
    last = np.append(first[1:], len(time))
    at = [a + int(np.argmax(total[a : b + 1])) for a, b in zip(first, last, strict=True)]
    return np.asarray(sizes[at].T, np.float64)


def _time_unit(nanoseconds: int) -> tuple[float, str]:
    for size, name in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if nanoseconds >= size:
            return size, name
    return 1.0, "ns"


def _size_unit(size: float) -> tuple[float, str]:
    for power, name in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 2**power:
            return float(2**power), name
    return 1.0, "B"
