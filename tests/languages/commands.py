"""Commands that tests run in the root of the repository."""

from __future__ import annotations

import shlex
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


def of_guide(beginning: str, folder: Path) -> list[list[str]]:
    """Return the commands of the guide that begin so, with another folder for the digits."""
    lines = (ROOT / "docs" / "guides" / "languages.md").read_text().splitlines()
    commands = [line[2:] for line in lines if line.startswith(f"$ {beginning}")]
    assert commands
    return [shlex.split(line.replace("results/digits", str(folder))) for line in commands]
