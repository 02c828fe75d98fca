"""Calls that do not match, ranks that are lost, and ranks that do not come."""

from __future__ import annotations

import os
import re
import secrets
import signal
from typing import Any

import pytest

import plait_core as pc
import plait_distributed as dist


def all_say(result: list[Any], kind: type[Exception], *texts: str) -> None:
    for error in result:
        assert isinstance(error, kind), error
        for text in texts:
            assert text in str(error)


@pytest.mark.parametrize("async_op", [False, True])
def test_different_operations(outcomes: Any, async_op: bool) -> None:
    def work(rank: int) -> Any:
        x = pc.ones(2, 3)
        dist.barrier()
        call = dist.all_reduce if rank == 0 else dist.broadcast
        result = call(x, async_op=async_op)
        if async_op:
            result.wait()

    all_say(
        outcomes(2, work),
        dist.MismatchError,
        "rank 0 called all_reduce(float32[2, 3], sum) #2 at test_errors.py:",
        "rank 1 called broadcast(float32[2, 3], src=0) #2 at test_errors.py:",
    )


@pytest.mark.parametrize(
    ("tensors", "texts"),
    [
        ((pc.ones(2, 3), pc.ones(3, 2)), ("float32[2, 3]", "float32[3, 2]")),
        ((pc.ones(2), pc.ones(3)), ("float32[2]", "float32[3]")),
        ((pc.ones(2), pc.ones(2).double()), ("float32[2]", "float64[2]")),
    ],
    ids=["shapes", "sizes", "dtypes"],
)
def test_different_tensors(outcomes: Any, tensors: Any, texts: tuple[str, str]) -> None:
    result = outcomes(2, lambda rank: dist.all_reduce(tensors[rank]))
    all_say(
        result,
        dist.MismatchError,
        *(f"rank {i} called all_reduce({t}" for i, t in enumerate(texts)),
    )


def test_different_reductions_roots_and_sizes(outcomes: Any) -> None:
    ops = (dist.ReduceOp.SUM, dist.ReduceOp.MAX)
    result = outcomes(2, lambda rank: dist.all_reduce(pc.ones(2), ops[rank]))
    all_say(result, dist.MismatchError, "float32[2], sum)", "float32[2], max)")
    result = outcomes(2, lambda rank: dist.broadcast(pc.ones(2), rank))
    all_say(result, dist.MismatchError, "src=0", "src=1")

    def parts(rank: int) -> Any:
        dist.all_to_all([pc.empty(2), pc.empty(2)], [pc.ones(2), pc.ones(2 + (rank == 0))])

    all_say(outcomes(2, parts), dist.MismatchError, "rank 0 sends 3 elements to rank 1, which")


def test_the_group_goes_on_after_different_calls(ranks: Any) -> None:
    def work(rank: int) -> Any:
        x = pc.full((2,), float(rank))
        for _ in range(2):
            with pytest.raises(dist.MismatchError):
                (dist.all_reduce if rank else dist.broadcast)(x)
        dist.all_reduce(x)
        return x.tolist()

    assert ranks(2, work) == [[1.0, 1.0]] * 2


def test_a_killed_rank_is_named(outcomes: Any) -> None:
    def work(rank: int) -> Any:
        dist.barrier()
        if rank == 1:  # it dies when no other one waits for what it has written in the barrier
            for other in (0, 2):
                dist.recv(pc.zeros(1), other)
            os.kill(os.getpid(), signal.SIGKILL)
        dist.isend(pc.zeros(1), 1)
        try:
            dist.all_reduce(pc.ones(100_000))
        except dist.RankLost as error:
            return str(error)
        raise AssertionError("nobody noticed")

    first, killed, last = outcomes(3, work)
    assert killed is None
    for text in (first, last):
        assert text.startswith("rank 1 (host ") and "was lost" in text
        assert re.search(
            r"last collective all_reduce\(float32\[100000\], sum\) #\d+ at test_errors.py:", text
        )


def test_a_rank_that_left_is_named_in_its_group(outcomes: Any) -> None:
    def work(rank: int) -> Any:
        group = dist.new_group([1, 2])
        if rank == 2:
            dist.destroy_process_group()
        elif rank == 1:
            dist.barrier(group)

    _, error, _ = outcomes(3, work)
    assert isinstance(error, dist.RankLost) and str(error).startswith("rank 2 (host ")


def test_a_rank_that_does_not_come_is_named(outcomes: Any) -> None:
    def work(rank: int) -> Any:
        after = dist.new_group()
        try:
            if rank != 1:
                dist.monitored_barrier(timeout=0.4)
        finally:
            dist.barrier(after)  # rank 1 does not leave before the others have waited for it

    first, late, last = outcomes(3, work)
    assert late is None
    timed_out = [error for error in (first, last) if isinstance(error, dist.CollectiveTimeout)]
    assert timed_out and "waited 0.4 s for rank" in str(timed_out[0])
    assert "monitored_barrier() #2 at test_errors.py:" in str(timed_out[0])
    assert isinstance(timed_out[0], TimeoutError)
    for error in (first, last):
        assert isinstance(error, dist.DistBackendError) and "rank 1" in str(error)


def test_an_abort_reaches_all(outcomes: Any) -> None:
    def work(rank: int) -> Any:
        if rank == 0:
            dist.get_default_group().abort("the data is used up")
        dist.barrier()

    for error in outcomes(2, work):
        assert isinstance(error, dist.DistBackendError) and "the data is used up" in str(error)


def test_the_error_names_a_rank_that_never_connects() -> None:
    with pytest.raises(dist.CollectiveTimeout, match=r"waited 0\.3 s for rank 1"):
        dist.init_process_group(
            init_method=f"shm:{secrets.token_hex(8)}", rank=0, world_size=2, timeout=0.3
        )
    assert not dist.is_initialized()


def test_a_forked_child_is_no_member(ranks: Any) -> None:
    def work(rank: int) -> Any:
        pid = os.fork()
        if pid == 0:
            try:
                dist.barrier()
            except dist.DistBackendError as error:
                os._exit("forked child" not in str(error))
            os._exit(2)
        assert os.waitpid(pid, 0)[1] == 0
        dist.barrier()

    ranks(2, work)
