"""Train a LeNet-5-style network on MNIST: the quickstart of plait.

    python examples/mnist.py --epochs 3

Each epoch prints the mean training loss and the accuracy on the 10000 test digits; at the end a
picture of the curves and of some predictions is in ``results/mnist.png``. The network follows
LeCun, Bottou, Bengio and Haffner, "Gradient-based learning applied to document recognition" (1998),
with ReLU, max-pooling and Adam.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mnist_files
import numpy as np
import numpy.typing as npt
import pictures

import plait
from plait import nn, optim
from plait.utils.data import DataLoader, Subset, TensorDataset
from plait.utils.data.datasets import MNIST

__all__ = ["Epoch", "LeNet", "accuracy", "load", "main", "train"]


class LeNet(nn.Module):
    """Two convolutions and three linear layers: 28x28 images to ten scores."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.pool = nn.MaxPool2d(2)
        self.relu = nn.ReLU()
        self.flatten = nn.Flatten()
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x: plait.Tensor) -> plait.Tensor:
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        x = self.flatten(x)
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        return self.fc3(x)


@dataclass
class Epoch:
    """The results of one epoch: mean loss, test accuracy in [0, 1], seconds of training."""

    loss: float
    accuracy: float
    seconds: float


def load(folder: Path, train: bool) -> TensorDataset:
    """The digits as float32 (n, 1, 28, 28) with mean 0 and deviation 1, and int64 labels."""
    digits = MNIST(folder, train=train)
    images = (digits.data.astype(np.float32) / 255 - 0.1307) / 0.3081
    return TensorDataset(plait.from_numpy(images[:, None]), plait.from_numpy(digits.targets))


def accuracy(model: nn.Module, loader: Iterable[Any]) -> float:
    """The share of digits whose highest score is at their label."""
    model.eval()
    right = total = 0
    with plait.no_grad():
        for images, labels in loader:
            right += (model(images).argmax(1) == labels).sum().item()
            total += len(labels)
    return right / total


def progress(loader: Any, epoch: int) -> Any:
    """The loader with a progress bar, if tqdm is installed."""
    try:
        from tqdm.auto import tqdm  # a bar of the notebook, in a notebook
    except ImportError:
        if epoch == 1:
            print("no progress bar: tqdm is not installed (pip install tqdm)")
        return loader
    return tqdm(loader, desc=f"epoch {epoch}", unit="batch", leave=False, mininterval=0.25)


def train(
    model: nn.Module, train_set: Any, test_set: Any, epochs: int, batch_size: int = 128
) -> list[Epoch]:
    """Trains with Adam at its default rate of 1e-3, and tests after each epoch."""
    train_loader = DataLoader(train_set, batch_size=batch_size, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=1000)
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    history = []
    for number in range(1, epochs + 1):
        start = time.perf_counter()
        model.train()
        total = 0.0
        bar = progress(train_loader, number)
        for images, labels in bar:
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
        seconds = time.perf_counter() - start
        epoch = Epoch(total / len(train_set), accuracy(model, test_loader), seconds)
        history.append(epoch)
        print(
            f"epoch {number}: loss {epoch.loss:.4f}, "
            f"test accuracy {100 * epoch.accuracy:.2f} %, {epoch.seconds:.1f} s",
            flush=True,
        )
    return history


def draw(path: Path, model: nn.Module, test_set: TensorDataset, history: list[Epoch]) -> None:
    """Draws the curves and twelve test digits, wrong ones first, at most six of them."""
    images, labels = test_set.tensors
    model.eval()
    with plait.no_grad():
        guesses: npt.NDArray[Any] = model(images[:1000]).argmax(1).numpy()
    truth = labels.numpy()[:1000]
    wrong = np.flatnonzero(guesses != truth)[:6]
    selection = np.concatenate([wrong, np.flatnonzero(guesses == truth)])[:12]
    path_or_none = pictures.training_summary(
        path,
        [epoch.loss for epoch in history],
        [epoch.accuracy for epoch in history],
        images.numpy()[selection, 0],
        truth[selection].tolist(),
        guesses[selection].tolist(),
    )
    if path_or_none is not None:
        print(f"picture: {path}")


def main(arguments: list[str] | None = None) -> list[Epoch]:
    """Reads the flags, trains, tests and draws."""
    parser = argparse.ArgumentParser(description="Train a LeNet-5-style network on MNIST.")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, help="train on the first LIMIT digits only")
    parser.add_argument("--output", type=Path, default=Path("results"), help="folder of mnist.png")
    parser.add_argument("--data", type=Path, default=mnist_files.default_folder())
    flags = parser.parse_args(arguments)

    plait.manual_seed(flags.seed)
    mnist_files.write_files(flags.data)
    train_set: Any = load(flags.data, train=True)
    test_set = load(flags.data, train=False)
    if flags.limit is not None:
        train_set = Subset(train_set, range(min(flags.limit, len(train_set))))
    model = LeNet()
    history = train(model, train_set, test_set, flags.epochs, flags.batch_size)
    draw(flags.output / "mnist.png", model, test_set, history)
    return history


if __name__ == "__main__":
    main()
