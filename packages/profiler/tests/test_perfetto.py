"""Perfetto traces, read back by a small reader, by Perfetto's descriptors and by its SQL."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synthetic

from plait_profiler._device_queue import queue_depths
from plait_profiler._perfetto import export_perfetto_trace
from plait_profiler._recording import ROW, Kind, Recording, Signature
from plait_profiler._tracks import backward_arrows, launch_arrows, tracks


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value, at


def members(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the fields of a message: numbers and values, which are ints or bytes."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
            yield tag >> 3, value
        else:
            length, at = varint(data, at) if tag & 7 == 2 else (8, at)
            assert tag & 7 in (1, 2)
            assert at + length <= len(data)
            chunk = data[at : at + length]
            yield tag >> 3, chunk if tag & 7 == 2 else int.from_bytes(chunk, "little")
            at += length


def fields(data: bytes) -> dict[int, list[Any]]:
    result = defaultdict(list)
    for number, value in members(data):
        result[number].append(value)
    return result


@dataclass
class Slice:
    track: int
    name: str
    start: int
    end: int = -1
    depth: int = 0
    category: str = ""
    flows: list[int] = field(default_factory=list)
    args: dict[str, Any] = field(default_factory=dict)


@dataclass
class Trace:
    """What is in a file: slices, counters by track, and the tracks' names."""

    slices: list[Slice] = field(default_factory=list)
    counters: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    tracks: dict[int, dict[int, list[Any]]] = field(default_factory=dict)


def read(path: Path) -> Trace:
    trace = Trace()
    interned: dict[int, dict[int, str]] = defaultdict(dict)
    events = []
    for number, data in members(path.read_bytes()):
        assert number == 1
        packet = fields(data)
        for message in packet[12]:
            for kind, entry in members(message):
                [iid], [text] = fields(entry)[1], fields(entry)[2]
                interned[kind][iid] = text.decode()
        for message in packet[60]:
            descriptor = fields(message)
            trace.tracks[descriptor[1][0]] = descriptor
        for message in packet[11]:
            events.append((packet[8][0], fields(message)))
    # as Perfetto does it: by time, and what is at one time in the order of the file
    events.sort(key=lambda event: event[0])
    open_: dict[int, list[Slice]] = defaultdict(list)
    for time, event in events:
        [kind], [uuid] = event[9], event[11]
        assert uuid in trace.tracks
        if kind == 4:
            trace.counters[uuid].append((time, event[30][0]))
        elif kind == 2:
            open_[uuid].pop().end = time
        else:
            new = Slice(uuid, interned[2][event[10][0]], time, depth=len(open_[uuid]))
            new.category, new.flows = interned[1][event[3][0]], event[47]
            for annotation in event[4]:
                result = fields(annotation)
                text = [interned[29][iid] for iid in result[17]]
                new.args[interned[3][result[1][0]]] = [*result[2], *result[3], *text][0]
            open_[uuid].append(new)
            trace.slices.append(new)
    assert not any(open_.values())
    return trace


@pytest.mark.parametrize("seed", range(4))
def test_every_event_is_there(tmp_path: Path, seed: int) -> None:
    recording = synthetic.recording(1500, processes=2, seed=seed)
    recording.rows["status"][::97] = -5
    export_perfetto_trace(recording, tmp_path / "trace.pftrace")
    trace = read(tmp_path / "trace.pftrace")
    by_track = defaultdict(list)
    for each in trace.slices:
        by_track[each.track].append(each)
    result = tracks(recording)
    assert len(by_track) == len(result)
    in_order = sorted(by_track, key=lambda uuid: (uuid >> 32, uuid))
    for track, uuid in zip(result, in_order, strict=True):
        slices = by_track[uuid]
        rows = recording.rows[track.rows]
        assert [s.start for s in slices] == rows["start"].tolist()
        assert [s.end for s in slices] == (rows["start"] + rows["duration"]).tolist()
        names = [recording.signatures[number].name for number in rows["signature"]]
        assert [s.name for s in slices] == names
        if not track.device:
            assert [s.depth for s in slices] == rows["depth"].tolist()
        for each, row in zip(slices, rows, strict=True):
            kind = Kind(row["kind"])
            signature = recording.signatures[row["signature"]]
            assert each.category == kind.name.lower()
            assert each.args.get("Failed", 0) == (row["status"] < 0)
            assert each.args.get("Sequence number", 0) == row["link"]
            launch = row["a"] if kind in (Kind.OP, Kind.DEVICE) else 0
            assert each.args.get("External id", 0) == launch
            if kind is Kind.OP:
                assert each.args["Input Dims"] == str(signature.shapes)
                assert each.args["flops"] == signature.operations


def test_events_that_begin_and_end_at_one_time(tmp_path: Path) -> None:
    """An event of no duration, one within it, and neighbours that touch."""
    rows = np.zeros(7, ROW)
    rows["kind"] = Kind.RANGE
    rows["signature"] = np.arange(7)
    rows["start"] = [0, 0, 5, 5, 5, 5, 10]
    rows["duration"] = [10, 5, 0, 0, 0, 5, 0]
    rows["depth"] = [0, 1, 1, 2, 1, 1, 0]
    recording = Recording(rows, [Signature(str(n), Kind.RANGE) for n in range(7)])
    export_perfetto_trace(recording, tmp_path / "trace.pftrace")
    slices = read(tmp_path / "trace.pftrace").slices
    assert [s.name for s in slices] == [str(n) for n in range(7)]
    assert [s.depth for s in slices] == rows["depth"].tolist()
    assert [s.end - s.start for s in slices] == rows["duration"].tolist()


