"""Commands that tests run in the root of the repository."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def need(tool: str, environment: dict[str, str]) -> None:
    """Skip the test where a tool is not installed."""
    if not shutil.which(tool, path=environment["PATH"]):
        pytest.skip(f"{tool} is not on the path")


def run(words: list[str], environment: dict[str, str]) -> str:
    """Run a command in the root of the repository and return what it prints."""
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout[-5000:]}\n{done.stderr[-5000:]}"
    return done.stdout
