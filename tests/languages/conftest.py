"""The digits and a step of training, and the environment in which bindings are built and run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from commands import ROOT, of_guide, run


@pytest.fixture(name="folder", scope="session")
def folder_of_digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that examples/languages.py writes."""
    return tmp_path_factory.mktemp("digits")


@pytest.fixture(scope="session")
def losses(folder: Path) -> list[str]:
    """The lines that Python prints: those of the step in the file, then those of operators."""
    ((_, *words),) = of_guide("python examples", folder)
    text = run([sys.executable, *words], dict(os.environ))
    result = [line for line in text.splitlines() if line.startswith("steps")]
    assert len(result) == 10
    for part in (result[:5], result[5:]):
        values = [float(line.split()[-1]) for line in part]
        assert values == sorted(values, reverse=True)
        assert values[-1] < values[0] / 2
    return result


@pytest.fixture(name="environment", scope="session")
def environment_of_bindings(
    folder: Path, losses: list[str], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """Variables for builds and programs."""
    words = [sys.executable, "tools/bindings", "libraries"]
    folders = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {
        **os.environ,
        "PATH": os.pathsep.join([os.environ["PATH"], str(Path.home() / ".cargo" / "bin")]),
        "PYTHON": sys.executable,
        "PLAIT_LIBRARIES": folders.strip(),
        "PLAIT_STEP": str(folder / "step.safetensors"),
        "CARGO_TARGET_DIR": str(tmp_path_factory.mktemp("cargo")),
        "CARGO_NET_OFFLINE": "true",
    }
