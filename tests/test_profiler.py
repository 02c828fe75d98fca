"""The profiler with an engine: backward nodes are in the timeline."""

from __future__ import annotations

import json
from pathlib import Path

import plait_autograd  # noqa: F401  (brings the engine)
import plait_core as pc
from plait_profiler import profile


def test_backward_nodes_are_seen(tmp_path: Path) -> None:
    w = pc.ones(3, requires_grad=True)
    with profile() as prof:
        (w * w).sum().backward()
    nodes = [event for event in prof.events() if event.sequence is not None]
    assert len(nodes) >= 2
    assert any("mul" in event.name.lower() for event in nodes)
    whole = [event for event in prof.events() if event.name == "backward"]
    assert len(whole) == 1
    assert whole[0].start <= min(event.start for event in nodes)
    prof.export_chrome_trace(tmp_path / "trace.json")
    lines = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    shown = [line for line in lines if line.get("cat") == "backward" and line["args"]]
    assert len(shown) == len(nodes)
