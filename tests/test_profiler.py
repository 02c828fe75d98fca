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
    events = prof.events()
    nodes = [event for event in events if event.name.endswith("Backward")]
    assert [event.name for event in nodes] == ["SumBackward", "MulBackward"]
    [whole] = [event for event in events if event.name == "backward"]
    assert all(event.cpu_parent is whole for event in nodes)
    prof.export_chrome_trace(tmp_path / "trace.json")
    lines = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    nodes_shown = [line for line in lines if line.get("cat") == "autograd_node"]
    visible = [line for line in nodes_shown if "Sequence number" in line["args"]]
    assert len(visible) == len(nodes)
