"""A model whose two stages lie in two processes, trained from a third by remote calls.

Calls carry the hidden layer from stage to stage, and the backward pass carries gradients back; each
process keeps the optimizer's state of its stage. The losses are those of the same model in one
process. Needs the package plait-ray.
"""

from __future__ import annotations

import argparse
import os
import secrets
from typing import Any

import plait
from plait import nn, optim
from plait.ray import autograd, rpc
from plait.ray.optim import DistributedOptimizer

STEPS, BATCH = 20, 64


class Stage(nn.Module):
    """A hidden layer, or the last one."""

    def __init__(self, seed: int, into: int, out: int) -> None:
        super().__init__()
        plait.manual_seed(seed)
        self.linear = nn.Linear(into, out)

    def forward(self, x: Any) -> Any:
        return self.linear(x).tanh()

    def references(self) -> list[Any]:
        """References to the parameters, for an optimizer in another process."""
        return [rpc.RRef(parameter) for parameter in self.parameters()]


SIZES = (0, 8, 32), (1, 32, 2)


def batch(step: int) -> tuple[Any, Any]:
    """Points, and what the model is to learn about them."""
    generator = plait.Generator().manual_seed(step)
    x = plait.randn(BATCH, 8, generator=generator)
    return x, plait.stack([x[:, 0] * x[:, 1], x[:, 2:].mean(1)], 1).tanh()


def train_stages() -> list[float]:
    """Train stages that lie in the processes "stage1" and "stage2"; return the losses."""
    first = rpc.remote("stage1", Stage, args=SIZES[0])
    second = rpc.remote("stage2", Stage, args=SIZES[1])
    parameters = first.rpc_sync().references() + second.rpc_sync().references()
    optimizer = DistributedOptimizer(optim.Adam, parameters, lr=0.01)
    losses = []
    for step in range(STEPS):
        x, target = batch(step)
        with autograd.context() as context_id:
            hidden = first.rpc_sync().forward(x)
            loss = (second.rpc_sync().forward(hidden) - target).square().mean()
            autograd.backward(context_id, [loss])
            optimizer.step(context_id)
        losses.append(loss.item())
    return losses


def train_alone() -> list[float]:
    """Train the same model in this process; return the losses."""
    model = nn.Sequential(*(Stage(*sizes) for sizes in SIZES))
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for step in range(STEPS):
        x, target = batch(step)
        loss = (model(x) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def work(rank: int, address: str, results: Any) -> None:
    """The work of each of the three processes."""
    options = rpc.TensorPipeRpcBackendOptions(init_method=address)
    name = f"stage{rank}" if rank else "trainer"
    rpc.init_rpc(name, rank=rank, world_size=3, rpc_backend_options=options)
    if rank == 0:
        results.put(train_stages())
    rpc.shutdown()  # waits for the trainer


def main(arguments: list[str] | None = None) -> tuple[list[float], list[float]]:
    """Train in three processes and in one; return the losses of both."""
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--port", type=int, default=29555, help="what this job's processes share")
    port = flags.parse_args(arguments).port
    os.environ["PLAIT_JOB_SECRET"] = secrets.token_hex(16)
    results = plait.multiprocessing.get_context("spawn").SimpleQueue()
    plait.multiprocessing.spawn(work, (f"tcp://127.0.0.1:{port}", results), nprocs=3)
    remote, alone = results.get(), train_alone()
    for step in range(0, STEPS, 5):
        print(f"step {step:2d}  two stages {remote[step]:.6f}  one process {alone[step]:.6f}")
    return remote, alone


if __name__ == "__main__":
    main()
