"""In-process loading, side by side with torch in turns.

    python benchmarks/bench_data.py

Both sides pass the same samples, in a random order, through a ``DataLoader`` without workers, and
make batches of their own library: NumPy arrays, or plait tensors where plait is installed, against
torch tensors. Printed are medians of an epoch and the ratio plait / torch; a ratio passes that is
at most the bar (0.5: at least twice torch's throughput).
"""

from __future__ import annotations

import importlib
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.utils.data
from loader_samples import epoch

import plait_data

__all__ = ["Case", "cases", "compare"]

Case = tuple[str, Callable[[], object], Callable[[], object], float]
Loader = Callable[..., Any]

COUNT = 12_800
BAR = 0.5
LEAST_SECONDS = 0.6  # for a case
MOST_ROUNDS = 60


class Samples:
    """An indexable dataset as a user writes it: an image and its label by index."""

    def __init__(self, images: Any, labels: Any) -> None:
        self.images = images
        self.labels = labels

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self.images[index], int(self.labels[index])

    def __len__(self) -> int:
        return len(self.images)


class Records(Samples):
    """The same as mappings of arrays, numbers and text."""

    def __getitem__(self, index: int) -> Any:
        return {"image": self.images[index], "label": int(self.labels[index]), "name": "digit"}


class Numbers:
    """Two numbers a sample."""

    def __getitem__(self, index: int) -> tuple[int, float]:
        return index, index / 2

    def __len__(self) -> int:
        return COUNT


def converter() -> Callable[[Any], Any]:
    """The function that makes a plait tensor of a NumPy array, or NumPy's own where plait is not
    installed.
    """
    try:
        core = importlib.import_module("plait_core")
    except ImportError:
        return np.asarray
    return core.from_numpy  # type: ignore[no-any-return]


def cases() -> list[Case]:
    """(name, an epoch with plait, an epoch with torch, the bar for their ratio)."""
    rng = np.random.default_rng(0)
    images = rng.random((COUNT, 1, 28, 28), dtype=np.float32)
    rows = rng.random((COUNT, 16), dtype=np.float32)
    labels = rng.integers(0, 10, COUNT)
    convert = converter()
    as_torch = torch.from_numpy

    def ours(data: Any, batch_size: int = 128) -> Callable[[], object]:
        return epoch(plait_data.DataLoader(data, batch_size, shuffle=True, convert=convert))

    def theirs(data: Any, batch_size: int = 128) -> Callable[[], object]:
        return epoch(torch.utils.data.DataLoader(data, batch_size, shuffle=True))

    def tensors(kind: Any, make: Any, x: Any) -> Any:
        return kind(make(x), make(labels))

    plait_set, torch_set = plait_data.TensorDataset, torch.utils.data.TensorDataset
    return [
        (
            "loader, TensorDataset of 28x28 images, batches of 128",
            ours(tensors(plait_set, convert, images)),
            theirs(tensors(torch_set, as_torch, images)),
            BAR,
        ),
        (
            "loader, TensorDataset of rows of 16, batches of 32",
            ours(tensors(plait_set, convert, rows), 32),
            theirs(tensors(torch_set, as_torch, rows), 32),
            BAR,
        ),
        (
            "loader, NumPy images sample by sample, batches of 128",
            ours(Samples(images, labels)),
            theirs(Samples(images, labels)),
            BAR,
        ),
        (
            "loader, NumPy rows of 16 sample by sample, batches of 32",
            ours(Samples(rows, labels), 32),
            theirs(Samples(rows, labels), 32),
            BAR,
        ),
        (
            "loader, mappings sample by sample, batches of 128",
            ours(Records(images, labels)),
            theirs(Records(images, labels)),
            BAR,
        ),
        (
            "loader, pairs of numbers, batches of 128",
            ours(Numbers()),
            theirs(Numbers()),
            BAR,
        ),
    ]


def compare(case: Case, rounds: int = 7) -> tuple[float, float]:
    """Median seconds of plait and of torch, measured in turns after one unmeasured turn each.

    Short epochs get more rounds, as other programs disturb them more.
    """
    _, ours, theirs, _ = case
    seconds: tuple[list[float], list[float]] = ([], [])
    begin = time.perf_counter()
    for turn in range(MOST_ROUNDS + 1):
        if turn > rounds and time.perf_counter() - begin > LEAST_SECONDS:
            break
        for run, times in zip((ours, theirs), seconds, strict=True):
            start = time.perf_counter()
            run()
            if turn:
                times.append(time.perf_counter() - start)
    return statistics.median(seconds[0]), statistics.median(seconds[1])


def main() -> int:
    """Print a line for each case; the exit status is 1 if a ratio is above its bar."""
    missed = 0
    for case in cases():
        ours, theirs = compare(case)
        ratio, bar = ours / theirs, case[3]
        missed += ratio > bar
        verdict = "ok" if ratio <= bar else "MISSED"
        print(
            f"{case[0]:60s} plait {1e3 * ours:8.1f} ms  torch {1e3 * theirs:8.1f} ms  "
            f"ratio {ratio:.3f} (bar {bar}) {verdict}"
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
