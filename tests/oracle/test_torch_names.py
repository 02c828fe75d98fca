"""The stored names of PyTorch are those of the one that is installed."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
STORED = json.loads((ROOT / "tests/torch_names.json").read_text())


def test_stored_names(tmp_path: pathlib.Path) -> None:
    """A process of its own reads them: tests load more of PyTorch than a program does."""
    if torch.__version__.partition("+")[0] != STORED["version"]:
        pytest.skip(f"the names are those of PyTorch {STORED['version']}")
    file = tmp_path / "names.json"
    subprocess.run([sys.executable, str(ROOT / "tools/torch_names.py"), str(file)], check=True)
    result = json.loads(file.read_text())["names"]
    assert result.keys() == STORED["names"].keys()
    for place, names in result.items():
        assert names == STORED["names"][place], place


def test_what_classes_say(tmp_path: pathlib.Path) -> None:
    """The record of plait-torch's tests is what PyTorch's classes and functions say."""
    if torch.__version__.partition("+")[0] != STORED["version"]:
        pytest.skip(f"the names are those of PyTorch {STORED['version']}")
    stored = ROOT / "packages/torch/tests/torch_homes.json"
    file = tmp_path / "homes.json"
    file.write_text(stored.read_text(encoding="utf-8"), encoding="utf-8")
    tool = str(ROOT / "tools/torch_names.py")
    subprocess.run([sys.executable, tool, "--homes", str(file)], check=True)
    assert json.loads(file.read_text()) == json.loads(stored.read_text())


@pytest.mark.parametrize("kind", ["star", "dir"])
def test_names_of_modules(tmp_path: pathlib.Path, kind: str) -> None:
    """The tables of plait-torch are what star imports of PyTorch's modules leave, or `dir`."""
    if torch.__version__.partition("+")[0] != STORED["version"]:
        pytest.skip(f"the names are those of PyTorch {STORED['version']}")
    stored = ROOT / "packages/torch/src/plait_torch" / f"{kind}_names.json"
    file = tmp_path / "names.json"
    file.write_text(stored.read_text(encoding="utf-8"), encoding="utf-8")
    tool = str(ROOT / "tools/torch_names.py")
    subprocess.run([sys.executable, tool, f"--{kind}", str(file)], check=True)
    assert json.loads(file.read_text()) == json.loads(stored.read_text())
