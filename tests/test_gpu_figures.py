"""The part `figures` of tools/gpu_check.py, on the emulation of the driver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).resolve().parents[1] / "tools" / "gpu_check.py"


def run(*words: str) -> None:
    environment = {**os.environ, "PLAIT_CUDA_EMULATION": "1"}
    command = [sys.executable, str(TOOL), *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("plait_cuda")
    result = tmp_path_factory.mktemp("figures")
    run("figures", "--small", "--out", str(result))
    return result


@pytest.fixture(scope="module")
def record(folder: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((folder / "figures.json").read_text())
    assert result["emulated"]
    return result["result"]


def test_each_call_comes_before_its_work(record: dict[str, Any]) -> None:
    part = record["timeline"]
    names = [name for name, *_ in part["calls"]]
    assert names[:4] == ["conv2d", "add_", "batch_norm_activation", "max_pool2d"]
    assert {call for call, *_ in part["works"]} == set(range(len(names)))
    assert all(begin >= part["calls"][call][1] for call, begin, _ in part["works"])
    depths = [depth for _, depth in part["depth"]]
    assert max(depths) == part["queue"]["most_depth"] and depths[-1] == 0
    assert part["queue"]["count"] == len(part["works"])


def test_memory_is_requested_in_the_first_step_only(record: dict[str, Any]) -> None:
    first, *later = record["memory"]["steps"]
    assert first["requests"] > 0 and [step["requests"] for step in later] == [0, 0, 0]
    assert all(step["points"][-1][1] == first["points"][-1][1] for step in later)
    assert all(0 < used <= reserved for step in later for used, reserved in step["points"])


def test_the_page_says_that_its_pictures_are_of_the_emulation(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    run("--page", str(folder / "gpu.md"), str(folder))
    text = (folder / "gpu.md").read_text()
    assert (
        "drawn on the emulation" in text and "Never run on a GPU (`gpu_check.py figures`)" in text
    )
    for name in ("gpu_timeline.svg", "gpu_memory.svg"):
        assert f"({name})" in text
        picture = xml.etree.ElementTree.parse(folder / name)
        assert "on an emulated device" in "".join(picture.getroot().itertext())
