"""Parents, sums within and links, against loops over random nestings."""

from __future__ import annotations

import numpy as np
import pytest
from recordings import Builder, many, nested

from plait_profiler._recording import ROW, Kind, Recording, Signature, is_span
from plait_profiler._tree import contexts_of, tree_of


def naive_parents(recording: Recording) -> list[int]:
    """The last event that began before, on the thread, one less deep, and ended no earlier."""
    rows, span = recording.rows, is_span(recording.rows["kind"])
    result = []
    for i, row in enumerate(rows):
        end = int(row["start"]) + (int(row["duration"]) if span[i] else 0)
        parent = -1
        if row["kind"] not in (Kind.STEP, Kind.DEVICE):
            for k in range(i - 1, -1, -1):
                other = rows[k]
                if (other["process"], other["thread"]) != (row["process"], row["thread"]):
                    break
                if span[k] and other["depth"] + 1 == row["depth"]:
                    if int(other["start"]) + int(other["duration"]) >= end:
                        parent = k
                    break
        result.append(parent)
    return result


@pytest.mark.parametrize("seed", range(30))
def test_parents_and_sums_are_those_of_a_loop(seed: int) -> None:
    recording = nested(seed)
    parents = recording.parents()
    assert parents.tolist() == naive_parents(recording)
    tree = tree_of(recording)
    assert tree is tree_of(recording)
    values = np.arange(len(tree)) % 7
    mask = values == 3
    totals, nearest, outermost = values.copy(), [], []
    within = []
    for i in range(len(tree)):
        around, at = [], parents[i]
        while at >= 0:
            totals[at] += values[i]
            around.append(at)
            at = parents[at]
        hits = [k for k in around if mask[k]]
        nearest.append(hits[0] if hits else -1)
        outermost.append(hits[-1] if hits else i if mask[i] else -1)
        within.append(any(values[k] == values[i] for k in around))
    assert tree.totals(values).tolist() == totals.tolist()
    assert tree.nearest(mask).tolist() == nearest
    assert tree.outermost(mask).tolist() == outermost
    assert tree.has_ancestor_in_group(values).tolist() == within


@pytest.mark.parametrize("seed", range(10))
def test_own_times_add_up_to_those_of_the_outermost(seed: int) -> None:
    recording = nested(seed)
    tree = tree_of(recording)
    top = tree.span & (tree.parents < 0)
    assert tree.own_time.sum() == tree.duration[top].sum()
    assert (tree.own_time >= 0).all()


def test_an_event_whose_outer_one_is_missing_has_no_parent() -> None:
    result = Builder()
    result.op("before", 0, 10, depth=0)
    result.op("touches", 10, 15, depth=1)  # what it was in began before the recording
    result.op("inner", 11, 12, depth=2)
    assert result.build().parents().tolist() == [-1, -1, 1]


def test_a_recording_without_events() -> None:
    recording = Recording(np.zeros(0, ROW), [])
    assert recording.parents().tolist() == []
    assert contexts_of(recording).tolist() == []
    assert tree_of(recording).totals(np.zeros(0)).tolist() == []


def test_work_on_a_device_belongs_to_the_operator_that_launched_it() -> None:
    result = Builder()
    result.op("mm", 0, 5, a=1)
    result.op("mm", 0, 5, a=1, process=2)
    result.op("add", 6, 7, a=2)
    result.add(Kind.DEVICE, "mm", 3, 53, a=1)
    result.add(Kind.DEVICE, "mm", 60, 61, a=1)
    result.add(Kind.DEVICE, "mm", 3, 10, a=1, process=2)
    result.add(Kind.DEVICE, "lost", 3, 10, a=9)
    tree = tree_of(result.build())
    ops = np.flatnonzero(tree.kind == Kind.OP)
    assert tree.device_time[ops].tolist() == [51, 0, 7]


def test_a_node_has_the_context_of_the_call_that_recorded_it() -> None:
    result = Builder()
    net, other = result.context("Net"), result.context("Other")
    result.op("linear", 0, 9, link=4, context=net)
    result.op("mm", 1, 8, depth=1, link=4, context=net)
    result.op("mm", 0, 9, link=4, context=other, process=2)
    where = {"thread": 2, "context": 0}
    result.add(Kind.BACKWARD, "backward", 10, 99, thread=2)
    result.add(Kind.NODE, "MmBackward", 20, 40, depth=1, link=4, **where)
    result.op("t", 21, 30, depth=2, link=8, **where)  # for a gradient of the gradient
    result.op("mul", 22, 23, depth=3, **where)
    result.add(Kind.NODE, "TBackward", 50, 60, depth=1, link=8, **where)
    result.op("t", 51, 52, depth=2, **where)
    result.add(Kind.NODE, "Unknown", 70, 80, depth=1, link=77, thread=2, context=other)
    result.op("add", 71, 72, depth=2, **where)
    recording = result.build()
    modules = [recording.contexts[i].module for i in contexts_of(recording)]
    assert modules == ["Net"] * 2 + [""] + ["Net"] * 5 + ["Other"] * 3


def test_links_in_a_circle_end() -> None:
    rows = np.zeros(2, ROW)
    rows["kind"] = Kind.NODE, Kind.OP
    rows["duration"], rows["depth"], rows["link"] = [9, 1], [0, 1], 5
    assert contexts_of(Recording(rows, [Signature("x", Kind.OP)])).tolist() == [0, 0]


def test_a_large_recording() -> None:
    recording = many(100_000)
    assert (tree_of(recording).parents >= 0).sum() == 87_500
