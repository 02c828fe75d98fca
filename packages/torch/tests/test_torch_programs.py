"""Programs written for PyTorch print the same on plait.

``programs/expected`` holds what PyTorch printed (tests/oracle keeps it up to date). Lines that
begin with ``#`` depend on random streams and are not compared; the programs assert what must hold.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import pytest

PROGRAMS = pathlib.Path(__file__).parent / "programs"
NAMES = sorted(path.stem for path in PROGRAMS.glob("*.py"))
NUMBER = re.compile(r"-?\b\d+\.?\d*(?:e[+-]?\d+)?")


def compared(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("#")]


# programs of few steps, whose numbers have PyTorch's digits but for the order of sums
FEW_STEPS = {"seeded_training": {"rel": 2e-5, "abs": 1e-6}}


def assert_alike(ours: str, theirs: str, rel: float = 5e-3, abs: float = 2e-3) -> None:
    """Assert the same lines, numbers within the rounding of many steps of training."""
    one, two = compared(ours), compared(theirs)
    assert len(one) == len(two), f"{len(one)} lines, {len(two)} were expected:\n{ours}"
    for line, expected in zip(one, two, strict=True):
        assert NUMBER.sub("#", line) == NUMBER.sub("#", expected)
        for a, b in zip(NUMBER.findall(line), NUMBER.findall(expected), strict=True):
            assert float(a) == pytest.approx(float(b), rel=rel, abs=abs), f"{line}\n{expected}"


def run(path: pathlib.Path, folder: pathlib.Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "plait_torch", str(path)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=folder,
        env={**os.environ, "PLAIT_NUM_THREADS": "1"},
    )


def test_the_programs_are_there() -> None:
    assert len(NAMES) >= 30
    assert sorted(path.stem for path in (PROGRAMS / "expected").glob("*.txt")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_program_prints_the_same_as_on_pytorch(name: str, tmp_path: pathlib.Path) -> None:
    path = PROGRAMS / f"{name}.py"
    done = run(path, tmp_path)
    if name == "actor_critic" and importlib.util.find_spec("plait.distributions") is None:
        assert "torch.distributions is not available" in done.stderr
        return
    if name.startswith("rpc_") and importlib.util.find_spec("plait_ray") is None:
        assert "pip install plait-ray" in done.stderr
        return
    if name.startswith("rpc_") and importlib.util.find_spec("ray") is None:
        assert "pip install ray" in done.stderr
        return
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    expected = (PROGRAMS / "expected" / f"{name}.txt").read_text()
    assert_alike(done.stdout, expected, **FEW_STEPS.get(name, {}))


def test_differences_are_seen() -> None:
    assert_alike("loss 1.0001\n# 3", "loss 1.0\n# 4")
    for ours in ("loss 1.1", "loss 1.0 1.0", "lost 1.0", "loss 1.0\nloss 1.0"):
        with pytest.raises(AssertionError):
            assert_alike(ours, "loss 1.0")
    with pytest.raises(AssertionError):
        assert_alike("loss 1.0001", "loss 1.0", **FEW_STEPS["seeded_training"])
