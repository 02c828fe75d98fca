"""Each public module has a file below `plait`, from which tools that read code know it."""

from __future__ import annotations

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def test_they_are_as_the_tool_writes_them() -> None:
    command = [sys.executable, "tools/alias_modules.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"run tools/alias_modules.py:\n{done.stdout}{done.stderr}"
