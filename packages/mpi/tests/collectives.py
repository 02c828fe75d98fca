"""Collectives of all processes of a job, with tensors of many sizes; each prints "done"."""

from __future__ import annotations

import numpy as np

import plait_abi
import plait_mpi

RANK, SIZE = plait_mpi.rank(), plait_mpi.size()
ROOT = SIZE - 1


def numbers(rank: int, count: int) -> np.ndarray:
    return np.random.default_rng([rank, count]).standard_normal(count).astype(np.float32)


def in_order(count: int) -> np.ndarray:
    """The sum in the order of the ranks, whose bits every provider gives."""
    total = numbers(0, count)
    for rank in range(1, SIZE):
        total = total + numbers(rank, count)
    return total


def check(group: plait_abi.Communicator, count: int) -> None:
    x = numbers(RANK, count)
    group.start("all_reduce", [x], [x])
    assert x.tobytes() == in_order(count).tobytes(), count
    wide = np.zeros((count, 2), np.float32)
    wide[:, 0] = numbers(RANK, count)
    group.start("all_reduce", [wide[:, 0]], [wide[:, 0]])
    assert wide[:, 0].tobytes() == in_order(count).tobytes(), count
    assert not wide[:, 1].any()
    back = numbers(RANK, count)[::-1]
    parts = [np.zeros((count, 3), np.float32)[:, 1] for _ in range(SIZE)]
    group.start("all_gather", [back], parts)
    for rank, part in enumerate(parts):
        assert (part == numbers(rank, count)[::-1]).all(), (count, rank)
    # in place: what goes to another rank lies where something of another one comes
    blocks = [numbers(RANK, count) + rank for rank in range(SIZE)]
    group.start("all_to_all", blocks, blocks[::-1])
    for rank, block in enumerate(blocks[::-1]):
        assert (block == numbers(rank, count) + RANK).all(), (count, rank)
    y = numbers(RANK, count)
    group.start("broadcast", [y], [y], peer=ROOT)
    assert (y == numbers(ROOT, count)).all(), count
    z = np.zeros(count, np.float32)
    work = group.start(
        "send", [numbers(RANK, count)[::-1]], peer=(RANK + 1) % SIZE, tag=5, asynchronous=True
    )
    group.start("recv", outputs=[z], peer=(RANK - 1) % SIZE, tag=5)
    assert work is not None
    work.wait()
    assert (z == numbers((RANK - 1) % SIZE, count)[::-1]).all(), count


def main() -> None:
    group = plait_abi.Communicator.open("mpi", "mpi:all", RANK, SIZE, 60.0)
    for count in (1, 300, 20_000, 700_001, 3_000_003):
        check(group, count)
    # groups of some processes, in another order, at once
    part = plait_abi.Communicator.open("mpi", f"mpi:{RANK % 2}", (SIZE - 1 - RANK) // 2, SIZE // 2)
    x, y = np.ones(100_000), np.ones(200_000)
    works = [
        part.start("all_reduce", [x], [x], asynchronous=True),
        group.start("all_reduce", [y], [y], asynchronous=True),
    ]
    for work in works[:: -1 if RANK % 2 else 1]:
        assert work is not None
        work.wait()
    assert (x == SIZE // 2).all() and (y == SIZE).all()
    print("done", flush=True)


main()