def test_events_whose_outer_one_was_dropped(tmp_path: Path) -> None:
    rows = np.zeros(3, ROW)
    rows["kind"], rows["depth"] = Kind.RANGE, [1, 3, 2]
    rows["start"], rows["duration"] = [0, 20, 40], [10, 10, 10]
    recording = Recording(rows, [Signature("r", Kind.RANGE)])
    export_perfetto_trace(recording, tmp_path / "trace.pftrace")
    slices = read(tmp_path / "trace.pftrace").slices
    assert [(s.start, s.end, s.depth) for s in slices] == [(0, 10, 0), (20, 30, 0), (40, 50, 0)]


def test_flows_connect_the_arrows(tmp_path: Path) -> None:
    recording = synthetic.recording(1500, processes=2)
    export_perfetto_trace(recording, tmp_path / "trace.pftrace")
    flows = defaultdict(list)
    for each in read(tmp_path / "trace.pftrace").slices:
        for flow in each.flows:
            flows[flow].append((each.start, each.name))
    expected = []
    for sources, targets in (backward_arrows(recording), launch_arrows(recording)):
        for pair in zip(sources.tolist(), targets.tolist(), strict=True):
            rows = recording.rows[list(pair)]
            names = [recording.signatures[number].name for number in rows["signature"]]
            expected.append(sorted(zip(rows["start"].tolist(), names, strict=True)))
    assert sorted(map(sorted, flows.values())) == sorted(expected)


def test_counters_and_names(tmp_path: Path) -> None:
    recording = synthetic.recording(1500, processes=1)
    export_perfetto_trace(recording, tmp_path / "trace.pftrace")
    trace = read(tmp_path / "trace.pftrace")
    memory, reserved, queue = trace.counters.values()
    times, depths = queue_depths(recording)[100, 2 << 8]
    assert queue == list(zip(times.tolist(), depths.tolist(), strict=True))
    assert reserved == [tuple(pair) for pair in recording.reserved]
    sizes, expected = 0, []
    for row in np.sort(recording.rows, order="start"):
        if row["kind"] in (Kind.ALLOC, Kind.FREE):
            sizes += int(row["a"]) * (1 if row["kind"] == Kind.ALLOC else -1)
            expected.append((int(row["start"]), sizes))
    assert memory == expected
    names = {descriptor[2][0] for descriptor in trace.tracks.values() if descriptor[2]}
    assert names == {
        *(b"steps", b"cuda:0 stream 7", b"cuda:0 queue", b"cpu memory", b"reserved memory")
    }
    threads = [fields(d[4][0])[5][0] for d in trace.tracks.values() if d[4]]
    assert threads == [b"main", b"backward"]


def test_an_empty_recording(tmp_path: Path) -> None:
    export_perfetto_trace(Recording(np.zeros(0, ROW), []), tmp_path / "trace.pftrace")
    assert read(tmp_path / "trace.pftrace").slices == []


def test_perfettos_own_descriptors_know_all_fields(tmp_path: Path) -> None:
    messages = pytest.importorskip(
        "perfetto.protos.perfetto.trace.perfetto_trace_pb2",
        reason="the package `perfetto` is not installed",
    )
    unknown = pytest.importorskip("google.protobuf.unknown_fields")
    recording = synthetic.recording(1500, processes=2)
    recording.rows["status"][::97] = -5
    path = tmp_path / "trace.pftrace"
    export_perfetto_trace(recording, path)
    parsed = messages.Trace()
    parsed.ParseFromString(path.read_bytes())

    def check(message: Any) -> None:
        assert len(unknown.UnknownFieldSet(message)) == 0
        for descriptor, value in message.ListFields():
            if descriptor.type == descriptor.TYPE_MESSAGE:
                repeated = descriptor.is_repeated
                for each in value if repeated else [value]:
                    check(each)

    check(parsed)
    begin_packets = [
        p for p in parsed.packet if p.track_event.type == messages.TrackEvent.TYPE_SLICE_BEGIN
    ]
    slices = read(path).slices
    assert sorted(p.timestamp for p in begin_packets) == sorted(s.start for s in slices)
    assert sorted(list(p.track_event.flow_ids) for p in begin_packets) == sorted(
        s.flows for s in slices
    )


def test_perfettos_sql(tmp_path: Path) -> None:
    package = pytest.importorskip(
        "perfetto.trace_processor", reason="the package `perfetto` is not installed"
    )
    binary = shutil.which("trace_processor_shell") or shutil.which("trace_processor")
    if binary is None:
        pytest.skip("Perfetto's program `trace_processor_shell` is not on the path")
    recording = synthetic.recording(1500, processes=2)
    export_perfetto_trace(recording, tmp_path / "trace.pftrace")
    config = package.TraceProcessorConfig(bin_path=binary)
    with package.TraceProcessor(str(tmp_path / "trace.pftrace"), config=config) as processor:
        rows = recording.rows
        spans = rows[(rows["kind"] & (Kind.ALLOC | Kind.FREE | Kind.MARK)) == 0]
        result = sorted((r.ts, r.dur) for r in processor.query("select ts, dur from slice"))
        columns = spans["start"].tolist(), spans["duration"].tolist()
        assert result == sorted(zip(*columns, strict=True))
        [errors] = processor.query("select sum(value) as n from stats where severity = 'error'")
        assert not errors.n
