"""A recording as one HTML file: timeline, averages and memory, without a server or a network.

The sources of the page are in the folder `page`. Columns go into it as bytes, deflated, as base64.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
import zlib
from importlib import resources
from typing import Any

import numpy as np

from plait_profiler._blocks import memory_changes
from plait_profiler._recording import Category, Kind, Recording
from plait_profiler._tracks import Track, backward_arrows, launch_arrows, tracks
from plait_profiler._tree import Array

SCRIPTS = ("columns", "format", "profile", "timeline", "memory", "tables", "start")


def export_html(
    recording: Recording, path: str | os.PathLike[str], *, title: str = "plait profile"
) -> None:
    """Write a page that any browser of 2023 or later opens, also without a network.

    It has a timeline of threads and devices with arrows from the forward pass to the backward
    pass, averages by name, and the memory of storages over time.

    Args:
        recording: what a profile recorded.
        path: of the file, by convention with the ending ``.html``.
        title: is shown above the timeline.

    Example:
        >>> import pathlib, tempfile
        >>> from plait_profiler._recording import ROW, Recording, Signature
        >>> rows = np.zeros(1, ROW)
        >>> rows["start"], rows["duration"], rows["kind"] = 1000, 2500, Kind.RANGE
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "profile.html")
        ...     export_html(Recording(rows, [Signature("work", Kind.RANGE)]), path, title="A & B")
        ...     page = path.read_text("utf-8")
        >>> "<title>A &amp; B</title>" in page
        True
    """
    columns = _Columns()
    facts = _facts(recording, columns)
    facts["columns"] = columns.described
    data = base64.b64encode(zlib.compress(b"".join(columns.parts), 1)).decode("ascii")
    folder = resources.files("plait_profiler") / "page"
    texts = {
        "title": html.escape(title),
        "style": (folder / "page.css").read_text("utf-8"),
        "script": "\n".join((folder / f"{name}.js").read_text("utf-8") for name in SCRIPTS),
        # Text of a script element ends at "</script", whatever is around it.
        "facts": json.dumps(facts, ensure_ascii=False).replace("<", "\\u003c"),
        "columns": data,
    }
    page = (folder / "page.html").read_text("utf-8")
    whole = re.sub(r"\{\{(\w+)\}\}", lambda match: texts[match[1]], page)
    with open(path, "w", encoding="utf-8", errors="replace") as file:
        file.write(whole)


class _Columns:
    """Numbers for the page: of each column all lowest bytes, then all second ones, and so on.

    Attributes:
        described: by name, how many numbers and how many bytes each has.
        parts: the bytes.
    """

    def __init__(self) -> None:
        self.described: dict[str, dict[str, int]] = {}
        self.parts: list[bytes] = []

    def add(self, name: str, values: Array) -> None:
        """Add unsigned numbers, in as many bytes as the largest one needs."""
        largest = int(values.max()) if len(values) else 0
        width = -(-largest.bit_length() // 8)
        octets = np.ascontiguousarray(values, "<u8").view(np.uint8).reshape(-1, 8)
        self.parts.append(octets[:, :width].T.tobytes())
        self.described[name] = {"count": len(values), "bytes": width}


def _facts(recording: Recording, columns: _Columns) -> dict[str, Any]:
    """Add columns, and return the other data of the page, which become JSON."""
    tracks_shown = tracks(recording)
    order = np.concatenate([np.zeros(0, np.int64), *[track.rows for track in tracks_shown]])
    rows = recording.rows[order]
    starts = recording.rows["start"]
    begin = min([recording.begin, *starts.min(keepdims=True).tolist()]) if len(starts) else 0
    _add_events(recording, columns, tracks_shown, rows, begin)
    _add_arrows(recording, columns, order)
    end = max(recording.end, int((rows["start"] + rows["duration"]).max(initial=0)), begin)
    return {
        "unixTime": begin + recording.clock,
        "length": end - begin,
        "tracks": [
            {"name": t.name, "process": t.process, "device": t.device != 0, "count": len(t.rows)}
            for t in tracks_shown
        ],
        "kinds": {kind.bit_length(): kind.name.lower() for kind in Kind},
        "signatures": [
            {
                "name": s.name,
                "kind": Kind(s.kind).bit_length(),
                "inputs": _inputs(s.inputs) if s.kind == Kind.OP else "",
            }
            for s in recording.signatures
        ],
        "contexts": [
            {
                "module": f"{c.module} ({c.module_type})" if c.module else "",
                "stack": [f"{file}:{line} {function}" for file, line, function in c.stack],
            }
            for c in recording.contexts
        ],
        "dropped": {kind.name.lower(): count for kind, count in recording.dropped.items() if count},
        **_memory(recording, columns, begin),
    }


def _add_events(
    recording: Recording, columns: _Columns, track_list: list[Track], rows: Array, begin: int
) -> None:
    """Add the columns of the events, track by track."""
    start = rows["start"] - np.uint64(begin)
    gaps = np.diff(start, prepend=np.zeros(1, np.uint64))
    firsts = np.cumsum([0, *[len(track.rows) for track in track_list]])[:-1]
    firsts = firsts[firsts < len(gaps)]
    gaps[firsts] = start[firsts]  # a track's first time is from the begin
    columns.add("gap", gaps)
    columns.add("duration", rows["duration"])
    columns.add("depth", np.where(rows["kind"] == Kind.DEVICE, 0, rows["depth"]))
    columns.add("signature", rows["signature"])
    columns.add("context", rows["context"])
    bits = np.zeros(2 * max(Kind), np.uint8)
    bits[list(Kind)] = [kind.bit_length() for kind in Kind]
    columns.add("kind", bits[rows["kind"]])
    columns.add("failed", rows["status"] < 0)


def _add_arrows(recording: Recording, columns: _Columns, order: Array) -> None:
    """Add pairs of events, numbered as the page has them."""
    place = np.zeros(len(recording.rows), np.int64)
    place[order] = np.arange(len(order))
    for name, (sources, targets) in (
        ("backward", backward_arrows(recording)),
        ("launch", launch_arrows(recording)),
    ):
        columns.add(f"{name}From", place[sources])
        columns.add(f"{name}To", place[targets])


def _inputs(inputs: tuple[Any, ...]) -> str:
    return ", ".join(_text_of(value) for value in inputs)


def _text_of(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_text_of(item) for item in value) + "]"
    if isinstance(value, tuple) and len(value) == 3 and isinstance(value[0], str):
        dtype, shape, strides = value
        size = "×".join(map(str, shape)) or "scalar"
        return f"{dtype} {size}" + ("" if strides is None else f" strides {list(strides)}")
    return repr(value)


def _memory(recording: Recording, columns: _Columns, begin: int) -> dict[str, Any]:
    """Add the changes of memory; return the names of categories and what was reserved."""
    changes = memory_changes(recording)
    columns.add("memoryGap", np.diff(changes.time, prepend=begin))
    columns.add("memoryBytes", np.abs(changes.change))
    columns.add("memoryFreed", changes.change < 0)
    columns.add("memoryCategory", changes.category)
    return {
        "categories": [category.name.lower().replace("_", " ") for category in Category],
        "marked": bool((recording.rows["kind"] == Kind.MARK).any()),
        "reserved": [[max(0, time - begin), size] for time, size in recording.reserved],
    }
