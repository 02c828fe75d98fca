"""Memory by category, over time, at its peak, and what was not freed."""

from __future__ import annotations

import gzip
import json
import math
import random
from pathlib import Path

import pytest
from recordings import ACCELERATOR, CPU, Builder, many

from plait_profiler._blocks import blocks_of
from plait_profiler._memory import MemoryProfile, memory_timeline
from plait_profiler._memory_export import export_memory_timeline
from plait_profiler._recording import Category, Kind, Recording


def categories(recording: Recording) -> dict[int, str]:
    """The category of each block, by its size."""
    blocks = blocks_of(recording)
    return {
        int(size): Category(category).name
        for size, category in zip(blocks.size, blocks.category, strict=True)
    }


def training_step() -> Recording:
    """Parameters from before, a forward and a backward pass, an optimizer's step."""
    result = Builder()
    result.context(
        "Net", ("/site-packages/plait_nn/linear.py", 3, "forward"), ("net.py", 12, "forward")
    )
    result.context("Net.head", ("train.py", 40, "main"))
    result.mark(0, 0x1000, Category.PARAMETER, 1000)
    result.mark(0, 0x2000, Category.INPUT, 200)
    result.op("linear", 10, 20, context=1, link=3)
    result.alloc(11, 0x3000, 300, 1, context=1)  # activation
    result.alloc(12, 0x4000, 400, 1, context=1)  # temporary
    result.free(15, 0x4000, 400, 1)
    result.add(Kind.BACKWARD, "backward", 30, 60)
    result.add(Kind.NODE, "LinearBackward", 31, 50, depth=1, link=3)
    result.op("mm", 32, 40, depth=2)
    result.alloc(33, 0x4000, 1001, 3)  # gradient
    result.op("mul", 41, 45, depth=2)
    result.alloc(42, 0x5000, 50, 3)  # freed within the node
    result.free(49, 0x5000, 50, 2)
    result.alloc(51, 0x7000, 70, 1)  # in the backward pass, kept
    result.free(55, 0x3000, 300, 1)
    result.mark(56, 0x4000, Category.GRADIENT, 1001)
    result.op("step", 70, 80, context=2)
    result.alloc(71, 0x6000, 1002, 1, context=2)
    result.mark(75, 0x6000, Category.OPTIMIZER_STATE)
    return result.build(end=100)


def test_categories_of_a_training_step() -> None:
    assert categories(training_step()) == {
        1000: "PARAMETER",
        200: "INPUT",
        300: "ACTIVATION",
        400: "TEMPORARY",
        1001: "GRADIENT",
        50: "TEMPORARY",
        70: "OTHER",
        1002: "OPTIMIZER_STATE",
    }


def test_the_timeline_has_a_category_for_the_whole_life_of_a_block() -> None:
    timeline = memory_timeline(training_step())
    assert timeline.at(0.033)[Category.GRADIENT] == 1001  # before it is marked
    assert timeline.at(0.0109) == dict.fromkeys(Category, 0) | {
        Category.PARAMETER: 1000,
        Category.INPUT: 200,
    }
    assert timeline.at(0.1)[Category.OPTIMIZER_STATE] == 1002
    assert timeline.totals[-1] == 1000 + 200 + 1001 + 70 + 1002
    assert sum(timeline.at(-1).values()) == 0


def test_who_holds_the_memory() -> None:
    memory = MemoryProfile(training_step())
    assert (memory.peak_bytes, memory.peak_time) == (3273, 0.071)
    lines = {row["key"]: row["bytes"] for row in memory.at_peak() if row["category"] != "input"}
    assert lines == {
        "train.py(40): main": 1002,
        "net.py(12): forward": 1001,  # the gradient has the line of the forward call
        "(before the recording)": 1000,
        "(none)": 70,
    }
    modules = {row["key"]: row["bytes"] for row in memory.live_at(0.034, by="module")}
    assert modules["Net"] in (300, 1001)
    operators = {row["key"]: row["bytes"] for row in memory.live_at(0.042, by="operator")}
    assert operators.keys() == {
        "(before the recording)",
        "linear",
        "mm (backward)",
        "mul (backward)",
    }
    by_category = {row["key"]: row["bytes"] for row in memory.live_at(0.042, by="category")}
    assert by_category["activation"] == 300
    blocks = memory.at_peak(by="block")
    assert sum(blocks.values("bytes")) == memory.peak_bytes
    assert sum(blocks.values("share")) == pytest.approx(1)
    assert blocks[0]["operator"] == "step" and blocks[0]["key"] == "0x6000"
    assert "Memory at its peak: 3.20 KB" in str(blocks)


def test_leaks_are_new_objects_that_still_exist() -> None:
    memory = MemoryProfile(training_step())
    assert {row["bytes"] for row in memory.leaks(0.011, 0.030)} == {300}
    assert {row["bytes"] for row in memory.leaks(0.011, 0.060, by="block")} == {1001, 70}
    assert len(memory.leaks(0.013, 0.030)) == 0
    assert memory.leaks(-math.inf, math.inf).rows == memory.leaks(0, 1e9).rows
    with pytest.raises(ValueError, match="`end` must not be before `begin`; got 2 and 1"):
        memory.leaks(2, 1)
    with pytest.raises(ValueError, match="`by` must be one of line"):
        memory.at_peak(by="color")


