"""Groups that go on from others, that are made again, and processes that are busy."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import time
from typing import Any

import numpy as np
import pytest

import plait_abi
import plait_ucx

pytestmark = pytest.mark.usefixtures("ucx")
assert plait_ucx
SIZE = 3
LONG = 120.0  # seconds, for machines that are busy; a test that passes waits for none of them


def _serve(end: Any, task: Any, where: str, rank: int) -> None:
    try:
        end.send(task(where, rank))
    except Exception as error:
        end.send(f"{type(error).__name__}: {error}")
    end.poll(2 * LONG)  # it lives until all have answered: its end would be a loss for others


def run(task: Any) -> list[Any]:
    """Return what a task returns in each of several processes."""
    context = multiprocessing.get_context("spawn")
    where, ends = f"local:worlds-{os.getpid()}-{time.monotonic_ns()}", []
    for rank in range(SIZE):
        end, other = context.Pipe()
        context.Process(target=_serve, args=(other, task, where, rank), daemon=True).start()
        other.close()
        ends.append(end)
    return [end.recv() if end.poll(2 * LONG) else "it hangs" for end in ends]


def opened(where: str, rank: int, size: int = SIZE) -> plait_abi.Communicator:
    return plait_abi.Communicator.open("ucx", where, rank, size, LONG)


def total(group: plait_abi.Communicator, value: float) -> float:
    x = np.full(1000, value, np.float32)
    group.start("all_reduce", [x], [x])
    return float(x[0])


def made_again(where: str, rank: int) -> list[float]:
    results = []
    for name in (where, where, f"{where}~1"):  # each is a world of its own
        group = opened(name, rank)
        results.append(total(group, rank))
        if rank:
            part = opened(f"{name}/1", rank - 1, 2)
            results.append(total(part, rank))
            part.close()
        group.close()
    return results


def test_groups_are_made_again() -> None:
    assert run(made_again) == [[3.0] * 3, [3.0] * 6, [3.0] * 6]


def busy(where: str, rank: int) -> float:
    group = opened(where, rank)
    total(group, 1.0)
    if rank == 1:
        ctypes.PyDLL(None).sleep(5)  # with the interpreter's lock, longer than a silence may be
    return total(group, 1.0)


def test_who_holds_the_interpreters_lock_is_not_lost() -> None:
    assert run(busy) == [3.0] * SIZE


kept: list[plait_abi.Communicator] = []


def leaving(where: str, rank: int) -> str:
    group = opened(where, rank)
    kept.append(group)  # what is dropped is left, and others would be told that this one left
    group.start("barrier")
    if rank == 2:
        group.close()
        return ""
    try:
        total(group, 1.0)
    except plait_abi.PlaitError as error:
        return str(error)
    return "nobody noticed"


def test_who_leaves_is_named() -> None:
    first, second, _ = run(leaving)
    assert "rank 2 (pid " in first and "left" in first
    assert "rank 2 (pid " in second and "left" in second
