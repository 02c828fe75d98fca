"""Tracks, arrows and changes of memory, against plain loops over the rows."""

from __future__ import annotations

import numpy as np
import pytest
import synthetic

import plait_abi
from plait_profiler._blocks import device_number, held_bytes, memory_changes
from plait_profiler._recording import DEVICE_TYPES, ROW, Category, Kind, Recording, Signature
from plait_profiler._tracks import backward_arrows, device_name, launch_arrows, tracks


@pytest.mark.parametrize("threads", [1, 2])
def test_the_synthetic_recording_is_nested(threads: int) -> None:
    recording = synthetic.recording(3000, processes=2, threads=threads)
    rows = recording.rows
    order = [rows[name].tolist() for name in ("process", "thread", "start", "depth")]
    assert list(zip(*order, strict=True)) == sorted(zip(*order, strict=True))
    hosts = (rows["kind"] & (Kind.STEP | Kind.DEVICE | Kind.MARK)) == 0
    parents = recording.parents()
    assert ((parents >= 0) == (rows["depth"] > 0))[hosts].all()
    inner, outer = rows[parents >= 0], rows[parents[parents >= 0]]
    assert (inner["depth"] == outer["depth"] + 1).all()
    assert (inner["start"] >= outer["start"]).all()
    assert (inner["start"] + inner["duration"] <= outer["start"] + outer["duration"]).all()


def test_each_event_is_on_one_track() -> None:
    recording = synthetic.recording(3000, processes=2)
    result = tracks(recording)
    rows = recording.rows
    instants = (rows["kind"] & (Kind.ALLOC | Kind.FREE | Kind.MARK)) != 0
    on_tracks = np.sort(np.concatenate([track.rows for track in result]))
    assert on_tracks.tolist() == np.flatnonzero(~instants).tolist()
    for track in result:
        assert (rows["process"][track.rows] == track.process).all()
        assert (np.diff(rows["start"][track.rows].astype(np.int64)) >= 0).all()
    names = [track.name for track in result]
    assert names == 2 * ["steps", "main", "backward", "cuda:0 stream 7"]


def test_threads_without_a_name() -> None:
    rows = np.zeros(2, ROW)
    rows["kind"], rows["process"], rows["thread"] = Kind.RANGE, 7, [7, 3]
    result = tracks(Recording(rows, [Signature("r", Kind.RANGE)]))
    assert [track.name for track in result] == ["main thread", "thread 3"]


def test_device_names() -> None:
    assert device_name(1 << 8) == "cpu"
    assert device_name(2 << 8 | 3) == "cuda:3"
    assert device_name(99 << 8 | 1) == "device type 99:1"


@pytest.mark.parametrize("number", sorted(DEVICE_TYPES))
def test_devices_have_the_names_that_programs_write(number: int) -> None:
    device = number << 8 | (0 if number == 1 else 3)
    name = device_name(device)
    assert str(plait_abi.device(name)) == name
    assert device_number(name, synthetic.recording(10)) == device


def test_vectorized_searches_agree_with_loops() -> None:
    recording = synthetic.recording(2500, processes=3)
    forward: dict[tuple[int, int], int] = {}
    launched: dict[tuple[int, int], int] = {}
    nodes, works = [], []
    for index, row in enumerate(recording.rows):
        process, link, number = int(row["process"]), int(row["link"]), int(row["a"])
        if row["kind"] == Kind.OP and link:
            forward.setdefault((process, link), index)
        if row["kind"] == Kind.OP and number:
            launched.setdefault((process, number), index)
        if row["kind"] == Kind.NODE:
            nodes.append((process, link, index))
        if row["kind"] == Kind.DEVICE:
            works.append((process, number, index))
    for result, sources, targets in (
        (backward_arrows(recording), forward, nodes),
        (launch_arrows(recording), launched, works),
    ):
        pairs = set(zip(*(side.tolist() for side in result), strict=True))
        assert pairs == {(sources[process, n], index) for process, n, index in targets}


def test_a_node_that_ran_twice_has_two_arrows() -> None:
    rows = np.zeros(5, ROW)
    rows["kind"] = [Kind.OP, Kind.OP, Kind.NODE, Kind.NODE, Kind.NODE]
    rows["depth"] = [0, 1, 0, 0, 0]
    rows["start"] = np.arange(5)
    rows["link"] = [4, 4, 4, 4, 9]  # nobody recorded node 9
    sources, targets = backward_arrows(Recording(rows, [Signature("f", Kind.OP)]))
    assert (sources.tolist(), targets.tolist()) == ([0, 0], [2, 3])


def test_no_arrows() -> None:
    recording = Recording(np.zeros(0, ROW), [])
    assert [len(side) for side in (*backward_arrows(recording), *launch_arrows(recording))] == [
        0
    ] * 4


def test_held_bytes_by_device() -> None:
    rows = np.zeros(4, ROW)
    rows["kind"] = [Kind.ALLOC, Kind.ALLOC, Kind.FREE, Kind.ALLOC]
    rows["start"] = np.arange(4)
    rows["a"], rows["b"] = [8, 16, 8, 4], [64, 128, 64, 64]
    rows["device"] = [1 << 8, 2 << 8, 1 << 8, 1 << 8]
    by_device = held_bytes(Recording(rows, [Signature("", Kind.ALLOC)]))
    as_lists = {key: (times.tolist(), sizes.tolist()) for key, (times, sizes) in by_device.items()}
    assert as_lists == {(0, 1 << 8): ([0, 2, 3], [8, 0, 4]), (0, 2 << 8): ([1], [16])}


def test_the_categories_of_a_step() -> None:
    recording = synthetic.recording(1000)
    changes = memory_changes(recording)
    assert (np.diff(changes.time) >= 0).all()
    sizes = {c: int(changes.change[changes.category == c].clip(min=0).sum()) for c in Category}
    assert sizes[Category.PARAMETER] == sizes[Category.GRADIENT] == synthetic.PARAMETERS << 14
    assert sizes[Category.ACTIVATION] > 0
    assert sizes[Category.TEMPORARY] > 0
    assert sizes[Category.OTHER] == 0
