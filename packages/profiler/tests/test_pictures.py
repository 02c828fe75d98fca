"""The pictures, by what Matplotlib's artists hold."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import synthetic

from plait_profiler._pictures import memory_figure, timeline_figure
from plait_profiler._recording import ROW, Kind, Recording, Signature


@pytest.fixture
def _matplotlib() -> None:
    pytest.importorskip("matplotlib", reason="Matplotlib is not installed")


@pytest.mark.usefixtures("_matplotlib")
def test_a_timeline_of_some_steps(tmp_path: Path) -> None:
    recording = synthetic.recording(2000)
    figure = timeline_figure(recording, first_step=1, steps=2)
    [axes] = figure.axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["steps", "main", "backward", "cuda:0 stream 7"]
    length = 2 * int(recording.rows["duration"][recording.rows["kind"] == Kind.STEP][0])
    assert axes.get_xlim() == (0, length / 1e6)
    assert axes.get_xlabel() == "time (ms)"
    assert {"ProfilerStep", "forward", "backward"} <= {text.get_text() for text in axes.texts}
    boxes = sum(len(bands.get_paths()) for bands in axes.collections)
    spans = (recording.rows["kind"] & (Kind.ALLOC | Kind.FREE | Kind.MARK)) == 0
    assert 100 < boxes < spans.sum()
    figure.savefig(tmp_path / "timeline.png")
    figure.savefig(tmp_path / "timeline.svg")


@pytest.mark.usefixtures("_matplotlib")
def test_many_short_events_are_joined() -> None:
    recording = synthetic.recording(100_000)
    [axes] = timeline_figure(recording, steps=10**9).axes
    assert sum(len(bands.get_paths()) for bands in axes.collections) < 40 * 2000


@pytest.mark.usefixtures("_matplotlib")
def test_a_timeline_without_steps() -> None:
    recording = synthetic.recording(1000)
    recording.rows = recording.rows[recording.rows["kind"] != Kind.STEP]
    assert timeline_figure(recording).axes[0].get_xlim()[1] > 0


@pytest.mark.usefixtures("_matplotlib")
def test_memory_by_category(tmp_path: Path) -> None:
    recording = synthetic.recording(2000)
    figure = memory_figure(recording)
    [axes] = figure.axes
    [legend] = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["reserved", "temporary", "activation", "gradient", "parameter"]
    sizes, most = 0, 0
    for row in np.sort(recording.rows, order="start"):
        if row["kind"] in (Kind.ALLOC, Kind.FREE):
            sizes += int(row["a"]) * (1 if row["kind"] == Kind.ALLOC else -1)
            most = max(most, sizes)
    top = max(area.get_paths()[0].vertices[:, 1].max() for area in axes.collections)
    assert top * 1024 == most
    [line] = axes.lines
    assert line.get_ydata().tolist() == [512, 768, 768]
    figure.savefig(tmp_path / "memory.png")


@pytest.mark.usefixtures("_matplotlib")
def test_nothing_to_show() -> None:
    recording = Recording(np.zeros(0, ROW), [])
    with pytest.raises(ValueError, match="memory_figure: the recording has no allocations"):
        memory_figure(recording)
    with pytest.raises(ValueError, match="timeline_figure: the recording has no events"):
        timeline_figure(recording)
    with pytest.raises(ValueError, match="no events in 1 steps from 10000"):
        timeline_figure(synthetic.recording(500), first_step=10000, steps=1)


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    recording = Recording(np.zeros(1, ROW), [Signature("r", Kind.RANGE)])
    for function in (timeline_figure, memory_figure):
        with pytest.raises(ImportError, match=f"{function.__name__}: Matplotlib is not installed"):
            function(recording)
