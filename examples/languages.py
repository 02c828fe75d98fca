"""What examples/rust and examples/node do, in Python, for the comparison; and the file they train.

    python examples/languages.py FOLDER

It writes the MNIST files and `step.safetensors`, one step of training of a small network, to the
folder. Then it trains the network twice, by the compiled step and with operators one by one, and
prints the mean loss of each 20 steps. The programs in Rust and JavaScript print the same numbers.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import mnist_files

import plait
import plait_graph
from plait import nn, optim
from plait.utils.data.datasets import MNIST

__all__ = ["batches", "export_step", "main", "train_eagerly", "train_step"]

STEPS, ROWS, WIDTH = 100, 100, 32


def batches(folder: Path) -> Iterator[tuple[plait.Tensor, plait.Tensor]]:
    """Yield batches of the first images, as numbers from 0 to 1, and their classes."""
    data = MNIST(folder, train=True)
    images = plait.tensor(data.data[: STEPS * ROWS]).reshape(-1, 784).float() / 255
    labels = plait.tensor(data.targets[: STEPS * ROWS])
    yield from zip(images.split(ROWS), labels.split(ROWS), strict=True)


def parameter(rows: int, columns: int, seed: int) -> plait.Tensor:
    """Return uniform numbers of one seed, small for many rows."""
    generator = plait.Generator().manual_seed(seed)
    uniform = plait.rand(rows, columns, generator=generator)
    return ((uniform - 0.5) * (2 / math.sqrt(rows))).requires_grad_()


def parameters() -> list[plait.Tensor]:
    """Return the weights and biases of two layers."""
    return [
        parameter(784, WIDTH, 1),
        parameter(1, WIDTH, 2),
        parameter(WIDTH, 10, 3),
        parameter(1, 10, 4),
    ]


def loss_of(weights: Sequence[plait.Tensor], x: plait.Tensor, y: plait.Tensor) -> plait.Tensor:
    """Return the mean cross-entropy of a batch."""
    w1, b1, w2, b2 = weights
    hidden = (x @ w1 + b1).relu()
    return nn.functional.cross_entropy(hidden @ w2 + b2, y)


def report(losses: list[float]) -> list[str]:
    """Return the mean losses of each 20 steps as text."""
    return [
        f"steps {end - 19:3d} to {end:3d}  loss {sum(losses[end - 20 : end]) / 20:.4f}"
        for end in range(20, len(losses) + 1, 20)
    ]


def train_eagerly(folder: Path) -> list[str]:
    """Train with operators and the optimizer Adam."""
    weights = parameters()
    optimizer = optim.Adam(weights, lr=1e-3)
    losses = []
    for x, y in batches(folder):
        optimizer.zero_grad()
        loss = loss_of(weights, x, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return report(losses)


def export_step(folder: Path) -> None:
    """Write the file with one step of the same training."""
    weights = parameters()
    optimizer = optim.Adam(weights, lr=1e-3)

    @plait_graph.compile(frozen=True)
    def step(x: plait.Tensor, y: plait.Tensor) -> plait.Tensor:
        optimizer.zero_grad()
        loss = loss_of(weights, x, y)
        loss.backward()
        optimizer.step()
        return loss

    # recording makes a few steps, so the file begins behind them
    example = next(batches(folder))
    plait_graph.export(step._orig_mod, example, folder / "step.safetensors", training=True)


def train_step(folder: Path) -> list[str]:
    """Train by the step in the file."""
    step = plait_graph.load(folder / "step.safetensors")
    return report([step(x, y).item() for x, y in batches(folder)])


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the files, and train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    mnist_files.write_files(folder)
    export_step(folder)
    print("the step in the file", *train_step(folder), sep="\n")
    print("operators one by one", *train_eagerly(folder), sep="\n")


if __name__ == "__main__":
    main()
