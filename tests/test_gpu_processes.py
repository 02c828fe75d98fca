"""The part `processes` of tools/gpu_check.py, on the emulation of the driver.

Its processes name no device before a tensor of one reaches them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[1] / "tools" / "gpu_check.py"


def test_processes_share_memory_and_reduce(tmp_path: Path) -> None:
    pytest.importorskip("plait_cuda")
    environment = {**os.environ, "PLAIT_CUDA_EMULATION": "1", "PLAIT_CUDA_DEVICES": "2"}
    command = [sys.executable, str(TOOL), "processes", "--small", "--out", str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "processes.json").read_text())["result"]
    assert result["ranks"] == 2
    for part in (result["sharing"], result["all_reduce"]):
        assert part["status"] == 0 and part["seconds"] > 0, part
