"""Ranks that are killed or stopped while ranks meet, and while they save: the others name them.

With a group's timeout that is longer than the test may take: nobody waits for that.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import secrets
import signal
import sys
import time
from typing import Any

import pytest

import plait_abi
import plait_core as pc
import plait_distributed as dist
import plait_multiprocessing as mp

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import dying_ranks

TIMEOUT = 50.0
CASES = [
    *((phase, "kill") for phase in dying_ranks.PHASES),
    *((phase, "stop") for phase in dying_ranks.PHASES if "opens" in phase or phase == "split"),
]  # tests/attack stops ranks in all of them


@pytest.mark.parametrize(("phase", "how"), CASES)
def test_a_killed_rank_is_named_in_every_phase(
    outcomes: Any, phase: str, how: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "stop" and "PLAIT_TEST_BACKEND" in os.environ:
        pytest.skip("over UCX a stopped rank is lost after 3.5 s")
    monkeypatch.setenv("PLAIT_STOPPED_TIMEOUT", "0.2")
    found = outcomes(
        dying_ranks.SIZE,
        lambda rank: dying_ranks.go_through(rank, phase, how, tmp_path),
        timeout=TIMEOUT,
    )
    assert found[dying_ranks.VICTIM] is None
    for rank in (0, 2):
        kind, ranks, text = found[rank]
        assert (kind, ranks) == ("RankLost", (dying_ranks.VICTIM,)), (rank, text)


@pytest.mark.parametrize("way", ["kill", "leave"])
def test_a_killed_rank_is_a_field_of_the_error(outcomes: Any, way: str) -> None:
    """For each call in which a rank may wait, and each that comes after the loss."""
    x = pc.ones(3)

    def all_calls(group: Any) -> list[Any]:
        return [
            lambda: group.start("all_reduce", [x], [x]),
            lambda: group.start("broadcast", [], [x], peer=1),
            lambda: group.start("recv", [], [x], peer=1),
            lambda: group.start("send", [x], [], peer=1),
            lambda: group.start("barrier", asynchronous=True).wait(),
            lambda: group.split(0),
        ]

    def work(rank: int) -> Any:
        group = dist.get_default_group()
        pids = [peer.pid for peer in group.peers]
        dist.barrier()
        raw = group._raw
        if rank == 1:
            for other in (0, 2):  # they have ended the barrier
                raw.start("recv", [], [x], peer=other, tag=1)
            if way == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raw.close()
            time.sleep(1)
            return None
        raw.start("send", [x], [], peer=1, tag=1)
        found = []
        for call in all_calls(raw):
            try:
                call()
                found.append("no error")
            except plait_abi.PlaitError as error:
                found.append([(lost, pid == pids[1]) for lost, _, pid in error.lost])
        return found

    first, _, last = outcomes(3, work, timeout=TIMEOUT)
    assert first == last == [[(1, True)]] * 6


def test_a_text_that_reads_like_a_loss_is_none(outcomes: Any) -> None:
    def work(rank: int) -> Any:
        if rank == 0:
            dist.get_default_group().abort("rank 1 (pid 7) died, says the program")
        dist.barrier()

    for error in outcomes(2, work):
        assert type(error) is dist.DistBackendError and "says the program" in str(error)


def _come(answers: Any, where: str, rank: int) -> None:
    try:
        backend = os.environ.get("PLAIT_TEST_BACKEND", "gloo")
        dist.init_process_group(backend, where, TIMEOUT, 4, rank)
    except Exception as error:
        answers.send((type(error).__name__, getattr(error, "ranks", ()), str(error)))


def _connections(pid: int) -> set[str]:
    """Return the inodes of a process's sockets that are connected to another one."""
    links, found = set(), set()
    for path in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
            links.add(os.readlink(path))
    for table, state, connected, inode in (
        ("unix", 5, "03", 6),
        ("tcp", 3, "01", 9),
        ("tcp6", 3, "01", 9),
    ):
        lines = pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        rows = [line.split() for line in lines]
        found |= {f"socket:[{row[inode]}]" for row in rows if row[state] == connected}
    return found & links


def _shared_memory(pid: int) -> set[str]:
    """Return the inodes of the memory that a process shares with others."""
    rows = [line.split() for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()]
    return {row[4] for row in rows if row[1] == "rw-s"}


def _state(pid: int) -> str:
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


def _wait_until_met(pids: list[int]) -> None:
    """Wait until all have joined, and wait for what comes.

    Then they have a block of shared memory, or over UCX all are connected to one of them.
    """
    connected, shared = _connections(os.getpid()), _shared_memory(os.getpid())  # inherited
    deadline = time.monotonic() + TIMEOUT / 2
    while not (
        set.intersection(*map(_shared_memory, pids)) - shared
        or any(len(_connections(pid) - connected) >= len(pids) - 1 for pid in pids)
    ):
        assert time.monotonic() < deadline, "the ranks do not meet"
        time.sleep(0.02)
    for pid in pids:  # who has joined says who it is before it sleeps
        while _state(pid) != "S":
            assert time.monotonic() < deadline, f"{pid} does not wait"
            time.sleep(0.002)


@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_rank_is_named_by_those_who_came(victim: int) -> None:
    """The fourth rank does not come, so that the others still wait."""
    context = mp.get_context("fork")
    where = f"shm:tests {secrets.token_hex(8)}"
    processes, ends = [], []
    for rank in range(3):
        receiver, sender = context.Pipe(False)
        processes.append(context.Process(target=_come, args=(sender, where, rank)))
        processes[-1].start()
        sender.close()
        ends.append(receiver)
    _wait_until_met([process.pid for process in processes])
    os.kill(processes[victim].pid, signal.SIGKILL)
    for rank in range(3):
        if rank != victim:
            assert ends[rank].poll(TIMEOUT / 2), "a rank hangs"
            kind, ranks, text = ends[rank].recv()
            assert (kind, ranks) == ("RankLost", (victim,)), text
    for process in processes:
        process.join()
