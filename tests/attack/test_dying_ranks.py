"""A rank is killed or stopped at a random time among groups that are made, divided, closed and
used, and checkpoints that are saved: all others get `RankLost` with its rank, within seconds.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from test_busy_ranks import ENVIRONMENT

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from providers import find_mpiexec, skip_without_ucx

SIZE = 4
# seconds, behind those that a stopped rank has; PLAIT_TEST_SOON=5 for what the guide says of a
# machine that is not busy
SOON = float(os.environ.get("PLAIT_TEST_SOON", "30"))
STOPPED = 3.5  # seconds: over messages, and by PLAIT_STOPPED_TIMEOUT in shared memory
PROGRAM = """
import contextlib, os, pathlib, random, signal, sys, threading, time
import plait_abi, plait_core as pc, plait_distributed as dist
import plait_distributed.checkpoint as dcp

provider, where, rank, seed, victim, how, folder = sys.argv[1:]
rank, seed, victim, folder = int(rank), int(seed), int(victim), pathlib.Path(folder)
if provider == "mpi":
    import plait_mpi
    rank = plait_mpi.rank()
size = 4
source = random.Random(seed)
dist.init_process_group(provider, where, 60, size, rank)
x = pc.ones(300_000)

def strike():
    (folder / "victim").write_text(f"{os.getpid()} {time.time()}")
    os.kill(os.getpid(), signal.SIGKILL if how == "kill" else signal.SIGSTOP)

def make(local=False):
    return dist.new_group(list(range(size)), use_local_synchronization=local)

def split():
    group = make()
    try:
        group._raw.split(0, rank).close()
    except plait_abi.PlaitError as error:
        raise group._explained(group.begin_call("split", "", ()), error) from None

def differ():
    with contextlib.suppress(dist.MismatchError):
        (dist.all_reduce if rank else dist.broadcast)(x)

actions = [
    lambda: make(),
    lambda: make(True),
    split,
    differ,
    lambda: dist.destroy_process_group(make()),
    lambda: dist.all_reduce(x, async_op=True).wait(),
    lambda: dist.all_gather_object([None] * size, "x" * 100),
    lambda: dcp.save({f"x{rank}": x}, checkpoint_id=folder / "a"),
    lambda: dcp.async_save({f"x{rank}": x}, checkpoint_id=folder / "b").result(),
]
dist.barrier()
delay = source.random() * 1.5
if rank == victim:
    threading.Timer(delay, strike).start()
text = ""
while not text:
    number = source.randrange(len(actions))
    if len(dist._world.open_groups()) > 20:
        for each in dist._world.open_groups()[1:]:
            dist.destroy_process_group(each)
    try:
        actions[number]()
    except Exception as error:
        came = time.time()
        found = folder / "victim"
        died = float(found.read_text().split()[1]) if found.exists() else 0.0
        ranks = getattr(error, "ranks", ())
        text = f"{type(error).__name__} {list(ranks)} {came - died:.2f} {number} {error}"
(folder / f"end {rank}").write_text(text)
while len(list(folder.glob("end *"))) < size - 1:
    time.sleep(0.01)
time.sleep(0.2)
os._exit(0)
"""


def start(provider: str, program: pathlib.Path, arguments: list[str]) -> list[Any]:
    """Start the ranks; return their processes, or that of the launcher."""
    environment = {**os.environ, **ENVIRONMENT, "PLAIT_STOPPED_TIMEOUT": str(STOPPED)}
    options: dict[str, Any] = {"env": environment, "stderr": subprocess.PIPE, "text": True}
    command = [sys.executable, str(program), provider]
    if provider == "mpi":
        # Open MPI's own files have names of process IDs, and a killed job leaves them
        environment["PRTE_MCA_prte_tmpdir_base"] = arguments[-1]
        before = [find_mpiexec(), "--with-ft", "ulfm", "-n", str(SIZE)]
        return [subprocess.Popen([*before, *command, "mpi:dying", "0", *arguments], **options)]
    where = f"shm:attack {os.getpid()} {arguments[0]}"
    return [
        subprocess.Popen([*command, where, str(rank), *arguments], **options)
        for rank in range(SIZE)
    ]


def end(processes: list[Any], folder: pathlib.Path) -> list[str]:
    """Kill what is left; return what the processes wrote to their standard errors."""
    victim = folder / "victim"
    if victim.exists():
        with contextlib.suppress(OSError):
            os.kill(int(victim.read_text().split()[0]), signal.SIGKILL)
    texts = []
    for process in processes:
        try:
            texts.append(process.communicate(timeout=60)[1])
        except subprocess.TimeoutExpired:
            process.kill()
            texts.append("it hangs: " + process.communicate()[1])
    return texts


@pytest.mark.parametrize("how", ["kill", "stop"])
@pytest.mark.parametrize("provider", ["shared_memory", "ucx", "mpi"])
def test_a_rank_ends_at_any_time(
    rounds: Any, provider: str, how: str, tmp_path: pathlib.Path
) -> None:
    if provider == "ucx":
        skip_without_ucx()
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    for source in rounds:
        folder = tmp_path / f"round{rounds.number}"
        folder.mkdir()
        victim = source.randrange(SIZE)
        arguments = [str(source.randrange(1 << 30)), str(victim), how, str(folder)]
        processes = start(provider, program, arguments)
        others = [rank for rank in range(SIZE) if rank != victim]
        _wait_for(folder, processes)
        texts = end(processes, folder)
        for rank in others:
            path = folder / f"end {rank}"
            assert path.exists(), (rank, texts)
            kind, rest = path.read_text().split(" ", 1)
            lost, after = rest[1 : rest.index("]")], float(rest[rest.index("]") + 1 :].split()[0])
            assert kind == "RankLost" and str(victim) in lost.split(", "), path.read_text()
            assert after < SOON + (STOPPED if how == "stop" else 0.0), path.read_text()


def _wait_for(folder: pathlib.Path, processes: list[Any]) -> None:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and len(list(folder.glob("end *"))) < SIZE - 1:
        if all(process.poll() is not None for process in processes):
            return
        time.sleep(0.05)
