"""Names that only `torch` has, beside PyTorch's: points, counted operations, parts of programs."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest

PROGRAM = pathlib.Path(__file__).parent / "torch_only_program.py"


def results(*before: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *before, str(PROGRAM)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


@pytest.fixture(scope="module", name="both")
def both_results() -> tuple[dict[str, Any], dict[str, Any]]:
    return results("-m", "plait_torch"), results()


PARTS = ("sobol", "scrambled", "flops", "trees", "divergences", "functions", "parts", "lobpcg")


@pytest.mark.parametrize("part", PARTS)
def test_results_agree(both: tuple[dict[str, Any], dict[str, Any]], part: str) -> None:
    ours, theirs = (each[part] for each in both)
    assert ours and set(ours) == set(theirs)
    for name in theirs:
        if isinstance(theirs[name], list) and theirs[name] and isinstance(theirs[name][0], float):
            assert ours[name] == pytest.approx(theirs[name], rel=2e-5, abs=1e-6), name
        else:
            assert ours[name] == theirs[name], name


def test_the_parts_are_all(both: tuple[dict[str, Any], dict[str, Any]]) -> None:
    assert set(both[0]) == set(both[1]) == set(PARTS)
