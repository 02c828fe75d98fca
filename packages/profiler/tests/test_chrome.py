"""Chrome traces of synthetic recordings, read back as JSON."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synthetic

from plait_profiler._chrome import export_chrome_trace
from plait_profiler._device_queue import queue_depths
from plait_profiler._recording import ROW, Context, Kind, Recording, Signature

CLOCK = 1_790_000_000_000_000_000


def exported(recording: Recording, path: Path) -> dict[str, Any]:
    export_chrome_trace(recording, path)
    whole: dict[str, Any] = json.loads(path.read_text("utf-8"), parse_float=Decimal)
    return whole


def of_phase(trace: dict[str, Any], phase: str) -> list[dict[str, Any]]:
    return [event for event in trace["traceEvents"] if event["ph"] == phase]


@pytest.mark.parametrize("seed", range(4))
def test_every_event_is_there_with_its_columns(tmp_path: Path, seed: int) -> None:
    recording = synthetic.recording(1500, processes=2, seed=seed)
    recording.rows["status"][::97] = -5
    trace = exported(recording, tmp_path / "trace.json")
    base = trace["baseTimeNanoseconds"]
    written = {event["args"]["Ev Idx"]: event for event in of_phase(trace, "X")}
    instants = Kind.ALLOC | Kind.FREE | Kind.MARK
    assert sorted(written) == np.flatnonzero((recording.rows["kind"] & instants) == 0).tolist()
    for index, event in written.items():
        row = recording.rows[index]
        signature = recording.signatures[row["signature"]]
        context = recording.contexts[row["context"]]
        kind, args = Kind(row["kind"]), event["args"]
        assert event["name"] == signature.name
        # Exact: a decimal number, not a rounded one.
        assert event["ts"] * 1000 + base == int(row["start"]) + recording.clock
        assert event["dur"] * 1000 == int(row["duration"])
        if kind not in (Kind.STEP, Kind.DEVICE):
            assert (event["pid"], event["tid"]) == (row["process"], row["thread"])
        assert args.get("Failed", False) == (row["status"] < 0)
        if kind is Kind.OP:
            assert args["Input Dims"] == signature.shapes
            assert args["Input type"][0] in ("float32", "TensorList")
            assert args["flops"] == signature.operations
        assert args.get("Sequence number", 0) == row["link"]
        assert args.get("External id", 0) == (row["a"] if kind in (Kind.OP, Kind.DEVICE) else 0)
        if context.module:
            assert args["Module Hierarchy"] == f"{context.module} ({context.module_type})"
            file, line, name = context.stack[0]
            assert args["Call stack"] == f"{file}({line}): {name}"


def test_lines_do_not_overlap(tmp_path: Path) -> None:
    """Two events of a line are apart, or one is within the other."""
    trace = exported(synthetic.recording(3000, processes=2), tmp_path / "trace.json")
    lines = defaultdict(list)
    for event in of_phase(trace, "X"):
        lines[event["pid"], event["tid"]].append((event["ts"], -event["dur"]))
    assert len(lines) == 2 * (2 + 1 + 1)  # threads, steps, a stream
    for events in lines.values():
        ends: list[Decimal] = []
        for start, length in sorted(events):
            while ends and ends[-1] <= start:
                ends.pop()
            assert not ends or start - length <= ends[-1]
            ends.append(start - length)


def test_lines_have_names(tmp_path: Path) -> None:
    trace = exported(synthetic.recording(processes=2), tmp_path / "trace.json")
    names = defaultdict(set)
    for event in of_phase(trace, "M"):
        if event["name"].endswith("_name"):
            names[event["name"]].add(event["args"]["name"])
    assert names["process_name"] == {"process 100", "process 101"} | {
        "cuda:0 (process 100)",
        "cuda:0 (process 101)",
    }
    assert names["thread_name"] == {"main", "backward", "steps", "cuda:0 stream 7"}


def test_arrows(tmp_path: Path) -> None:
    recording = synthetic.recording(2000, processes=2)
    trace = exported(recording, tmp_path / "trace.json")
    at = {(e["pid"], e["tid"], e["ts"]): [] for e in of_phase(trace, "X")}
    for event in of_phase(trace, "X"):
        at[event["pid"], event["tid"], event["ts"]].append(event)
    starts = {(e["cat"], e["id"]): e for e in of_phase(trace, "s")}
    calls = Counter()
    for arrow in of_phase(trace, "f"):
        source = starts.pop((arrow["cat"], arrow["id"]))
        ends = [at[e["pid"], e["tid"], e["ts"]] for e in (source, arrow)]
        key = {"fwdbwd": "Sequence number", "ac2g": "External id"}[arrow["cat"]]
        assert any(a["args"][key] == b["args"].get(key) for a in ends[0] for b in ends[1])
        calls[arrow["cat"]] += 1
    assert not starts
    nodes = int((recording.rows["kind"] == Kind.NODE).sum())
    works = int((recording.rows["kind"] == Kind.DEVICE).sum())
    assert calls == {"fwdbwd": nodes, "ac2g": works}


def test_memory_and_queues_are_counters(tmp_path: Path) -> None:
    recording = synthetic.recording(2000, processes=2)
    trace = exported(recording, tmp_path / "trace.json")
    counters = defaultdict(list)
    for event in of_phase(trace, "C"):
        (value,) = event["args"].values()
        counters[event["pid"], event["name"]].append((event["ts"], value))
    for process in (100, 101):
        sizes, series = 0, []
        rows = recording.rows[recording.rows["process"] == process]
        for row in np.sort(rows, order="start"):
            if row["kind"] in (Kind.ALLOC, Kind.FREE):
                sizes += int(row["a"]) * (1 if row["kind"] == Kind.ALLOC else -1)
                series.append(sizes)
        assert [sizes for _, sizes in counters[process, "cpu memory"]] == series
        _, depths = queue_depths(recording)[process, 2 << 8]
        assert [depth for _, depth in counters[process, "cuda:0 queue"]] == depths.tolist()
    assert [size for _, size in counters[100, "reserved memory"]] == [1 << 19, 3 << 18]


def test_a_compressed_file_has_the_same_text(tmp_path: Path) -> None:
    recording = synthetic.recording(500)
    export_chrome_trace(recording, tmp_path / "trace.json")
    export_chrome_trace(recording, str(tmp_path / "trace.json.gz"))
    plain = (tmp_path / "trace.json").read_bytes()
    assert gzip.decompress((tmp_path / "trace.json.gz").read_bytes()) == plain


def test_names_may_have_any_letters(tmp_path: Path) -> None:
    name = 'a "quoted"\\ name\n%s \u2028 ∂x \ud800'
    rows = np.zeros(1, ROW)
    rows["kind"], rows["context"] = Kind.RANGE, 1
    contexts = [Context(), Context('Net."x"', "M", (('f"\\.py', 3, "<lambda>"),))]
    recording = Recording(rows, [Signature(name, Kind.RANGE)], contexts, {(0, 0): name})
    [event] = of_phase(exported(recording, tmp_path / "trace.json"), "X")
    assert event["name"] == name
    assert event["args"]["Call stack"] == 'f"\\.py(3): <lambda>'


def test_an_empty_recording(tmp_path: Path) -> None:
    trace = exported(Recording(np.zeros(0, ROW), []), tmp_path / "trace.json")
    assert [event["name"] for event in trace["traceEvents"]] == ["Record Window End"]


def test_metadata(tmp_path: Path) -> None:
    metadata = {"distributedInfo": {"rank": 1}, "traceEvents": [], "schemaVersion": 0}
    path = tmp_path / "trace.json"
    export_chrome_trace(Recording(np.zeros(0, ROW), []), path, metadata=metadata)
    trace = json.loads(path.read_text())
    assert trace["distributedInfo"] == {"rank": 1}
    assert trace["schemaVersion"] == 1
    assert trace["traceEvents"] != []


def test_work_that_overlaps_on_a_stream_is_on_several_lines(tmp_path: Path) -> None:
    rows = np.zeros(3, ROW)
    rows["kind"], rows["device"] = Kind.DEVICE, 2 << 8 | 1
    rows["start"], rows["duration"] = [0, 5, 10], [10, 20, 3]
    recording = Recording(rows, [Signature("mul", Kind.OP)])
    events = of_phase(exported(recording, tmp_path / "trace.json"), "X")
    lines = {event["args"]["Ev Idx"]: event["tid"] for event in events}
    assert lines[0] == lines[2] != lines[1]


def test_inputs_of_all_sorts(tmp_path: Path) -> None:
    inputs = (
        ("float32", (2, 3), (1, 2)),
        [("int64", (), None), ("bool", (4,), None)],
        0.5,
        (1, 2),
        "mean",
        None,
    )
    rows = np.zeros(1, ROW)
    rows["kind"] = Kind.OP
    recording = Recording(rows, [Signature("f", Kind.OP, inputs)])
    [event] = of_phase(exported(recording, tmp_path / "trace.json"), "X")
    args = event["args"]
    assert args["Input Dims"] == [[2, 3], [[], [4]], [], [], [], []]
    assert args["Input type"] == ["float32", "TensorList", "Scalar", "Scalar", "Scalar", ""]
    assert args["Input Strides"] == [[1, 2], [[], [1]], [], [], [], []]
    assert args["Concrete Inputs"] == ["", "", "0.5", "(1, 2)", "'mean'", ""]


def test_the_largest_numbers(tmp_path: Path) -> None:
    rows = np.zeros(2, ROW)
    rows["kind"] = Kind.OP
    rows["start"], rows["duration"] = [0, 2**62], [2**61, 0]
    rows["link"], rows["a"] = [2**64 - 1, 0], [0, 2**64 - 1]
    recording = Recording(rows, [Signature("f", Kind.OP)], clock=0)
    first, second = of_phase(exported(recording, tmp_path / "trace.json"), "X")
    assert first["dur"] * 1000 == 2**61
    assert second["ts"] * 1000 == 2**62
    assert first["args"]["Sequence number"] == second["args"]["External id"] == 2**64 - 1
    assert "External id" not in first["args"]
