"""Ranks of an elastic job, and a small training that they do."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pathlib
import secrets
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

import plait_core as pc
import plait_distributed as dist
import plait_nn as nn
import plait_optim as optim
from plait_distributed import elastic
from plait_distributed.fsdp import FullyShardedDataParallel, fully_shard
from plait_distributed.optim import ZeroRedundancyOptimizer
from plait_distributed.tensor import DTensor

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import strangers

LONG = strangers.LONG
CONTEXT = multiprocessing.get_context("fork")
SAMPLES = 24
KINDS = ("replicated", "optimizer", "parameters", "wrapped")


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
