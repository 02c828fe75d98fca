"""Data-parallel training on one machine: the same model in several processes, one step for all.

    python examples/data_parallel.py --processes 2 --epochs 1

Each process has its own model, with the same initial weights, and computes the gradients of its
part of every batch. An all-reduce over shared memory computes their mean, so that all take the step
that one process would take with the whole batch. The losses are those of a single process up to
rounding, which training amplifies from step to step: ``--compare`` trains that one too and prints
the largest difference of a loss in the first 50 steps and in all.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import mnist
import mnist_files

import plait
import plait.multiprocessing as mp
from plait import nn, optim

__all__ = ["main", "run", "work"]


def work(rank: int, group: mp.Group, digits: Any, losses: plait.Tensor, flags: Any) -> None:
    """Train in one process: gradients of its part of each batch, then the mean of all."""
    plait.set_num_threads(1)
    images, labels = digits
    plait.manual_seed(flags.seed)
    model, criterion = mnist.LeNet(), nn.CrossEntropyLoss()
    optimizer = optim.SGD(model.parameters(), lr=flags.lr, momentum=0.9)
    with group.join(rank) as member, plait.enable_grad():
        member.broadcast(list(model.parameters()))  # the same in all processes
        part = flags.batch_size // member.size
        for step in range(len(losses)):
            first = step * flags.batch_size + rank * part
            optimizer.zero_grad()
            loss = criterion(model(images[first : first + part]), labels[first : first + part])
            loss.backward()
            member.all_reduce([p.grad for p in model.parameters()], "mean")
            optimizer.step()
            mean = member.all_reduce(loss.detach(), "mean")
            if rank == 0:
                losses[step] = mean


def run(processes: int, digits: Any, flags: Any) -> Any:
    """Train with `processes` processes; return the loss of each step."""
    steps = len(digits[1]) // flags.batch_size * flags.epochs
    many = tuple(plait.cat([x] * flags.epochs) for x in digits)
    losses = plait.zeros(steps)
    start = time.perf_counter()
    mp.spawn(
        work,
        (mp.Group(processes), many, losses, flags),
        nprocs=processes,
        start_method=flags.start_method,
    )
    print(
        f"{processes} process{'es' if processes > 1 else ''}: {steps} steps, loss "
        f"{losses[0]:.4f} -> {losses[-1]:.4f}, {time.perf_counter() - start:.1f} s",
        flush=True,
    )
    return losses


def main(arguments: list[str] | None = None) -> list[Any]:
    """Reads the flags and trains; returns the losses with all processes, and with one."""
    parser = argparse.ArgumentParser(description="Train with all-reduced gradients.")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, default=60000, help="the first LIMIT digits only")
    parser.add_argument("--compare", action="store_true", help="with a single process, too")
    parser.add_argument("--start-method", default="spawn", choices=["spawn", "forkserver", "fork"])
    parser.add_argument("--data", type=Path, default=mnist_files.default_folder())
    flags = parser.parse_args(arguments)
    if flags.batch_size % flags.processes:
        parser.error(
            f"--batch-size must be a multiple of --processes, {flags.processes}; "
            f"got {flags.batch_size}"
        )

    mnist_files.write_files(flags.data)
    whole = flags.limit // flags.batch_size * flags.batch_size
    digits = [x[:whole] for x in mnist.load(flags.data, train=True).tensors]
    results = [run(flags.processes, digits, flags)]
    if flags.compare:
        results.append(run(1, digits, flags))
        difference = (results[0] - results[1]).abs()
        print(
            f"largest difference of a loss: {difference[:50].max():.2e}, "
            f"in all {difference.max():.2e}"
        )
    return results


if __name__ == "__main__":
    main()
