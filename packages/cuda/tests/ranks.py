"""Programs whose ranks are processes, each with a device of the emulation of its own."""

from __future__ import annotations

import os
import pathlib
import secrets
import subprocess
import sys
import textwrap

__all__ = ["run_ranks"]

START = """
import os, signal, sys, time
sys.path.append({tests!r})
import plait, plait_abi
import plait_distributed as dist
from plait_distributed._errors import DistBackendError

WHERE = {where!r}
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])

def join(timeout=120.0, backend="nccl"):
    plait.cuda.set_device(rank)
    dist.init_process_group(backend, WHERE, timeout, size, rank)

def refused(kind, call, *texts):
    try:
        call()
    except kind as error:
        for text in texts:
            assert text in str(error), (text, str(error))
        return error
    raise AssertionError(f"no {{kind.__name__}}")
"""


def run_ranks(
    size: int,
    code: str,
    folder: pathlib.Path,
    *,
    killed: tuple[int, ...] = (),
    launcher: tuple[str, ...] = (),
    timeout: float = 600.0,
    **environment: str,
) -> list[str]:
    """Run a program in `size` processes, which must end well but for those in `killed`; return what
    they printed, by rank.

    Args:
        size: the number of ranks.
        code: the program. It has `rank`, `size`, `WHERE`, the name of a place to meet at, `join()`,
            which makes the group of all ranks there, and `refused`. With a launcher it has `WHERE`
            alone.
        folder: for the program's file.
        killed: ranks that are killed.
        launcher: words for the interpreter before the program's name.
        timeout: seconds until the test fails.
        environment: more variables.
    """
    path = folder / "program.py"
    where = f"shm:{secrets.token_hex(8)}"
    start = START.format(tests=str(pathlib.Path(__file__).parent), where=where)
    if launcher:  # it imports what it needs
        start = f"WHERE = {where!r}\n"
    path.write_text(start + textwrap.dedent(code) + "\nprint('done', flush=True)\n")
    fixed = {
        "PLAIT_CUDA_EMULATION": "1",
        "PLAIT_CUDA_DEVICES": str(min(size, 4)),
        "PLAIT_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "WORLD_SIZE": str(size),
    }
    processes = [
        subprocess.Popen(
            [sys.executable, *launcher, str(path)],
            env={**os.environ, **fixed, "RANK": str(rank), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]
    printed, failures = [], []
    try:
        for rank, process in enumerate(processes):
            out, errors = process.communicate(timeout=timeout)
            printed.append(out)
            ended_well = process.returncode == 0 and out.endswith("done\n")
            if not ended_well and rank not in killed:
                failures.append(f"rank {rank}: exit {process.returncode}\n{out}{errors}")
    finally:
        for process in processes:
            process.kill()
    assert not failures, "\n".join(failures)
    return printed
