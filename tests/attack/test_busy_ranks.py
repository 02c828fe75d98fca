"""A rank that holds Python's lock, in C, for up to a minute: it is slow, and not lost.

The time is PLAIT_ATTACK_SECONDS, from 6, which is more than a stopped rank has, to 60.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from providers import find_mpiexec, skip_without_ucx

PROGRAM = """
import ctypes, os, sys, time
import plait_core as pc, plait_distributed as dist
dist.init_process_group(sys.argv[1], timeout=200)
x = pc.ones(1000)
dist.all_reduce(x)
began = time.monotonic()
if dist.get_rank() == 1:
    ctypes.PyDLL(None).sleep(int(sys.argv[2]))
dist.all_reduce(x)
waited = time.monotonic() - began >= int(sys.argv[2]) - 2  # they do not begin at once
text = f"{dist.get_default_group().provider} {x[-1].item():g} {waited}"
os.write(1, f"{text}\\n".encode())
dist.barrier()
dist.destroy_process_group()
"""
ENVIRONMENT = {
    "PLAIT_NUM_THREADS": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def launcher(provider: str) -> list[str]:
    """Return what starts two processes for a provider; skip the test where there is none."""
    if provider == "ucx":
        skip_without_ucx()
    if provider != "mpi":
        return [sys.executable, "-m", "plait_distributed.run", "-n", "2"]
    return [find_mpiexec(), "--with-ft", "ulfm", "-n", "2", sys.executable]


@pytest.mark.parametrize(
    ("provider", "transports"),
    [("shared_memory", ""), ("ucx", "all"), ("ucx", "tcp,self"), ("mpi", "")],
    ids=["shared memory", "UCX", "UCX over TCP", "MPI"],
)
def test_a_rank_that_holds_the_interpreter_lock(
    rounds: Any, provider: str, transports: str, tmp_path: pathlib.Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    seconds = int(min(60, max(6, rounds.seconds)))
    done = subprocess.run(
        [*launcher(provider), str(program), provider, str(seconds)],
        env={**os.environ, **ENVIRONMENT, "UCX_TLS": transports or "all"},
        capture_output=True,
        text=True,
        timeout=seconds + 120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [f"{provider} 4 True"] * 2
