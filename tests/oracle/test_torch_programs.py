"""What `packages/torch/tests/programs/expected` holds is what PyTorch prints."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[2] / "packages" / "torch" / "tests"
_FILE = TESTS / "test_torch_programs.py"
_spec = importlib.util.spec_from_file_location("programs_on_plait", _FILE)
assert _spec is not None and _spec.loader is not None
on_plait = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(on_plait)


@pytest.mark.parametrize("name", on_plait.NAMES)
def test_expected_is_the_output_of_pytorch(name: str, tmp_path: pathlib.Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(on_plait.PROGRAMS / f"{name}.py")],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    expected = (on_plait.PROGRAMS / "expected" / f"{name}.txt").read_text()
    on_plait.assert_alike(done.stdout, expected)
