"""Functions that tests call in other processes."""

from __future__ import annotations

import gc
import os
import pathlib
import time
from typing import Any

import plait_core as pc
import plait_distributed as dist
import plait_nn as nn
import plait_ray
from plait_distributed import Future
from plait_ray import rpc

WORKERS = ("one", "two", "victim")
_kept: dict[str, Any] = {}


class OwnError(Exception):
    """An error whose class takes two arguments."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(one, two)


def keep(name: str, value: Any) -> int:
    _kept[name] = value
    return os.getpid()


def stored_value(name: str) -> Any:
    return _kept[name]


def product(x: Any, y: Any) -> Any:
    return x * y


def raises(kind: str) -> None:
    if kind == "own":
        raise OwnError(1, 2)
    raise KeyError(kind)


def double_in_place(x: Any) -> Any:
    return x.mul_(2)


def stop_process() -> None:
    os._exit(3)


def sleep(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def wait_until_kept(name: str) -> Any:
    """Return what `keep` stores under the name, as soon as it is there."""
    deadline = time.monotonic() + 300
    while name not in _kept and time.monotonic() < deadline:
        time.sleep(0.01)
    return _kept.get(name)


def call_on(to: str, x: Any, y: Any) -> Any:
    return rpc.rpc_sync(to, product, args=(x, y)) + x


def back_and_forth(depth: int, x: Any) -> Any:
    """Multiply x by 2 in turns in the workers one and two."""
    if depth == 0:
        return x
    to = "two" if rpc.get_worker_info().name == "one" else "one"
    return rpc.rpc_sync(to, back_and_forth, args=(depth - 1, x * 2))


@rpc.functions.async_execution
def answer_later(to: str, x: Any) -> Future:
    future: Future = rpc.rpc_async(to, product, args=(x, 2))
    return future.then(lambda done: done.wait() + 1)


class Counter:
    def __init__(self, start: int = 0) -> None:
        self.number = start

    def add(self, by: int) -> int:
        self.number += by
        return self.number


def read_counter(reference: Any) -> int:
    number: int = reference.to_here().number
    return number


def counters() -> int:

    gc.collect()
    return sum(isinstance(each, Counter) for each in gc.get_objects())


class Stage(nn.Module):
    def __init__(self, seed: int, into: int, out: int) -> None:
        super().__init__()
        pc.manual_seed(seed)
        self.linear = nn.Linear(into, out)

    def forward(self, x: Any) -> Any:
        return self.linear(x).tanh()

    def references(self) -> list[Any]:
        return [rpc.RRef(parameter) for parameter in self.parameters()]

    def values(self) -> list[Any]:
        return [parameter.detach() for parameter in self.parameters()]


def serve(rank: int, secret: str) -> None:
    os.environ["PLAIT_JOB_SECRET"] = secret
    options = rpc.TensorPipeRpcBackendOptions(init_method="tcp://127.0.0.1:1", rpc_timeout=300)
    rpc.init_rpc(WORKERS[rank - 1], rank=rank, world_size=4, rpc_backend_options=options)
    rpc.shutdown()


def train(way: str, folder: str) -> tuple[int, int, list[float]]:
    """Train a parameter; in the first attempt, rank 1 fails at step 3 as `way` says."""
    rank, size = dist.get_rank(), dist.get_world_size()
    print(f"the function runs in {rank}")
    first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
    weight, start = pc.ones(2), 0
    if (state := plait_ray.last_state()) is not None:
        weight, start = state["weight"], state["step"]
    for step in range(start, 5):
        if first and step == 3 and rank == 1 and way == "dies":
            os._exit(1)
        if first and step == 3 and rank == 1 and way == "raises":
            raise KeyError("at step 3")
        gradient = weight * (rank + 1)
        dist.all_reduce(gradient)
        weight = weight - 0.1 * gradient / size
        plait_ray.report({"step": step, "loss": weight.sum()}, {"weight": weight, "step": step + 1})
    return rank, size, weight.tolist()


class Blocker:
    """Takes two CPUs."""

    def ready(self) -> None:
        """Return when they are taken."""


def until_grown(path: str, blocker: Any) -> None:
    """Go on until there are two ranks; free the blocker's place after the first step."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        size = dist.get_world_size()
        plait_ray.report({"size": size}, {"size": size})
        if size == 2:
            return
        if not os.path.exists(path):
            pathlib.Path(path).touch()
            import ray

            ray.kill(blocker)
        time.sleep(0.05)
