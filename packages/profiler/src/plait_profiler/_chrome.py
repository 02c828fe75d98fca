"""Recordings in Chrome's trace format: chrome://tracing and Perfetto show them.

The lines have the names that PyTorch's traces have. They are made a column at a time: what depends
on a signature or a context is made once each, numbers are padded with spaces to one width.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO

import numpy as np

from plait_profiler._blocks import held_bytes
from plait_profiler._device_queue import queue_depths
from plait_profiler._recording import Kind, Recording
from plait_profiler._row_bytes import chunks, decimals, fields, interleaved, microseconds
from plait_profiler._tracks import (
    Track,
    backward_arrows,
    device_name,
    launch_arrows,
    queue_times,
    tracks,
)
from plait_profiler._tree import Array

CATEGORIES = {
    Kind.OP: "cpu_op",
    Kind.BACKWARD: "backward",
    Kind.RANGE: "user_annotation",
    Kind.NODE: "autograd_node",
    Kind.COLLECTIVE: "collective",
    Kind.DATA: "data",
    Kind.STEP: "user_annotation",
    Kind.DEVICE: "kernel",
}
_KIND_NUMBER = np.zeros(2 * max(Kind), np.int64)
_KIND_NUMBER[list(CATEGORIES)] = np.arange(len(CATEGORIES))

QUARTER = 90 * 24 * 3600 * 10**9
"""Times are written from a multiple of this one. They are the same for files of one quarter of a
year, so that they can be merged, and small enough for a double to tell a nanosecond."""

SORT = 10**6


def export_chrome_trace(
    recording: Recording, path: str | os.PathLike[str], *, metadata: Mapping[str, Any] | None = None
) -> None:
    """Write a file for chrome://tracing and Perfetto.

    Each thread has a line, each stream of a device too. The memory that storages take and the
    depth of a device's queue are counters. Arrows go from the calls of the forward pass to the
    nodes of the backward pass, and from calls to their work on a device. Times ``ts`` and ``dur``
    are in microseconds; ``ts`` is from ``baseTimeNanoseconds``, which is Unix time.

    Args:
        recording: what a profile recorded.
        path: of the file; it is compressed if this ends in ``.gz``.
        metadata: further members of the file's JSON object.

    Example:
        >>> import pathlib, tempfile
        >>> from plait_profiler._recording import ROW, Recording, Signature
        >>> rows = np.zeros(1, ROW)
        >>> rows["start"], rows["duration"], rows["kind"] = 1000, 2500, Kind.RANGE
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "trace.json")
        ...     export_chrome_trace(Recording(rows, [Signature("work", Kind.RANGE)]), path)
        ...     trace = json.loads(path.read_text())
        >>> [(e["name"], e["dur"]) for e in trace["traceEvents"] if e["ph"] == "X"]
        [('work', 2.5)]
    """
    name = os.fspath(path)
    if name.endswith(".gz"):
        with gzip.open(name, "wb", compresslevel=1) as file:
            _write(recording, file, metadata or {})  # type: ignore[arg-type]  # it writes bytes too
    else:
        with open(name, "wb") as file:
            _write(recording, file, metadata or {})


def _write(recording: Recording, file: BinaryIO, metadata: Mapping[str, Any]) -> None:
    base = (recording.begin + recording.clock) // QUARTER * QUARTER
    lanes = _Lanes(recording, tracks(recording))
    own = {"schemaVersion": 1, "displayTimeUnit": "ms", "baseTimeNanoseconds": base}
    header = {name: value for name, value in metadata.items() if name != "traceEvents"} | own
    file.write(json.dumps(header)[:-1].encode() + b',"traceEvents":[\n')
    file.write(lanes.labels())
    offset = np.uint64((recording.clock - base) % 2**64)
    _write_spans(recording, lanes, offset, file)
    for pair, kind in ((backward_arrows(recording), "fwdbwd"), (launch_arrows(recording), "ac2g")):
        _write_arrows(recording, lanes, offset, file, pair, kind)
    _write_memory(recording, offset, file)
    for (process, device), series in queue_depths(recording).items():
        _write_counter(file, process, f"{device_name(device)} queue", "depth", offset, series)
    # The last line is without a comma behind it.
    end = microseconds(np.array([recording.end], np.uint64) + offset).tobytes()
    file.write(b'{"ph":"i","s":"g","name":"Record Window End","pid":0,"tid":0,"ts":%s}\n]}\n' % end)


class _Lanes:
    """The process and thread numbers that the file has for each row."""

    def __init__(self, recording: Recording, track_list: list[Track]) -> None:
        self.tracks = track_list
        self.of_row = np.zeros(len(recording.rows), np.int32)
        self.texts = []
        self._labels: list[dict[str, Any]] = []
        processes: dict[tuple[int, int], int] = {}
        threads: dict[int, int] = {}
        for number, track in enumerate(track_list):
            self.of_row[track.rows] = number
            group = (track.process, track.device)
            if group not in processes:
                processes[group] = self._new_process(processes, *group)
            pid = processes[group]
            # A number that no thread has: those of Linux are below 2**22.
            tid = track.thread or (1 << 22) + threads.setdefault(pid, 0)
            threads[pid] = threads.get(pid, 0) + (not track.thread)
            self._label("thread_name", pid, tid, name=track.name)
            self._label("thread_sort_index", pid, tid, sort_index=number)
            self.texts.append(b'"pid":%d,"tid":%d,' % (pid, tid))

    def _new_process(self, numbers: dict[tuple[int, int], int], process: int, device: int) -> int:
        """Return the number of a process, or one for its part of a device, and label it."""
        if device:
            pid = (1 << 22) + len(numbers)
            name, order = f"{device_name(device)} (process {process})", SORT + len(numbers)
        else:
            pid, name, order = process, f"process {process}", len(numbers)
        self._label("process_name", pid, 0, name=name)
        self._label("process_sort_index", pid, 0, sort_index=order)
        return pid

    def _label(self, label: str, pid: int, tid: int, **args: Any) -> None:
        self._labels.append({"ph": "M", "name": label, "pid": pid, "tid": tid, "args": args})

    def labels(self) -> bytes:
        return b"".join(json.dumps(label).encode() + b",\n" for label in self._labels)

    def text(self, rows: Array) -> list[bytes]:
        return list(map(self.texts.__getitem__, self.of_row[rows].tolist()))


def _write_spans(recording: Recording, lanes: _Lanes, offset: np.uint64, file: BinaryIO) -> None:
    begins = _begins(recording)
    places = _texts(
        _context_arguments(context) + failed
        for context in recording.contexts
        for failed in (b"", b'"Failed":true,')
    )
    for track, lane in zip(lanes.tracks, lanes.texts, strict=True):
        for at in chunks(track.rows):
            rows = recording.rows[at]
            pieces = [
                begins[_KIND_NUMBER[rows["kind"]], rows["signature"]].tolist(),
                places[2 * rows["context"].astype(np.int64) + (rows["status"] < 0)].tolist(),
            ]
            launches = (rows["kind"] & (Kind.OP | Kind.DEVICE)) != 0
            nodes = (rows["kind"] & (Kind.OP | Kind.DEVICE | Kind.NODE)) != 0
            for name, numbers, has_one in (
                (b'"External id":', rows["a"], launches),
                (b'"Sequence number":', rows["link"], nodes),
            ):
                mask = has_one & (numbers != 0)
                if mask.any():
                    digits = decimals(np.where(mask, numbers, np.uint64(0)))
                    pieces.append(fields(name, digits, b",", shown=mask))
            queued = np.where(rows["kind"] == Kind.DEVICE, queue_times(rows), np.uint64(0))
            if queued.any():
                digits = microseconds(queued)
                pieces.append(fields(b'"queue time (us)":', digits, b",", shown=queued != 0))
            end = fields(
                b'"Ev Idx":',
                decimals(at),
                b"}," + lane + b'"ts":',
                microseconds(rows["start"] + offset),
                b',"dur":',
                microseconds(rows["duration"]),
                b"},\n",
            )
            file.write(interleaved(*pieces, end))


def _texts(texts: Iterable[bytes]) -> Array:
    """Return texts as an array of objects, of which rows are taken faster than from a list."""
    items = list(texts)
    table = np.empty(len(items), object)
    table[:] = items
    return table


def _begins(recording: Recording) -> Array:
    """Return the begins of lines, up to the first arguments, by kind and signature."""
    names = [json.dumps(signature.name).encode() for signature in recording.signatures]
    arguments = [_signature_arguments(signature) for signature in recording.signatures]
    begins = np.empty((len(CATEGORIES), len(names)), object)
    for number, category in enumerate(CATEGORIES.values()):
        begin = b'{"ph":"X","cat":"%s","name":' % category.encode()
        middle = b',"args":{'
        parts = zip(names, arguments, strict=True)
        begins[number] = _texts(begin + name + middle + rest for name, rest in parts)
    return begins


def _signature_arguments(signature: Any) -> bytes:
    if signature.kind != Kind.OP:
        return b""
    inputs = signature.inputs
    arguments: dict[str, Any] = {}
    if inputs:
        arguments["Input Dims"] = signature.shapes
        arguments["Input type"] = [_type_of(value) for value in inputs]
    if any(_is_tensor(value) and value[2] is not None for value in inputs):
        arguments["Input Strides"] = [_strides_of(value) for value in inputs]
    if any(_text_of(value) for value in inputs):
        arguments["Concrete Inputs"] = [_text_of(value) for value in inputs]
    if signature.operations:
        arguments["flops"] = signature.operations
    return _members(arguments)


def _context_arguments(context: Any) -> bytes:
    arguments: dict[str, Any] = {}
    if context.module:
        arguments["Module Hierarchy"] = f"{context.module} ({context.module_type})"
    if context.stack:
        lines = [f"{file}({line}): {function}" for file, line, function in context.stack]
        arguments["Call stack"] = ";\n".join(lines)
    return _members(arguments)


def _members(arguments: dict[str, Any]) -> bytes:
    """Return members of a JSON object that has others behind them."""
    text = json.dumps(arguments, separators=(",", ":"))[1:-1]
    return text.encode() + b"," if text else b""


def _is_tensor(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 3 and isinstance(value[0], str)


def _type_of(value: Any) -> str:
    if _is_tensor(value):
        return str(value[0])
    return "TensorList" if isinstance(value, list) else "" if value is None else "Scalar"


def _strides_of(value: Any) -> list[Any]:
    if isinstance(value, list):
        return [_strides_of(item) for item in value]
    if not _is_tensor(value):
        return []
    _, shape, strides = value
    return list(strides) if strides is not None else _dense(shape)


def _dense(shape: tuple[int, ...]) -> list[int]:
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * max(1, shape[axis + 1])
    return strides


def _text_of(value: Any) -> str:
    return "" if value is None or isinstance(value, list) or _is_tensor(value) else repr(value)


def _write_arrows(
    recording: Recording,
    lanes: _Lanes,
    offset: np.uint64,
    file: BinaryIO,
    pair: tuple[Array, Array],
    name: str,
) -> None:
    sources, targets = pair
    start = f'{{"ph":"s","cat":"{name}","name":"{name}",'.encode()
    finish = f'{{"ph":"f","bp":"e","cat":"{name}","name":"{name}",'.encode()
    for at in chunks(np.arange(len(sources))):
        pieces: list[list[bytes]] = []
        for ends, begin in ((sources[at], start), (targets[at], finish)):
            times = microseconds(recording.rows["start"][ends] + offset)
            numbers = fields(b'"ts":', times, b',"id":', decimals(at + 1), b"},\n")
            pieces += [[begin] * len(at), lanes.text(ends), numbers]
        file.write(interleaved(*pieces))


def _write_memory(recording: Recording, offset: np.uint64, file: BinaryIO) -> None:
    """Write a counter of the bytes held on each device, and of those taken from the system."""
    for (process, device), series in held_bytes(recording).items():
        _write_counter(file, process, f"{device_name(device)} memory", "bytes", offset, series)
    if len(recording.reserved):
        process = int(recording.rows["process"][0]) if len(recording.rows) else 0
        times, sizes = np.array(recording.reserved, np.uint64).T
        _write_counter(file, process, "reserved memory", "bytes", offset, (times, sizes))


def _write_counter(
    file: BinaryIO,
    process: int,
    name: str,
    key: str,
    offset: np.uint64,
    series: tuple[Array, Array],
) -> None:
    """Write the values that a number takes from each time on."""
    times, values = series
    begin = f'{{"ph":"C","name":"{name}","pid":{process},"ts":'.encode()
    middle = f',"args":{{"{key}":'.encode()
    for part in chunks(np.arange(len(times))):
        stamps = microseconds(times[part].astype(np.uint64) + offset)
        lines = fields(begin, stamps, middle, decimals(values[part]), b"}},\n")
        file.write(b"".join(lines))
