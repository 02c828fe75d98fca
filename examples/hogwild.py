"""Hogwild: several processes train one model in shared memory, without locks.

    python examples/hogwild.py --processes 2 --epochs 2

The model's parameters are in shared memory. Each process has its own optimizer, takes its share of
the digits of each epoch, computes gradients from the parameters as it finds them and writes its
steps into them, while the others do the same. After each epoch the accuracy on the 10000 test
digits is printed; it is that of a single process (``--processes 1``). The idea is from Niu, Recht,
Re and Wright, "Hogwild!: A lock-free approach to parallelizing stochastic gradient descent" (2011).
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

__all__ = ["main", "test", "work"]


def work(rank: int, group: mp.Group, model: nn.Module, digits: Any, flags: Any, done: Any) -> None:
    """Train in one process: steps on its share of every epoch, while the others do the same."""
    plait.set_num_threads(1)  # a process uses one core; there are as many processes as cores
    images, labels = digits
    member = group.join(rank)
    model.train()
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD(model.parameters(), lr=flags.lr, momentum=flags.momentum)
    for epoch in range(flags.epochs):
        order = plait.randperm(len(labels), generator=plait.Generator().manual_seed(epoch))
        own = order[rank :: member.size]
        total = 0.0
        for start in range(0, len(own), flags.batch_size):
            choice = own[start : start + flags.batch_size]
            optimizer.zero_grad()
            loss = criterion(model(images[choice]), labels[choice])
            loss.backward()
            optimizer.step()  # into the shared parameters
            total += loss.item() * len(choice)
        done.put(total)
        member.barrier()  # an epoch ends for all ...
        member.barrier()  # ... and the next one begins when the parent has tested


def test(model: nn.Module, digits: Any) -> float:
    """The share of right answers, in batches of 1000."""
    images, labels = digits
    starts = range(0, len(labels), 1000)
    return mnist.accuracy(model, ((images[i : i + 1000], labels[i : i + 1000]) for i in starts))


def watch(
    group: mp.Group, model: nn.Module, digits: Any, flags: Any, done: Any, count: int
) -> list[float]:
    """Test between the epochs: in the parent, which has the last rank of the group."""
    result, start = [], time.perf_counter()
    with group.join(flags.processes) as member:
        for epoch in range(1, flags.epochs + 1):
            member.barrier()
            loss = sum(done.get() for _ in range(flags.processes)) / count
            result.append(test(model, digits))
            print(
                f"epoch {epoch}: loss {loss:.4f}, test accuracy {100 * result[-1]:.2f} %, "
                f"{time.perf_counter() - start:.1f} s",
                flush=True,
            )
            member.barrier()
    return result


def main(arguments: list[str] | None = None) -> list[float]:
    """Reads the flags and trains; returns the test accuracy after each epoch."""
    parser = argparse.ArgumentParser(description="Train one model from several processes.")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, help="train on the first LIMIT digits only")
    parser.add_argument("--start-method", default="spawn", choices=["spawn", "forkserver", "fork"])
    parser.add_argument("--data", type=Path, default=mnist_files.default_folder())
    flags = parser.parse_args(arguments)

    plait.manual_seed(flags.seed)
    mnist_files.write_files(flags.data)
    images, labels = mnist.load(flags.data, train=True).tensors
    digits = images[: flags.limit].clone(), labels[: flags.limit].clone()
    test_digits = mnist.load(flags.data, train=False).tensors
    model = mnist.LeNet().share_memory()
    group = mp.Group(flags.processes + 1, timeout=3600)  # the others wait for a whole epoch
    done = mp.get_context(flags.start_method).SimpleQueue()
    processes = mp.spawn(
        work,
        (group, model, digits, flags, done),
        nprocs=flags.processes,
        join=False,
        start_method=flags.start_method,
    )
    assert processes is not None
    try:
        result = watch(group, model, test_digits, flags, done, len(digits[1]))
    except mp.GroupError:
        processes.join()  # raises if a process failed
        raise
    while not processes.join():
        pass
    return result


if __name__ == "__main__":
    main()
