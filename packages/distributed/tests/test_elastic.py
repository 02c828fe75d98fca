"""Training that goes on when ranks are lost or come back: `plait_distributed.elastic`."""

from __future__ import annotations

import os
import pathlib
import random
import signal
import sys
import time
from typing import Any

import pytest

import plait_core as pc
import plait_distributed as dist
import plait_nn as nn
from plait_distributed import elastic
from plait_distributed._process_group import ProcessGroup
from plait_distributed.algorithms.ddp_comm_hooks import default_hooks
from plait_distributed.device_mesh import init_device_mesh
from plait_distributed.elastic._snapshots import Snapshot
from plait_distributed.fsdp import fully_shard
from plait_distributed.tensor import DTensor, distribute_tensor

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from elastic_jobs import (
    CONTEXT,
    KINDS,
    LONG,
    SAMPLES,
    Job,
    alone,
    assert_close,
    die,
    dies_at,
    make_state,
    no_fault,
    summary,
    training,
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lost", [(0,), (2,)])
def test_the_ranks_that_are_left_go_on(lost: tuple[int, ...], kind: str) -> None:
    expected = alone()
    result = Job(3, training(dies_at(lost, 5), kind=kind)).answers()
    assert [result[place] for place in lost] == [None]
    left = [answer for answer in result if answer is not None]
    assert len(left) == 2 and left[0] == left[1]
    weights, counts, drawn, commits, size = left[0]
    assert counts == [3] * SAMPLES and commits == 12 and size == 2
    assert drawn == expected[2]
    assert_close(weights, expected[0])


def test_one_after_the_other_is_lost() -> None:
    def fault(place: int, state: Any) -> None:
        if state.commits == 3 * place and place > 0:
            die()

    result = Job(3, training(fault)).answers()
    assert result[1:] == [None, None]
    assert result[0][1] == [3] * SAMPLES and result[0][4] == 1
    assert_close(result[0][0], alone()[0])


@pytest.mark.parametrize("kind", KINDS)
def test_a_rank_that_comes_back_gets_the_state(kind: str) -> None:
    whole = Job(3, training(no_fault, kind=kind)).answers()
    flag = CONTEXT.Value("i", 0)

    def fault(place: int, state: Any) -> None:
        if place == 1 and state.commits == 5 and flag.value == 0:
            flag.value = 1
            die()

    job = Job(3, training(fault, kind=kind), patience=LONG)
    job.processes[1].join()
    job.start(1)
    assert job.answers() == whole  # with the same bits, as there are as many ranks in each step


def test_a_rank_that_throws_leaves_and_the_others_go_on() -> None:
    def fault(place: int, state: Any) -> None:
        if place == 1 and state.commits == 2:
            raise KeyError("of the program")

    first, thrown, last = Job(3, training(fault)).answers()
    assert isinstance(thrown, KeyError)
    assert first == last and first[1] == [3] * SAMPLES and first[4] == 2


def test_a_stopped_rank_is_killed_and_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_STOPPED_TIMEOUT", "0.4")
    flag = CONTEXT.Value("i", 0)

    def fault(place: int, state: Any) -> None:
        if place == 1 and state.commits == 5 and flag.value == 0:
            flag.value = 1
            os.kill(os.getpid(), signal.SIGSTOP)

    job = Job(2, training(fault), patience=LONG)
    stopped = job.processes[1]
    stopped.join(LONG)
    assert stopped.exitcode == -signal.SIGKILL
    job.start(1)
    first, second = job.answers()
    assert first == second and first[1] == [3] * SAMPLES and first[4] == 2


def test_a_stopped_coordinator_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_STOPPED_TIMEOUT", "0.4")

    receiver, sender = CONTEXT.Pipe(False)

    def work(place: int) -> Any:
        sender.send(elastic._session.current_session("test")._place.job)
        return elastic.run(lambda state: dist.get_world_size())(elastic.State())

    job = Job(0, work)
    job._size = 2
    job.start(0)  # finds nobody, so it is the coordinator
    name, deadline = receiver.recv(), time.monotonic() + LONG
    while not any(
        name in line and " 00010000 " in line  # it listens
        for line in pathlib.Path("/proc/net/unix").read_text().splitlines()
    ):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    first = job.processes[0]
    os.kill(first.pid, signal.SIGSTOP)
    job.start(1)
    first.join(LONG)
    assert first.exitcode == -signal.SIGKILL
    job.start(0)
    assert job.answers() == [2, 2]


@pytest.mark.parametrize("kind", ["optimizer", "parameters"])
def test_a_shard_that_is_lost_with_its_copy(kind: str) -> None:
    both = CONTEXT.Barrier(2)

    def fault(place: int, state: Any) -> None:
        if place in (1, 2) and state.commits == 5:
            both.wait(LONG)  # else one that dies later has the other's shards by then
            die()

    first, *lost = Job(3, training(fault, kind=kind)).answers()
    assert lost == [None, None]
    assert isinstance(first, elastic.StateLost) and "checkpoint" in str(first)


@pytest.mark.parametrize("kind", ["optimizer", "parameters"])
def test_all_ranks_begin_with_the_state_of_the_first(kind: str) -> None:
    def work(place: int) -> Any:
        state, _ = make_state(kind)
        for p in state.model.parameters():  # as if each had loaded another checkpoint
            p.grad = pc.full(tuple(p.shape), float(place + 1))
        state.optimizer.step()

        @elastic.run
        def train(state: Any) -> Any:
            shard = state.optimizer.shard_state() if kind == "optimizer" else None
            if shard is None:
                shard = state.optimizer.state_dict()
            moments = [values["exp_avg"] for values in shard["state"].values()]
            moments = [x.local() if isinstance(x, DTensor) else x for x in moments]
            return [x.max().item() for x in moments if x.numel()], summary(state)[0]

        return train(state)

    first, second, third = Job(3, work).answers()
    assert first[1] == second[1] == third[1]
    for moments, _ in (first, second, third):
        assert moments == pytest.approx([0.1] * len(moments))  # of rank 0, whose gradients are 1
    assert first[0] and second[0]


def test_a_rank_is_lost_between_the_copies_of_two_objects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its neighbour has the new copy of its parameters, and an old one of its optimizer's state."""
    exchange = Snapshot._exchange

    def work(place: int) -> Any:
        def dying(self: Any, *args: Any) -> Any:
            begun = exchange(self, *args)
            if place == 1 and self.name[1] == 6:  # the memory of the copies of the step 2
                for part in begun:
                    part.wait()
                die()
            return begun

        monkeypatch.setattr(Snapshot, "_exchange", dying)
        return training(no_fault, kind="parameters")(place)

    result = Job(3, work).answers()
    assert result[1] is None and result[0] == result[2]
    assert result[0][1] == [3] * SAMPLES and result[0][4] == 2
    assert_close(result[0][0], alone()[0])


def lost_at_call(lost: int, number: int, after: bool, kind: str) -> tuple[list[Any], int]:
    """Train, and lose a rank before or after its n-th call of the steps 5 to 9; return the answers
    and how many calls there were.
    """
    calls = CONTEXT.Value("i", 0)

    def work(place: int) -> Any:
        start, commit = ProcessGroup.start, elastic.State.commit
        commits = 0

        def dying(self: Any, *args: Any, **kwargs: Any) -> Any:
            counts = 4 <= commits < 9
            calls.value += counts
            dies = counts and calls.value == number
            if dies and not after:
                die()
            part = start(self, *args, **kwargs)
            if dies:
                if part is not None:
                    part.wait()
                die()
            return part

        def counting(self: Any) -> None:
            nonlocal commits
            commits = self.commits + 1
            commit(self)

        if place == lost:
            ProcessGroup.start, elastic.State.commit = dying, counting
        return training(no_fault, kind=kind)(place)

    return Job(3, work).answers(), calls.value


@pytest.mark.parametrize("kind", KINDS)
def test_a_rank_is_lost_at_any_call(kind: str) -> None:
    _, calls = lost_at_call(1, 0, False, kind)
    expected = alone()
    for _ in range(4):
        lost, number = random.randrange(3), random.randint(1, calls)
        after = random.random() < 0.5
        result, _ = lost_at_call(lost, number, after, kind)
        told = (
            f"rank {lost}, {'after' if after else 'before'} its call {number} of {calls}: {result}"
        )
        left = [answer for place, answer in enumerate(result) if place != lost]
        assert result[lost] is None and left[0] == left[1], told
        assert left[0][1:] == ([3] * SAMPLES, expected[2], 12, 2), told
        assert_close(left[0][0], expected[0])


def test_losses_one_after_the_other_with_sharded_parameters() -> None:
    flag = CONTEXT.Value("i", 0)

    def fault(place: int, state: Any) -> None:
        if place == 3 and state.commits == 3:
            die()
        if place == 1 and state.commits == 7 and flag.value == 0:
            flag.value = 1
            die()

    result = Job(4, training(fault, kind="parameters", parts=4)).answers()
    assert result[1] is None and result[3] is None and result[0] == result[2]
    assert result[0][1] == [3] * SAMPLES and result[0][4] == 2
    assert_close(result[0][0], Job(1, training(no_fault, parts=4)).answers()[0][0])


def test_a_state_that_is_sharded_in_two_dimensions() -> None:
    def work(place: int) -> Any:
        mesh = init_device_mesh("cpu", (1, 1))
        state = elastic.State(model=fully_shard(nn.Linear(2, 1), mesh=mesh))
        return elastic.run(lambda state: None)(state)

    (error,) = Job(1, work).answers()
    assert isinstance(error, NotImplementedError) and "a mesh of two dimensions" in str(error)


def test_a_state_with_other_tensors_of_many_ranks() -> None:
    def work(place: int) -> Any:
        x = distribute_tensor(pc.ones(2), init_device_mesh("cpu", (1,)))
        return elastic.run(lambda state: None)(elastic.State(x=x))

    (error,) = Job(1, work).answers()
    assert isinstance(error, NotImplementedError) and "a DTensor of shape (2,)" in str(error)


def test_a_communication_hook_stays() -> None:
    def work(place: int) -> Any:
        model = dist.DistributedDataParallel(nn.Linear(3, 1))
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)
        state = elastic.State(model=model, step=0)

        @elastic.run
        def train(state: Any) -> Any:
            while state.step < 4:
                state.model.zero_grad()
                state.model(pc.full((1, 3), 1 / 3)).sum().backward()
                if place == 1 and state.step == 2:
                    die()
                state.step += 1
                state.commit()
            return state.model.module.weight.grad.tolist(), state.model.reducer.comm_hook

        gradient, hook = train(state)
        return gradient, hook is not None

    first, lost, _ = Job(3, work).answers()
    half = pc.tensor(1 / 3).half().float().item()
    assert lost is None and first == ([[half] * 3], True)


def test_a_group_of_one_has_nothing_to_wait_for() -> None:
    (result,) = Job(1, training(no_fault)).answers()
    assert result[1] == [3] * SAMPLES


def test_callbacks_and_values() -> None:
    def work(place: int) -> Any:
        state = elastic.State(seen=[], text="a")
        sizes: list[int] = []
        state.register_reset_callbacks([lambda: sizes.append(dist.get_world_size())])

        @elastic.run
        def train(state: Any) -> Any:
            while len(state.seen) < 4:
                state.seen.append(len(state.seen))
                dist.barrier()
                if place == 1 and len(state.seen) == 3:
                    die()
                state.commit()
            return state.seen, sizes

        return train(state)

    assert Job(2, work).answers()[0] == ([0, 1, 2, 3], [2, 1])
