"""Ranks that are killed, stopped or busy: who is lost, and that nothing hangs."""

from __future__ import annotations

import ctypes
import os
import pathlib
import signal
import time
import types
from typing import Any, cast

import pytest

import plait_core as pc
import plait_distributed as dist
import plait_nn as nn
from plait_distributed._peers import Peer
from plait_distributed._process_group import ProcessGroup, _ranks_in
from plait_distributed.algorithms.join import Join
from plait_distributed.nn import functional as with_gradients
from plait_distributed.optim import ZeroRedundancyOptimizer


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_STOPPED_TIMEOUT", "0.4")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def wait_for(path: pathlib.Path) -> None:
    deadline = time.monotonic() + 100
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)


def test_a_stopped_rank_is_lost(outcomes: Any) -> None:
    def work(rank: int) -> Any:
        others = dist.new_group([0, 2])
        dist.barrier()
        if rank == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
        try:
            dist.all_reduce(pc.ones(3))
        except dist.RankLost as error:
            dist.barrier(others)  # both have heard of it
            if rank == 0:
                os.kill(dist.get_default_group().peers[1].pid, signal.SIGKILL)
            return str(error), error.ranks
        return None

    first, stopped, last = outcomes(3, work)
    assert stopped is None
    for text, ranks in (first, last):
        assert text.startswith("rank 1 (host ") and "is stopped" in text
        assert ranks == (1,)


def test_a_lost_rank_that_continues_gets_an_error(outcomes: Any) -> None:
    def work(rank: int) -> Any:
        dist.barrier()
        if rank == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
        try:
            dist.barrier()
        finally:
            if rank == 0:
                os.kill(dist.get_default_group().peers[1].pid, signal.SIGCONT)

    first, stopped = outcomes(2, work)
    assert isinstance(first, dist.RankLost)
    assert isinstance(stopped, dist.DistBackendError) and "rank 1" in str(stopped)


def test_a_rank_that_holds_the_interpreter_lock_is_not_lost(ranks: Any) -> None:
    def work(rank: int) -> Any:
        if rank == 1:
            ctypes.PyDLL(None).usleep(1_200_000)  # three times as long as a stopped one may be
        x = pc.ones(2)
        dist.all_reduce(x)
        return x.tolist()

    assert ranks(2, work) == [[2.0, 2.0]] * 2


def test_a_busy_rank_does_not_hide_a_lost_one(outcomes: Any, tmp_path: pathlib.Path) -> None:
    def work(rank: int) -> Any:
        dist.barrier()
        if rank == 2:
            die()
        if rank == 1:
            wait_for(tmp_path / "noticed")
            return (tmp_path / "noticed").exists()
        with pytest.raises(dist.RankLost, match=r"^rank 2 "):
            dist.barrier()
        (tmp_path / "noticed").touch()

    assert outcomes(3, work) == [None, True, None]


def test_a_rank_that_throws_is_lost(outcomes: Any) -> None:
    def work(rank: int) -> Any:
        if rank == 1:
            raise KeyError("of the program")
        dist.barrier()

    first, second = outcomes(2, work)
    assert isinstance(first, dist.RankLost) and str(first).startswith("rank 1 (host ")
    assert isinstance(second, KeyError)


def backward(rank: int) -> None:
    x = pc.ones(2, requires_grad=True)
    y = with_gradients.all_reduce(x)
    if rank == 1:
        die()
    y.sum().backward()


def run_barrier(rank: int) -> None:
    if rank == 1:
        die()
    dist.monitored_barrier(timeout=100)


def parallel(rank: int) -> None:
    model = dist.DistributedDataParallel(nn.Linear(4, 4), bucket_cap_mb=0.00001)
    model(pc.ones(2, 4)).sum().backward()
    out = model(pc.ones(2, 4)).sum()
    if rank == 1:
        die()
    out.backward()


def joined(rank: int) -> None:
    model = dist.DistributedDataParallel(nn.Linear(4, 4))
    with Join([model]):
        for step in range(3 if rank else 1):
            if rank == 1 and step == 1:
                die()
            model(pc.ones(2, 4)).sum().backward()


def divided(rank: int) -> None:
    model = nn.Linear(4, 4)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), _SGD, lr=0.1)
    model(pc.ones(2, 4)).sum().backward()
    if rank == 1:
        die()
    optimizer.step()


class _SGD:
    def __init__(self, groups: Any, lr: float) -> None:
        self.param_groups, self.defaults, self.state = groups, {"lr": lr}, {}

    def step(self) -> None: ...


def asynchronous(rank: int) -> None:
    if rank == 1:
        die()
    works = [dist.all_reduce(pc.ones(100_000), async_op=True) for _ in range(4)]
    for work in works:
        work.wait()


def messages(rank: int) -> None:
    if rank == 1:
        die()
    if rank == 0:
        works = [dist.irecv(pc.empty(3), 1), dist.isend(pc.ones(1 << 20), 1)]
        for work in works:
            work.wait()
    dist.barrier()


def groups(rank: int) -> None:
    if rank == 1:
        die()
    dist.new_group([0, 2])


@pytest.mark.parametrize(
    "call",
    [backward, run_barrier, parallel, joined, divided, asynchronous, messages, groups],
    ids=lambda call: call.__name__,
)
def test_nothing_hangs(outcomes: Any, call: Any) -> None:
    def work(rank: int) -> Any:
        try:
            call(rank)
        except dist.RankLost as error:
            dist.destroy_process_group()
            return 1 in error.ranks
        return None

    first, killed, last = outcomes(3, work)
    # a rank may notice that another left because of the loss; one names the lost rank in any case
    assert killed is None and first is not None and last is not None
    assert first or last


def test_gradients_that_were_half_reduced_are_forgotten(outcomes: Any) -> None:
    def work(rank: int) -> Any:
        model = dist.DistributedDataParallel(nn.Linear(2, 1, bias=False), bucket_cap_mb=0.00001)
        out = model(pc.ones(1, 2)).sum()
        if rank == 1:
            die()
        with pytest.raises(dist.RankLost):
            out.backward()
        where = dist.get_default_group().where
        dist.destroy_process_group()
        dist.init_process_group(init_method=f"{where}~1", rank=rank // 2, world_size=2)
        model.regroup()
        assert model.module.weight.grad is None
        for _ in range(2):
            model.zero_grad()
            model(pc.full((1, 2), float(rank))).sum().backward()
        return model.module.weight.grad.tolist()

    assert outcomes(3, work) == [[[1.0, 1.0]], None, [[1.0, 1.0]]]


@pytest.mark.parametrize(
    ("lost", "ranks"),
    [
        ([(1, -1, 7)], [2]),  # a rank of the new group
        ([(-1, 1, 7)], [1]),  # in containers all may have the same pid
        ([(-1, -1, 7)], []),
        ([(-1, -1, 9)], [3]),
    ],
)
def test_lost_processes_are_those_of_the_group_of_which_another_is_made(
    lost: list[tuple[int, int, int]], ranks: list[int]
) -> None:
    parent = types.SimpleNamespace(
        peers=[Peer(f"host{i}", pid, "-") for i, pid in enumerate((7, 7, 7, 9))]
    )
    assert list(_ranks_in(cast("ProcessGroup", parent), lost, [0, 2])) == ranks
