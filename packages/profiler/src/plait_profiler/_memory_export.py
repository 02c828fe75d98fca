"""Files with the memory by category over time, in PyTorch's formats."""

from __future__ import annotations

import gzip
import html
import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from plait_profiler._blocks import NEVER
from plait_profiler._memory import MemoryProfile, MemoryTimeline
from plait_profiler._recording import Category, Recording
from plait_profiler._tables import bytes_text, dropped_notes, time_text
from plait_profiler._tree import Array

# PyTorch's order of categories, with colours. It has one between the last two, AUTOGRAD_DETAIL.
_COLORS = {
    Category.PARAMETER: "#2e7d32",
    Category.OPTIMIZER_STATE: "#d4a017",
    Category.INPUT: "#333333",
    Category.TEMPORARY: "#9575cd",
    Category.ACTIVATION: "#e53935",
    Category.GRADIENT: "#1e50c8",
    Category.OTHER: "#9e9e9e",
}
_INDEX = {category: index for index, category in enumerate(_COLORS)} | {Category.OTHER: 7}
_PREEXISTING, _CREATE, _DESTROY = 0, 1, 3  # PyTorch's numbers of actions


def export_memory_timeline(
    recording: Recording, path: str | os.PathLike[str], device: str | int | None = None
) -> None:
    """Write the memory of each category over time.

    The end of the path determines the format, which is PyTorch's:

    - ``.html``: a picture, drawn as SVG in a page that needs nothing else;
    - ``.json``, ``.json.gz``: ``[times, sizes]``: microseconds, and for each a list of 0 and the
      bytes of parameters, optimizer state, inputs, temporaries, activations, gradients, autograd
      details (always 0), and others;
    - ``.raw.json.gz``: ``[time, action, bytes, category]`` for each change: nanoseconds, or -1 for
      what was there before; 0 for that, 1 for an allocation, 3 for a free; the category by its
      place in the list above, from 0.

    Args:
        recording: of a profile with ``profile_memory=True``.
        path: of the file.
        device: ``cpu``, ``cuda:0``; None takes all together.

    Raises:
        ValueError: for another end of the path, or if there is no such device.

    Example:
        >>> import json
        >>> import numpy as np
        >>> from plait_profiler._memory_export import export_memory_timeline
        >>> from plait_profiler._recording import ROW, Kind, Recording, Signature
        >>> rows = np.zeros(2, ROW)
        >>> rows["kind"] = Kind.ALLOC, Kind.FREE
        >>> rows["start"], rows["a"], rows["b"] = [1000, 5000], 64, 4096
        >>> recording = Recording(rows, [Signature("", Kind.ALLOC)])
        >>> export_memory_timeline(recording, "memory.json")
        >>> import pathlib
        >>> json.loads(pathlib.Path("memory.json").read_text())
        [[1, 5], [[0, 0, 0, 0, 0, 0, 0, 0, 64], [0, 0, 0, 0, 0, 0, 0, 0, 0]]]
    """
    name = os.fspath(path)
    if not name.endswith((".html", ".json", ".json.gz")):
        raise ValueError(
            f"export_memory_timeline: `path` must end with .html, .json, .json.gz or "
            f".raw.json.gz; got {name!r}"
        )
    memory = MemoryProfile(recording, device)
    if name.endswith(".html"):
        text = _page(recording, memory)
    else:
        raw = name.endswith(".raw.json.gz")
        text = json.dumps(_changes(memory) if raw else _sizes(memory.timeline))
    if name.endswith(".gz"):
        with gzip.open(path, "wt", compresslevel=6, encoding="utf-8") as file:
            file.write(text)
    else:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def _sizes(timeline: MemoryTimeline) -> list[Any]:
    sizes = np.zeros((len(timeline.times), 9), np.int64)
    for category, index in _INDEX.items():
        sizes[:, index + 1] = timeline.bytes[:, category]
    return [timeline.times.astype(np.int64).tolist(), sizes.tolist()]


def _changes(memory: MemoryProfile) -> list[list[int]]:
    blocks = memory.blocks
    index = np.array([_INDEX[category] for category in Category])[blocks.category]
    action = np.where(blocks.row >= 0, _CREATE, _PREEXISTING)
    rows = np.stack([np.where(blocks.row >= 0, blocks.begin, -1), action, blocks.size, index], 1)
    is_freed = blocks.end < NEVER
    size = -blocks.size[is_freed]
    freed = np.stack([blocks.end[is_freed], np.full(len(size), _DESTROY), size, index[is_freed]], 1)
    changes = np.concatenate([rows, freed])
    ordered: list[list[int]] = changes[np.argsort(changes[:, 0], kind="stable")].tolist()
    return ordered


