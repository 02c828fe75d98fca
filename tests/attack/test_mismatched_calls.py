"""Random pairs of calls that do not match, and a hundred collectives behind each, on any provider.

A group of 17 hands calls on (see docs/design/0041), which smaller ones do not.
"""

from __future__ import annotations

import os
import pathlib
import random
import subprocess
import sys
from typing import Any

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from test_busy_ranks import ENVIRONMENT

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from providers import find_mpiexec, skip_without_ucx

TESTS = pathlib.Path(__file__).parents[2] / "packages" / "distributed" / "tests"
PAIRS = 20  # of calls, in one job
COLLECTIVES = 100
PROGRAM = f"""
import os, random, sys
sys.path.insert(0, {str(TESTS)!r})
import mismatched_calls, plait_distributed as dist
dist.init_process_group(sys.argv[1], timeout=60)
seed, pairs, collectives = map(int, sys.argv[2:])
some = random.Random(seed).sample(mismatched_calls.pairs_of_calls(), pairs)
rank, size = dist.get_rank(), dist.get_world_size()
wrong = mismatched_calls.sweep(rank, size, seed, some, collectives)
text = "; ".join(wrong[:5]) or "right"
os.write(1, f"{{text}}\\n".encode())
dist.barrier()
dist.destroy_process_group()
"""


def launcher(provider: str, size: int) -> list[str]:
    """Return what starts the processes for a provider; skip the test where there is none."""
    if provider == "ucx":
        skip_without_ucx()
    if provider == "mpi":
        return [find_mpiexec(), "-n", str(size), sys.executable]
    return [sys.executable, "-m", "plait_distributed.run", "-n", str(size)]


@pytest.mark.parametrize("provider", ["shared_memory", "ucx", "mpi"])
@pytest.mark.parametrize("many", [False, True], ids=["few ranks", "17 ranks"])
def test_values_behind_mismatched_calls(
    rounds: Any, provider: str, many: bool, tmp_path: pathlib.Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    for source in rounds:
        size, pairs, collectives = _draw(source, many)
        seed = source.randrange(1 << 30)
        arguments = [provider, str(seed), str(pairs), str(collectives)]
        done = subprocess.run(
            [*launcher(provider, size), str(program), *arguments],
            env={**os.environ, **ENVIRONMENT},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.split("\n") == ["right"] * size + [""]


def _draw(source: random.Random, many: bool) -> tuple[int, int, int]:
    """Return the numbers of ranks, of pairs, and of collectives behind each."""
    return (17, 4, 5) if many else (source.randint(2, 5), PAIRS, COLLECTIVES)