@pytest.mark.parametrize("seed", range(20))
def test_blocks_of_random_calls(seed: int) -> None:
    """Against a loop; some rows of the recording are missing, as in a ring that was full."""
    chance = random.Random(seed)
    result = Builder()
    references: dict[tuple[int, int], int] = {}
    total, totals = 0, {}
    for time in range(1, 200):
        process, address = chance.randint(1, 2), chance.randint(1, 5)
        key = (process, address)
        if key in references:
            size = references.pop(key)
            result.free(time, address, size, process=process, thread=chance.randint(1, 2))
            total -= size
        else:
            references[key] = chance.randint(1, 100)
            result.alloc(
                time, address, references[key], process=process, thread=chance.randint(1, 2)
            )
            total += references[key]
        totals[time / 1e3] = total
    timeline = memory_timeline(result.build())
    assert dict(zip(timeline.times.tolist(), timeline.totals.tolist(), strict=True)) == totals
    result.rows = [row for row in result.rows if chance.random() < 0.8]
    blocks = blocks_of(result.build())
    assert (blocks.end >= blocks.begin).all()
    assert (memory_timeline(result.build()).totals >= 0).all()
    frees = sum(row["kind"] == Kind.FREE for row in result.rows)
    assert (blocks.freed_by >= 0).sum() == frees


def test_blocks_without_their_rows() -> None:
    result = Builder()
    result.free(5, 1, 10)  # from before
    result.free(9, 1, 20)  # its ALLOC row is missing
    result.alloc(11, 1, 30)
    result.alloc(15, 1, 40)  # the FREE row of the one before is missing
    result.mark(16, 7, Category.PARAMETER)  # nobody knows how large it is
    result.mark(16, 8, Category.PARAMETER)  # its FREE row says how large
    result.free(17, 8, 80)
    blocks = blocks_of(result.build(begin=2))
    spans = list(zip(blocks.size.tolist(), blocks.begin.tolist(), blocks.end.tolist(), strict=True))
    assert spans[:3] == [(10, 2, 5), (20, 5, 9), (30, 11, 15)]
    assert spans[3][:2] == (40, 15)
    assert spans[4] == (80, 2, 17)
    assert Category(blocks.category[4]) == Category.PARAMETER


def test_devices_are_told_apart() -> None:
    result = Builder()
    result.alloc(1, 1, 10)
    result.alloc(2, 1 << 20, 200, device=ACCELERATOR + 1)
    recording = result.build()
    assert MemoryProfile(recording).peak_bytes == 210
    assert MemoryProfile(recording, "cpu").peak_bytes == 10
    assert MemoryProfile(recording, "cuda:1").peak_bytes == 200
    assert MemoryProfile(recording, CPU).peak_bytes == 10
    assert MemoryProfile(recording, "cuda").peak_bytes == 0
    with pytest.raises(ValueError, match=r"`device` must be cpu.*\[256, 513\]; got 'gpu'"):
        MemoryProfile(recording, "gpu")


def test_without_memory_there_is_nothing() -> None:
    result = Builder()
    result.op("mul", 1, 2)
    memory = MemoryProfile(result.build())
    assert (memory.peak_bytes, memory.peak_time, len(memory.at_peak())) == (0, 0.0, 0)
    assert "profile(profile_memory=True)" in str(memory.at_peak())


def test_files_in_pytorchs_formats(tmp_path: Path) -> None:
    recording = training_step()
    export_memory_timeline(recording, tmp_path / "m.json")
    times, sizes = json.loads((tmp_path / "m.json").read_text())
    assert len(times) == len(sizes) and {len(row) for row in sizes} == {9}
    assert sizes[0] == [0, 1000, 0, 200, 0, 0, 0, 0, 0]
    assert sum(sizes[-1]) == 3273
    export_memory_timeline(recording, tmp_path / "m.json.gz")
    with gzip.open(tmp_path / "m.json.gz", "rt") as file:
        assert json.load(file) == [times, sizes]
    export_memory_timeline(recording, tmp_path / "m.raw.json.gz")
    with gzip.open(tmp_path / "m.raw.json.gz", "rt") as file:
        changes = json.load(file)
    assert changes[:2] == [[-1, 0, 1000, 0], [-1, 0, 200, 2]]
    assert [12, 1, 400, 3] in changes and [15, 3, -400, 3] in changes
    assert sum(size for _, _, size, _ in changes) == 3273
    with pytest.raises(ValueError, match=r"`path` must end with \.html"):
        export_memory_timeline(recording, tmp_path / "m.txt")


def test_the_picture(tmp_path: Path) -> None:
    recording = training_step()
    recording.reserved = [(5, 4000), (60, 8000)]
    export_memory_timeline(recording, tmp_path / "m.html")
    page = (tmp_path / "m.html").read_text()
    assert "Peak: 3.20 KB" in page and "stroke-dasharray" in page
    assert page.count("<title>") == 1 + 7  # of the page, and of each category
    export_memory_timeline(many(40_000), tmp_path / "many.html")
    assert (tmp_path / "many.html").stat().st_size < 300_000
    result = Builder()
    result.op("mul", 1, 2)
    export_memory_timeline(result.build(), tmp_path / "none.html")
    assert "Peak: 0 B" in (tmp_path / "none.html").read_text()
