"""Runs functions as the ranks of a group, in processes of their own."""

from __future__ import annotations

import contextlib
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
        dist.init_process_group(
            init_method=where, rank=rank, world_size=size, timeout=timeout, backend="gloo"
        )
        answer = work(rank)
    except BaseException as error:
        answer = type(error)(*error.args)  # without the modules that errors note
    answers.send(answer)
    answers.close()


def together(size: int, work: Any, timeout: float = 20.0) -> list[Any]:
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
    found: list[Any] = []
    for receiver in ends:
        answer = None
        with contextlib.suppress(EOFError):
            assert receiver.poll(60), "a rank hangs"
            answer = receiver.recv()
        found.append(answer)
    for process in processes:
        process.join()
    return found


@pytest.fixture(name="ranks")
def running_ranks() -> Ranks:
    """Run a function in several processes of a group; errors are raised."""

    def run(size: int, work: Any, **options: Any) -> list[Any]:
        found = together(size, work, **options)
        for rank, answer in enumerate(found):
            if isinstance(answer, BaseException):
                raise AssertionError(f"rank {rank}") from answer
        return found

    return run


@pytest.fixture(name="outcomes")
def outcomes_of_ranks() -> Ranks:
    """As `ranks`; errors are returned."""
    return together


@pytest.fixture(name="alone")
def group_of_one() -> Any:
    """A group of this process alone."""
    dist.init_process_group(init_method=f"shm:{secrets.token_hex(8)}", rank=0, world_size=1)
    yield
    if dist.is_initialized():
        dist.destroy_process_group()
