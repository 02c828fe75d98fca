"""Saves that are killed and interrupted at random times: the old checkpoint loads, or the new one.

The saves run in a child that imports once and is forked for each round, so a round is short.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from checkpoint_saves import (
    KINDS,
    PARTS,
    check_what_is_left,
    in_child,
    save,
    status_of,
    version_of,
)
from test_busy_ranks import ENVIRONMENT, launcher

import plait_core as pc
import plait_distributed as dist
import plait_distributed.checkpoint as dcp
from plait_distributed.device_mesh import init_device_mesh
from plait_distributed.tensor import Shard, distribute_tensor


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the checkpoint is; nothing else may be there in the end."""
    return tmp_path / "m.index.json"


def duration(path: Path, kind: str) -> float:
    """Save twice, which imports what is needed, and return how long the second time took."""
    save(0, path, kind)
    version_of(path)
    begin = time.perf_counter()
    save(0, path, kind)
    return time.perf_counter() - begin


@pytest.mark.parametrize("kind", KINDS)
def test_killed(rounds: Any, path: Path, kind: str) -> None:
    longest = 1.3 * duration(path, kind) + 0.001
    version, most = 0, 0
    for new, rng in enumerate(rounds, 1):

        def work(new: int = new) -> None:
            save(new, path, kind)

        child = in_child(work)
        time.sleep(rng.uniform(0, longest))
        os.kill(child, signal.SIGKILL)
        status_of(child)
        result = version_of(path)
        assert result in (version, new), f"{result} instead of {version} or {new}"
        version = result
        most = max(most, len(os.listdir(path.parent)))
    # the checkpoint, and what one killed save left: the next one removes it before it writes
    assert most <= (3 * PARTS + 4 if kind == "shards" else 4), most
    check_what_is_left(path, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_interrupted(rounds: Any, path: Path, kind: str) -> None:
    """Ctrl-C, once or twice, in a process that goes on and saves again."""
    longest = 1.3 * duration(path, kind) + 0.001
    version, number = 0, 0
    for rng in rounds:
        number += 10
        first = number

        def work(first: int = first) -> None:
            text = 0
            for new in range(first, first + 5):
                try:
                    save(new, path, kind)
                    text = new
                except KeyboardInterrupt:
                    pass
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            result = version_of(path)
            assert text <= result, f"{result}, but {text} was saved"
            check_what_is_left(path, kind)

        child = in_child(work)
        for _ in range(rng.randrange(1, 6)):
            time.sleep(rng.choice((0.0, rng.uniform(0, longest))))
            os.kill(child, signal.SIGINT)
        status = status_of(child)
        # one that came before or after the loop ends the child, which is no finding
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
            assert version_of(path) == -1
            save(version := number + 9, path, kind)
            continue
        result = version_of(path)
        assert result in (version, -1, *range(first, first + 5)), result
        version = result
    check_what_is_left(path, kind)


@pytest.mark.parametrize("kind", ["shards", "folder", "folder_async"])
def test_many_processes_save_to_one_place(rounds: Any, path: Path, kind: str) -> None:
    """Some of them are killed; none takes another's files."""
    longest = 2 * duration(path, kind)
    for rng in rounds:

        def work() -> None:
            for _ in range(3):
                save(os.getpid(), path, kind)

        children = [in_child(work) for _ in range(3)]
        killed = rng.choice(children) if rng.random() < 0.7 else None
        time.sleep(rng.uniform(0, longest))
        if killed:
            os.kill(killed, signal.SIGKILL)
        for child in children:
            status = status_of(child)
            assert child == killed or status == 0
        assert version_of(path) in (0, -1, *children)
    check_what_is_left(path, kind)


def ranks_save(rank: int, where: str, folder: Path, first: int, said: Path) -> None:
    """Save again and again, in both ways; note what is complete in a file of the rank."""
    dist.init_process_group("gloo", where, 20.0, 2, rank)
    mesh = init_device_mesh("cpu", (2,))
    said.write_text(str(first - 1))
    for version in range(first, first + 20):
        x = distribute_tensor(pc.full((6,), float(version)), mesh, [Shard(0)])
        state = {"x": x, "version": version, f"own {rank}": pc.full((3,), float(version))}
        save = dcp.save if version % 2 else dcp.async_save
        ended = save(state, checkpoint_id=folder)
        if save is dcp.async_save:
            ended.result()
        said.write_text(str(version))


def version_of_ranks(folder: Path) -> int:
    results = {"x": pc.zeros(6), "version": 0, "own 0": pc.zeros(3), "own 1": pc.zeros(3)}
    dcp.load(results, checkpoint_id=folder, no_dist=True)
    version = int(results["version"])
    assert {*results["x"].tolist(), *results["own 0"].tolist(), *results["own 1"].tolist()} == {
        version
    }
    return version


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_ranks_that_save_together(rounds: Any, tmp_path: Path, number: int) -> None:
    """One of two ranks is killed or interrupted at any time: the checkpoint is whole, and not older
    than what `save` called complete on any rank.
    """
    folder, last = tmp_path / "folder", 0
    for rng in rounds:
        where, text = f"shm:attack {rng.random()}", [tmp_path / "said 0", tmp_path / "said 1"]
        children = [
            in_child(partial(ranks_save, rank, where, folder, last + 1, text[rank]))
            for rank in range(2)
        ]
        # ranks that are lost while they meet are another attack's business
        while not all(file.exists() for file in text):
            for child in children:  # one that ended left no file to wait for
                assert os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.4))
        os.kill(rng.choice(children), number)
        for child in children:
            status_of(child)
        ended = max(int(file.read_text() or "0") for file in text)
        version = version_of_ranks(folder) if ended or (folder / ".metadata").exists() else 0
        assert ended <= version <= last + 20, f"{version} after {last}, and {ended} ended"
        last = version
        for file in text:
            file.unlink()
    dcp.save({"x": 1}, checkpoint_id=folder, no_dist=True)
    assert len(os.listdir(folder)) == 2


INTERRUPTED = f"""
import os, random, sys
sys.path.insert(0, {str(Path(__file__).parents[2] / "packages" / "distributed" / "tests")!r})
import interrupted_ranks, plait_core as pc, plait_distributed as dist
dist.init_process_group(sys.argv[1], timeout=60)
folder, source, rank = sys.argv[2], random.Random(int(sys.argv[3])), dist.get_rank()
state = {{"both": pc.ones(50), f"own {{rank}}": pc.zeros(9)}}
lines = {{}}
for kind in ("save", *(source.choice(interrupted_ranks.KINDS) for _ in range(20))):
    victim = source.randrange(2)
    if kind not in lines:
        lines[kind] = interrupted_ranks.run(kind, state, folder, rank == victim, 0)
    at = 1 + source.randrange(lines[kind])
    interrupted_ranks.run(kind, state, folder, rank == victim, at)
    dist.checkpoint.load(state, checkpoint_id=folder, no_dist=True)
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.parametrize("provider", ["shared_memory", "ucx", "mpi"])
def test_a_rank_is_interrupted_at_any_line(rounds: Any, provider: str, tmp_path: Path) -> None:
    """It goes on; the other one does not wait for it, and the checkpoint can be loaded."""
    program = tmp_path / "program.py"
    program.write_text(INTERRUPTED)
    for source in rounds:
        folder = tmp_path / str(source.random())
        command = [*launcher(provider), str(program), provider]
        done = subprocess.run(
            [*command, str(folder), str(source.randrange(1 << 30))],
            env={**os.environ, **ENVIRONMENT},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
