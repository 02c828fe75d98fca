"""Folded stacks, and flame graphs."""

from __future__ import annotations

from pathlib import Path

import pytest
from recordings import ACCELERATOR, Builder, nested

from plait_profiler._averages import key_averages
from plait_profiler._recording import Kind, Recording
from plait_profiler._stacks import export_flame_graph, export_stacks, folded_stacks
from plait_profiler._tree import tree_of


def with_stacks() -> Recording:
    result = Builder()
    main = ("train.py", 3, "main")
    here = result.context("Net", ("my net.py", 12, "for;ward"), main)
    there = result.context("", main)
    result.op("mul", 0, 5_000, context=here, link=1, a=1)
    result.op("mul", 5_000, 9_500, context=here)
    result.op("add", 10_000, 10_900, context=there)  # less than a microsecond
    result.op("sub", 20_000, 22_000)  # without a stack
    result.add(Kind.NODE, "MulBackward", 30_000, 32_000, link=1)
    result.add(Kind.DEVICE, "mul", 0, 7_000, a=1, device=ACCELERATOR)
    return result.build()


def test_a_file_in_pytorchs_format(tmp_path: Path) -> None:
    export_stacks(with_stacks(), tmp_path / "stacks.txt")
    text = (tmp_path / "stacks.txt").read_text()
    assert text == "train.py(3):_main;my_net.py(12):_for_ward 11\n"
    key_averages(with_stacks()).export_stacks(tmp_path / "device.txt", "self_cuda_time_total")
    assert (tmp_path / "device.txt").read_text().endswith(" 7\n")
    with pytest.raises(ValueError, match=r"`metric` must be one of .*; got 'time'"):
        export_stacks(with_stacks(), tmp_path / "x", "time")


def test_stacks_with_the_names_of_events() -> None:
    folded = folded_stacks(with_stacks(), names=True)
    frames = ("train.py(3): main", "my net.py(12): for;ward")
    assert folded == {
        (*frames, "mul"): 9.5,
        (*frames, "MulBackward"): 2.0,
        ("train.py(3): main", "add"): 0.9,
        ("sub",): 2.0,
    }


@pytest.mark.parametrize("seed", range(5))
def test_without_stacks_there_are_the_names_of_events(seed: int) -> None:
    recording = nested(seed)
    tree = tree_of(recording)
    expected: dict[tuple[str, ...], float] = {}
    for row, time in enumerate(tree.own_time.tolist()):
        chain, at = [], row
        while at >= 0:
            chain.append(recording.signatures[recording.rows["signature"][at]].name)
            at = int(tree.parents[at])
        if time:
            key = tuple(reversed(chain))
            expected[key] = expected.get(key, 0) + time / 1e3
    assert folded_stacks(recording) == pytest.approx(expected)


def test_a_flame_graph(tmp_path: Path) -> None:
    result = Builder()
    result.add(Kind.RANGE, "<step>", 0, 1000)
    result.op("mul", 0, 300, 1)
    result.op("mul", 400, 500, 1)
    export_flame_graph(result.build(), tmp_path / "flames.html")
    page = (tmp_path / "flames.html").read_text()
    assert "&lt;step&gt;: 1.000us, 100.0%" in page and "<step>" not in page
    assert "mul: 0.400us, 40.0%" in page
    export_flame_graph(Builder().build(), tmp_path / "empty.html")
    assert "all: 0.000us" in (tmp_path / "empty.html").read_text()
