"""Training that goes on when ranks are lost or come back: `plait_distributed.elastic`."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import pathlib
import random
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

import plait_core as pc
import plait_distributed as dist
import plait_nn as nn
import plait_optim as optim
from plait_distributed import elastic
from plait_distributed._peers import Peer, Watch
from plait_distributed._process_group import ProcessGroup
from plait_distributed.algorithms.ddp_comm_hooks import default_hooks
from plait_distributed.device_mesh import init_device_mesh
from plait_distributed.elastic import _coordinator
from plait_distributed.elastic._members import Member
from plait_distributed.elastic._snapshots import Snapshot, choose, neighbours
from plait_distributed.fsdp import FullyShardedDataParallel, fully_shard
from plait_distributed.optim import ZeroRedundancyOptimizer
from plait_distributed.tensor import DTensor, distribute_tensor

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import strangers

LONG = strangers.LONG
CONTEXT = multiprocessing.get_context("fork")
SAMPLES = 24


class Job:
    """Processes that are ranks of an elastic job."""

    def __init__(
        self, size: int, work: Callable[[int], Any], elsewhere: tuple[int, ...] = (), **options: Any
    ) -> None:
        self._where = f"shm:elastic tests {secrets.token_hex(8)}"
        self._size, self._work, self._elsewhere = size, work, elsewhere
        self._options = {"timeout": LONG, "patience": 0, "init_method": self._where, **options}
        self._ends: dict[int, Any] = {}
        self.processes: dict[int, Any] = {}
        for place in range(size):
            self.start(place)

    def start(self, place: int) -> None:
        """Start a rank, at first or again."""
        receiver, sender = CONTEXT.Pipe(False)
        process = CONTEXT.Process(target=self._run, args=(place, sender))
        process.start()
        sender.close()
        self._ends[place], self.processes[place] = receiver, process

    def _run(self, place: int, sender: Any) -> None:
        pc.set_num_threads(1)
        if place in self._elsewhere:  # another host than the master's
            socket.gethostname = lambda: "another"
            elastic._place.is_here = lambda host: False
        answer: Any
        try:
            elastic.init_process_group(rank=place, world_size=self._size, **self._options)
            answer = self._work(place)
        except BaseException as error:
            answer = type(error)(*error.args)
        sender.send(answer)
        sender.close()
        os._exit(0)

    def answers(self) -> list[Any]:
        """Wait for the end of all; return what they returned or raised, by place."""
        results = []
        for place in range(self._size):
            answer = None
            with contextlib.suppress(EOFError):
                assert self._ends[place].poll(2 * LONG), f"rank {place} hangs"
                answer = self._ends[place].recv()
            results.append(answer)
            self.processes[place].join()
        return results


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def make_state(kind: str = "replicated", parts: int = 3, every: int = 0) -> Any:
    """Return the state of a small training, with what each rank has at first.

    Args:
        kind: how many ranks have the state: "alone", "replicated", "optimizer" (each rank has a
            share of the optimizer's), "wrapped" or "parameters" (a share of the parameters, too).
        parts: of a batch.
        every: how many steps there are between copies.
    """
    pc.manual_seed(0)
    data = pc.randn(SAMPLES, 4)
    model: Any = nn.Sequential(nn.Linear(4, 7), nn.Dropout(0.3), nn.Linear(7, 1))
    if kind in ("replicated", "optimizer"):
        model = dist.DistributedDataParallel(model)
    elif kind == "wrapped":
        model = FullyShardedDataParallel(model, auto_wrap_policy={nn.Linear})
    elif kind == "parameters":
        fully_shard(model[0])
        fully_shard(model)
    if kind == "optimizer":
        optimizer: Any = ZeroRedundancyOptimizer(model.parameters(), optim.Adam, lr=0.01)
    else:
        optimizer = optim.Adam(model.parameters(), lr=0.01)
    state = elastic.State(
        every=every or (1 if kind == "replicated" else 2),
        model=model,
        optimizer=optimizer,
        batches=elastic.Batches(SAMPLES, 6, parts=parts, seed=1),
        counts=pc.zeros(SAMPLES, dtype=pc.int64),
        generator=pc.Generator().manual_seed(4),
    )
    return state, data


def step(state: Any, data: Any, batch: Any) -> None:
    state.optimizer.zero_grad()
    used = pc.zeros(SAMPLES, dtype=pc.int64)
    for part in batch.parts(state.model):
        loss = (state.model(data[part.indices]) - 1).square().mean()
        (loss * part.weight).backward()
        used[part.indices] += 1
    if dist.is_initialized():
        dist.all_reduce(used)
    state.counts = state.counts + used
    pc.rand(1, generator=state.generator)
    state.optimizer.step()


def summary(state: Any) -> Any:
    weights = [
        (p.full_tensor() if isinstance(p, DTensor) else p).tolist()
        for p in state.model.parameters()
    ]
    drawn = pc.rand(2, generator=state.generator).tolist()
    return weights, state.counts.tolist(), drawn, state.commits


def training(fault: Callable[[int, Any], None], epochs: int = 3, **options: Any) -> Any:
    """Return the function of a rank that trains, and calls `fault` in the middle of each step."""

    def work(place: int) -> Any:
        state, data = make_state(**options)

        @elastic.run
        def train(state: Any) -> Any:
            for _ in state.batches.epochs(epochs):
                for batch in state.batches:
                    fault(place, state)
                    step(state, data, batch)
                    state.commit()
            return (*summary(state), dist.get_world_size())

        return train(state)

    return work


def alone(epochs: int = 3) -> Any:
    """Train in one process without a group."""
    state, data = make_state("alone")
    for _ in state.batches.epochs(epochs):
        for batch in state.batches:
            step(state, data, batch)
    return summary(state)


def no_fault(place: int, state: Any) -> None: ...


def dies_at(lost: tuple[int, ...], commits: int) -> Callable[[int, Any], None]:
    def fault(place: int, state: Any) -> None:
        if place in lost and state.commits == commits:
            die()

    return fault


def assert_close(result: Any, expected: Any) -> None:
    for x, y in zip(result, expected, strict=True):
        assert bool((pc.tensor(x) - pc.tensor(y)).abs().max() < 1e-5)


KINDS = ("replicated", "optimizer", "parameters", "wrapped")


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


@pytest.mark.parametrize("several", [False, True], ids=["one host", "several"])
def test_a_late_rank_is_let_in_at_a_commit(several: bool, request: Any) -> None:
    hosts = request.getfixturevalue("hosts") if several else {}
    flag = CONTEXT.Value("i", 0)

    def work(place: int) -> Any:
        state, data = make_state()
        state.together = 0

        @elastic.run
        def train(state: Any) -> Any:
            while state.together < 3:
                for batch in state.batches:
                    if place == 2 and flag.value == 0:
                        flag.value = 1
                        die()
                    step(state, data, batch)
                    if flag.value and dist.get_world_size() == 3:
                        state.together += 1
                    state.commit()
                    time.sleep(0.01)
            return summary(state)

        return train(state)

    job = Job(3, work, **hosts)
    job.processes[2].join()
    time.sleep(0.1)
    job.start(2)
    result = job.answers()
    assert result[0] == result[1] == result[2]
    counts = result[0][1]
    assert max(counts) - min(counts) <= 1  # also in the epoch in which it came


def test_strangers_do_not_stop_the_training() -> None:
    """They wait where a rank that comes back would; ranks go on without a meeting for them."""

    def work(place: int) -> Any:
        session, strangers = elastic._session.current_session("test"), []

        @elastic.run
        def train(state: Any) -> int:
            while state.step < 12:
                if place == 2 and state.step == 2:
                    die()
                dist.barrier()
                if place == 0 and session.generation > 0:
                    strangers.append(socket.socket(socket.AF_UNIX))
                    strangers[-1].connect(session._place._name)
                state.step += 1
                state.commit()
            return session.generation

        return train(elastic.State(step=0))

    assert Job(3, work).answers() == [1, 1, None]


def test_a_child_of_a_lost_rank_does_not_keep_its_door() -> None:
    child = CONTEXT.Value("i", 0)

    def work(place: int) -> Any:
        session = elastic._session.current_session("test")

        @elastic.run
        def train(state: Any) -> int:
            while state.step < 12:
                dist.barrier()
                if place == 2:
                    die()
                if session._door is not None and session.generation == 1:
                    result = os.fork()
                    if not result:
                        time.sleep(1000)
                    child.value = result
                    die()
                state.step += 1
                state.commit()
            return session.generation

        return train(elastic.State(step=0))

    job = Job(3, work)
    try:
        for process in job.processes.values():  # the child has their pipes, too
            process.join()
        (left,) = [place for place, process in job.processes.items() if process.exitcode == 0]
        assert job._ends[left].recv() == 2
        os.kill(child.value, 0)  # it has lived as long
    finally:
        if child.value:
            os.kill(child.value, signal.SIGKILL)


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


@pytest.fixture(name="hosts")
def two_hosts(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Ranks 0 and 1 are on the master's host; rank 2 is not, and reaches it over TCP."""
    port = strangers.free_port()
    monkeypatch.setenv("PLAIT_ELASTIC_PORT", str(port))
    monkeypatch.setenv("PLAIT_JOB_SECRET", secrets.token_hex(8))
    return {"init_method": f"tcp://127.0.0.1:{port - 1}", "elsewhere": (2,)}


def test_ranks_of_several_hosts_meet_again(hosts: dict[str, Any]) -> None:
    flag = CONTEXT.Value("i", 0)

    def fault(place: int, state: Any) -> None:
        if place == 2 and state.commits == 5 and flag.value == 0:
            flag.value = 1
            die()

    job = Job(3, training(fault, kind="optimizer"), patience=LONG, **hosts)
    job.processes[2].join()
    job.start(2)
    result = job.answers()
    assert result[0] == result[1] == result[2]
    assert result[0][1] == [3] * SAMPLES and result[0][4] == 3


def test_a_group_that_cannot_be_opened(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setenv("PLAIT_ELASTIC_FOLDER", str(tmp_path))
    opened = []

    def fails(*arguments: Any) -> Any:
        opened.append(arguments[2])
        raise dist.DistBackendError("the library of the provider is not there")

    elastic.init_process_group(
        init_method=f"shm:{secrets.token_hex(8)}", rank=0, world_size=1, timeout=240
    )
    monkeypatch.setattr("plait_distributed._world.enter", fails)
    with pytest.raises(dist.DistBackendError, match="the library of the provider is not there"):
        elastic.run(lambda state: None)(elastic.State())
    assert len(set(opened)) == 3 and not dist.is_initialized()
    # others may have opened it: the process that is started in this place must know of it
    generation, group = json.loads(next(tmp_path.iterdir()).read_text())
    assert generation == 2 and [place for place, _, _ in group] == [0]


def test_a_restarted_process_has_the_stored_addresses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setenv("PLAIT_ELASTIC_FOLDER", str(tmp_path))
    message = CONTEXT.Array("i", 2)

    def work(place: int) -> Any:
        me = elastic._session.current_session("test")._me
        again = bool(me.group)
        if again:
            message[0], message[1] = me.generation, len(me.group)
        assert me.is_new

        def fault(place: int, state: Any) -> None:
            if place == 1 and not again:
                die()

        return training(fault)(place)

    job = Job(2, work, patience=LONG)
    job.processes[1].join()
    job.start(1)
    first, second = job.answers()
    assert first == second and first[4] == 2
    assert list(message) == [0, 2]
    assert list(tmp_path.iterdir()) == []  # nobody needs it behind the end


def test_several_hosts_need_an_address_and_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_ELASTIC_PORT", "1")
    monkeypatch.delenv("PLAIT_JOB_SECRET", raising=False)
    options = {"rank": 0, "world_size": 1}
    with pytest.raises(NotImplementedError, match="set MASTER_ADDR and MASTER_PORT"):
        elastic.init_process_group(init_method="shm:x", **options)
    with pytest.raises(ValueError, match="set PLAIT_JOB_SECRET"):
        elastic.init_process_group(init_method="tcp://localhost:2", **options)


def test_too_few_ranks_end_with_an_error() -> None:
    def fault(place: int, state: Any) -> None:
        elastic._session.current_session("test").terms.timeout = 1.0  # behind the first meeting
        dies_at((1,), 3)(place, state)

    first, lost = Job(2, training(fault), min_size=2).answers()
    assert lost is None
    assert isinstance(first, dist.CollectiveTimeout) and "for 2 ranks, 1 came" in str(first)


def test_the_group_waits_for_a_running_rank() -> None:
    def fault(place: int, state: Any) -> None:
        if place == 2 and state.commits == 3:
            die()
        if place == 1 and state.commits == 3:
            time.sleep(1.5)  # the other one meets it, with a smaller patience

    first, second, _ = Job(3, training(fault)).answers()
    assert first == second and first[4] == 2


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


# ---- parts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_batches_are_the_same_for_any_number_of_ranks(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    class Group:
        def __init__(self, rank: int) -> None:
            self._rank = rank

        def rank(self) -> int:
            return self._rank

        def size(self) -> int:
            return size

    ranks = []
    monkeypatch.setattr("plait_distributed.elastic._batches.is_initialized", lambda: True)
    for rank in range(size):
        monkeypatch.setattr(
            "plait_distributed.elastic._batches.default_group", lambda _, r=rank: Group(r)
        )
        batches = elastic.Batches(23, 9, parts=5, seed=2)
        ranks.append([batch for _ in batches.epochs(2) for batch in batches])
    whole = [batch.indices for batch in ranks[0]]
    assert len(whole) == 6 and [len(each) for each in whole] == [9, 9, 5] * 2
    assert sorted(whole[0] + whole[1] + whole[2]) == list(range(23)) and whole[:3] != whole[3:]
    for of_ranks in zip(*ranks, strict=True):
        parts = [part for batch in of_ranks for part in batch.mine]
        assert [i for part in parts for i in part.indices] == of_ranks[0].indices
        assert [part.number for part in parts] == list(range(5))
        # weights make the mean over ranks the mean over samples
        per_sample = [part.weight / len(part.indices) / size for part in parts]
        assert all(abs(w - 1 / len(of_ranks[0].indices)) < 1e-12 for w in per_sample)


def test_iteration_continues_from_a_position() -> None:
    batches = elastic.Batches(10, 4, parts=1, seed=5)
    every = [[b.indices for b in batches] for _ in range(2)]
    again = elastic.Batches(10, 4, parts=1, seed=5)
    going = iter(again)
    assert [next(going).indices for _ in range(2)] == every[0][:2]
    reference = again.state_dict()
    third = elastic.Batches(10, 4, parts=1, seed=5)
    third.load_state_dict(reference)
    assert third.part_indices() == every[0][2:]
    assert [b.indices for b in third] == every[0][2:]
    assert [b.indices for b in third] == every[1] and third.epoch == 2


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((10, 4, 5), "1 <= `parts` <= `batch_size` <= `length`"),
        ((10, 4, 0), "is required, got 0, 4 and 10"),
        ((3, 4, 2), "got 2, 4 and 3"),
        ((9, 4, 2), "has 1 samples, fewer than `parts`, 2"),
    ],
)
def test_batches_that_do_not_fit(arguments: tuple[int, int, int], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        elastic.Batches(*arguments)


def test_wrong_use() -> None:
    with pytest.raises(ValueError, match="`every` must be a positive int, got 0"):
        elastic.State(every=0)
    with pytest.raises(ValueError, match="cannot be called 'commit'"):
        elastic.State(commit=1)
    with pytest.raises(AttributeError, match="no entry 'loss'"):
        elastic.State().loss  # noqa: B018
    with pytest.raises(AttributeError, match="cannot be called 'commit'"):
        elastic.State().commit = 1
    with pytest.raises(TypeError, match="must be a State, got int"):
        elastic.run(lambda state: None)(1)


def test_the_newest_whole_snapshot_is_chosen() -> None:
    def member(*snapshots: tuple[int, int], shards: Any = ()) -> Member:
        return Member(0, "", snapshots=list(snapshots), shards=list(shards))

    assert choose([member(), member()]) is None
    result = choose([member((0, 4)), member((0, 5)), member()])
    assert result is not None and (result.name, result.holders) == ((0, 5), [1])
    # of an earlier group, which others have left since
    result = choose([member((0, 9)), member((1, 7))])
    assert result is not None and result.name == (1, 7)
    old, new = [(0, 4, 0, 2), (0, 4, 1, 2)], [(0, 6, 0, 2)]
    result = choose([member((0, 6), (0, 4), shards=[*new, *old]), member()])
    assert result is not None
    assert (result.name, result.holders, result.owners, result.size) == ((0, 4), [0], [0, 0], 2)
    assert choose([member((0, 6), shards=new)]) is None
    # one that begins has its own: that is the state of all if nobody has trained
    alone = member((-1, 0), shards=[(-1, 0, 0, 1)])
    result = choose([member((0, 0), shards=[(0, 0, 0, 2)]), alone])
    assert result is not None and (result.name, result.owners) == ((-1, 0), [1])
    assert choose([member((0, 6), shards=new), alone]) is None


def test_the_part_with_most_of_the_ranks_goes_on() -> None:
    def says(hosts: str, present: str) -> str:
        group = [(i, f"{i} 1 {host}", host) for i, host in enumerate(hosts)]
        members = [
            Member(i, f"{9 + i} 1 {host}", None, 3, group, is_new=False)
            for i, host in enumerate(present)
        ]
        return _coordinator._outvoted(members, present[0])

    for hosts in ("aabb", "abc", "abbc", "aaab", "abcd"):
        for part in ("a", "b", "ab", "bc", "bcd", "abcd"):
            rest = "".join(sorted(set(hosts) - set(part)))
            both = [says(hosts, each) for each in (part, rest) if set(each) & set(hosts)]
            assert both.count("") == 1, (hosts, part)
    assert says("aabb", "a") == says("abbb", "b") == says("a", "a") == ""
    text = says("aabb", "b")
    assert "lost rank 0 (host a, pid 0), rank 1 (host a, pid 1), and no rank of those hosts" in text
    assert "2 of the last group's 4 ranks" in text
    # ranks that were started again
    group = [(i, f"{i} 1 {host}", host) for i, host in enumerate("abcd")]
    old = Member(0, "0 1 a", None, 3, group, is_new=False)
    new = [Member(i, f"9 1 {i}") for i in (1, 2)]
    assert "lost rank 1" in _coordinator._outvoted([old], "a")
    assert _coordinator._outvoted([old, *new], "a") == ""
    # who could not open a group that others may be in, and who was started again behind it
    later = [(i, f"{i} 1 {host}", host) for i, host in enumerate("bcd", 1)]
    message = Member(3, "3 1 d", None, 4, later, is_new=False)
    again = Member(3, "9 1 d", None, 4, later)
    for third in (message, again):
        assert "lost rank 0 (host b, pid 1), rank 1" in _coordinator._outvoted([old, third], "a")
    # ranks that run, but do not come
    assert _coordinator._outvoted([old, *new], "a", {3}) == ""
    assert "lost rank 0" in _coordinator._outvoted([old, *new], "a", {0, 3})


def test_neighbours_are_on_other_hosts() -> None:
    peers = [Peer(host, 1, "1") for host in "aabb"]
    ring = [0]
    while len(ring) < 4:
        ring.append(neighbours(peers, ring[-1])[1])
    assert ring == [0, 2, 1, 3]
    assert neighbours(peers, 2) == (0, 1)


def test_time_without_checks_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_STOPPED_TIMEOUT", "2.5")
    times = iter([0.0, 60.0, 61.0, 62.0])
    monkeypatch.setattr("plait_distributed._peers.time.monotonic", lambda: next(times))
    watch = Watch()
    assert [watch.look_at_state(1, letter) for letter in "TTTT"] == ["stopped"] * 3 + ["lost"]
    assert watch.look_at_state(1, "R") == "runs"
