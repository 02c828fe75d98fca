"""The prediction for many cores: how pieces are dealt out, and that a step can be recorded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import cores  # noqa: E402


@pytest.mark.parametrize(
    ("pieces", "threads", "expected"),
    [
        ([3.0, 2.0], 1, 5),
        ([3.0, 2.0], 2, 3),
        ([3.0, 2.0], 64, 3),
        ([1.0] * 64, 64, 1),
        ([1.0] * 65, 64, 2),
        ([4.0, 1.0, 1.0, 1.0], 2, 4),  # the second thread takes one of the first's
        ([1.0, 1.0, 3.0, 3.0], 2, 5),  # a piece that has begun is not cut
        ([9.0, 1.0, 1.0, 1.0, 1.0, 1.0], 3, 9),
        ([], 4, 0),
    ],
)
def test_pieces_are_dealt_out_as_the_pool_does(
    pieces: list[float], threads: int, expected: float
) -> None:
    assert cores.makespan(pieces, threads) == expected


def test_a_step_is_its_jobs_and_what_lies_between() -> None:
    jobs = [cores.Job(0, 40, np.full(4, 10.0)), cores.Job(50, 90, np.full(2, 20.0))]
    step = cores.Step(100, jobs)
    assert step.serial == 20
    assert cores.predicted(step, 1, cores.Cost(5, 1)) == 100
    assert cores.predicted(step, 2, cores.Cost(5, 1)) == 20 + 20 + 20 + 2 * (5 + 2)


def test_a_model_is_recorded() -> None:
    command = [sys.executable, str(BENCHMARKS / "cores.py"), "neumf", "--batch", "256"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert " 64 threads " in done.stdout and "optimizer" in done.stdout
