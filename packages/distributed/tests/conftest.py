"""Runs functions as the ranks of a group, in processes of their own.

PLAIT_TEST_BACKEND names another provider than shared memory, as `test_over_providers.py` does.

With PLAIT_TEST_OVER_MPI in the environment pytest itself runs in several processes of one job of
MPI; the same functions run in them, over MPI. `test_over_providers.py` starts it so.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import secrets
from collections.abc import Callable
from typing import Any

import pytest

import plait_core as pc
import plait_distributed as dist
import plait_multiprocessing as mp

Ranks = Callable[..., list[Any]]


def _child(answers: Any, work: Any, where: str, rank: int, size: int, timeout: float) -> None:
    pc.set_num_threads(1)
    try:
        backend = os.environ.get("PLAIT_TEST_BACKEND", "gloo")
        dist.init_process_group(backend, where, timeout, size, rank)
        answer = work(rank)
    except BaseException as error:
        answer = type(error)(*error.args)  # without the modules that errors note
    answers.send(answer)
    answers.close()


def together(size: int, work: Any, timeout: float = 120.0) -> list[Any]:
    """Run ``work(rank)`` in `size` processes of one group; return what they return or raise, by
    rank, and None for a process that was killed.
    """
    context = mp.get_context("fork")
    where = f"shm:tests {secrets.token_hex(8)}"
    processes, ends = [], []
    for rank in range(size):
        receiver, sender = context.Pipe(False)
        process = context.Process(target=_child, args=(sender, work, where, rank, size, timeout))
        process.start()
        sender.close()
        processes.append(process)
        ends.append(receiver)
    results: list[Any] = []
    for receiver in ends:
        answer = None
        with contextlib.suppress(EOFError):
            assert receiver.poll(240), "a rank hangs"
            answer = receiver.recv()
        results.append(answer)
    for process in processes:
        process.join()
    return results


class _Job:
    """The processes of a job of MPI, in each of which pytest runs the same tests."""

    def __init__(self) -> None:
        import plait_abi
        import plait_mpi

        self.rank, self.size = plait_mpi.rank(), plait_mpi.size()
        self._all = plait_abi.Communicator.open("mpi", "mpi:tests", self.rank, self.size, 600.0)
        self._count = 0

    def together(self, size: int, work: Any, timeout: float = 120.0) -> list[Any]:
        """Do the same as `together`; every process gets all answers."""
        assert size <= self.size
        self._count += 1
        answer = None
        if self.rank < size:
            try:
                dist.init_process_group("mpi", f"mpi:test {self._count}", timeout, size, self.rank)
                answer = work(self.rank)
            except BaseException as error:
                answer = type(error)(*error.args)
            if dist.is_initialized():
                dist.destroy_process_group()
        return [pickle.loads(each) for each in self._exchange(pickle.dumps(answer))][:size]

    def _exchange(self, data: bytes) -> list[bytes]:
        sizes = [pc.zeros(1, dtype=pc.int64) for _ in range(self.size)]
        self._all.start("all_gather", [pc.tensor([len(data)])], sizes)
        longest = max(int(size.item()) for size in sizes)
        own = pc.frombuffer(bytearray(data.ljust(longest, b"\0")), dtype=pc.uint8)
        results = [pc.empty(longest, dtype=pc.uint8) for _ in sizes]
        self._all.start("all_gather", [own], results)
        return [x.numpy().tobytes()[: int(n.item())] for x, n in zip(results, sizes, strict=True)]


@pytest.fixture(name="run_ranks", scope="session")
def how_ranks_are_run() -> Ranks:
    """`together`, or what does its work over MPI."""
    return _Job().together if "PLAIT_TEST_OVER_MPI" in os.environ else together


@pytest.fixture(name="ranks")
def running_ranks(run_ranks: Ranks) -> Ranks:
    """Run a function in several processes of a group; errors are raised."""

    def run(size: int, work: Any, **options: Any) -> list[Any]:
        result = run_ranks(size, work, **options)
        for rank, answer in enumerate(result):
            if isinstance(answer, BaseException):
                raise AssertionError(f"rank {rank}: {answer!r}") from answer
        return result

    return run


@pytest.fixture(name="outcomes")
def outcomes_of_ranks(run_ranks: Ranks) -> Ranks:
    """Do the same as `ranks`; errors are returned."""
    return run_ranks


@pytest.fixture(name="alone")
def group_of_one() -> Any:
    """A group of this process alone."""
    dist.init_process_group(init_method=f"shm:{secrets.token_hex(8)}", rank=0, world_size=1)
    yield
    if dist.is_initialized():
        dist.destroy_process_group()