_WIDTH, _HEIGHT, _LEFT, _TOP = 1100, 480, 80, 20


def _page(recording: Recording, memory: MemoryProfile) -> str:
    timeline = memory.timeline
    times, sizes = _thinned(timeline)
    begin = recording.begin / 1e3 or (float(times[0]) if len(times) else 0.0)
    last = max(recording.end / 1e3, float(times[-1]) if len(times) else 0.0, begin + 1e-3)
    times = np.append(times, last)
    reserved = [(time / 1e3, size) for time, size in recording.reserved]
    highest = max(memory.peak_bytes, max((size for _, size in reserved), default=0), 1)
    x = _LEFT + (times - begin) * (_WIDTH / (last - begin))
    parts = list(_areas(x, sizes, highest))
    parts += _axes(last - begin, highest)
    if reserved:
        xs = _LEFT + (np.array([t for t, _ in reserved]) - begin) * (_WIDTH / (last - begin))
        ys = [_y(size, highest) for _, size in reserved]
        path = " ".join(f"H{a:.1f} V{b:.1f}" for a, b in zip(xs, ys, strict=True))
        line = f"M{max(xs[0], _LEFT):.1f} {ys[0]:.1f} {path} H{_LEFT + _WIDTH}"
        parts.append(f'<path d="{line}" fill="none" stroke="#000" stroke-dasharray="4 3"/>')
    notes = [
        f"Peak: {bytes_text(memory.peak_bytes)} at {time_text(memory.peak_time - begin)}",
        *(["The dashed line is what the allocator had from the system."] if reserved else []),
        *dropped_notes(recording),
    ]
    legend = "".join(
        f'<span style="color:{color}">&#9632;</span> {category.name.lower().replace("_", " ")} '
        for category, color in _COLORS.items()
    )
    return (
        '<!DOCTYPE html><html><head><meta charset="utf-8"><title>Memory timeline</title>'
        "<style>body,text{font:13px sans-serif}</style></head><body>"
        f"<p>{'<br>'.join(map(html.escape, notes))}</p><p>{legend}</p>"
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH + _LEFT + 40}" '
        f'height="{_HEIGHT + _TOP + 50}">{"".join(parts)}</svg></body></html>'
    )


def _thinned(timeline: MemoryTimeline) -> tuple[Array, Array]:
    """Return the highest moment of each of at most 2000 parts of the time."""
    times, sizes = timeline.times, timeline.bytes
    if len(times) <= 2000:
        return times, sizes
    part = ((times - times[0]) * (1999 / (times[-1] - times[0]))).astype(np.int64)
    order = np.lexsort((sizes.sum(1), part))
    last = np.append(np.flatnonzero(np.diff(part[order])), len(order) - 1)
    choice = np.union1d(order[last], [len(times) - 1])
    return times[choice], sizes[choice]


def _y(size: float, highest: float) -> float:
    return _TOP + _HEIGHT * (1 - size / highest)


def _areas(x: Array, sizes: Array, highest: int) -> Iterator[str]:
    """Yield an area for each category, upon those before it."""
    floor = np.zeros(len(sizes))
    for category, color in _COLORS.items():
        top = floor + sizes[:, category]
        if (top > floor).any():
            there = [
                f"L{x[i]:.1f} {_y(top[i], highest):.1f} H{x[i + 1]:.1f}" for i in range(len(top))
            ]
            back = [
                f"L{x[i + 1]:.1f} {_y(floor[i], highest):.1f} H{x[i]:.1f}"
                for i in reversed(range(len(top)))
            ]
            path = "M" + " ".join(there + back)[1:] + "Z"
            title = category.name.lower().replace("_", " ")
            yield f'<path d="{path}" fill="{color}"><title>{title}</title></path>'
        floor = top


def _axes(duration: float, highest: int) -> Iterator[str]:
    bottom = _TOP + _HEIGHT
    yield (f'<path d="M{_LEFT} {_TOP} V{bottom} H{_LEFT + _WIDTH}" fill="none" stroke="#000"/>')
    for step in range(6):
        x, y = _LEFT + _WIDTH * step / 5, bottom - _HEIGHT * step / 5
        time, size = time_text(duration * step / 5), bytes_text(highest * step / 5)
        yield f'<text x="{x:.0f}" y="{bottom + 20}" text-anchor="middle">{time}</text>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.0f}" text-anchor="end">{size}</text>'
