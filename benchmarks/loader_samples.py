"""Datasets and epochs for the benchmarks of loaders; workers import it, so it needs NumPy alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["Rows", "Texts", "Words", "epoch"]


class Rows:
    """``size`` samples: rows of one array, or of the tensor that ``make`` makes of it."""

    def __init__(self, size: int, width: int, make: Any = None) -> None:
        self.size = size
        rows = np.random.default_rng(0).random((64, width), dtype=np.float32)
        self.rows = rows if make is None else make(rows)

    def __getitem__(self, index: int) -> Any:
        return self.rows[index % 64]

    def __len__(self) -> int:
        return self.size


class Words:
    """Pairs of a text and a number from a large list."""

    def __init__(self, size: int) -> None:
        self.pairs = [(f"images/{i:08d}.png", i % 10) for i in range(size)]

    def __getitem__(self, index: int) -> tuple[int, int]:
        path, label = self.pairs[index]
        return len(path), label

    def __len__(self) -> int:
        return len(self.pairs)


class Texts:
    """Texts of 300 words as numbers, computed in Python: a tenth of a millisecond for each.

    The words of a sample are its own, or those of one list that all samples read. Other numbers in
    the code are small ones, which CPython does not count references of: threads would take turns.
    """

    def __init__(self, size: int, *, shared: bool = False) -> None:
        self.size = size
        self.words = _words() if shared else None

    def __getitem__(self, index: int) -> list[int]:
        numbers = []
        for word in self.words or _words():
            number = index
            for letter in word:
                number = (number * 31 + ord(letter)) % 251
            numbers.append(number)
        return numbers[:64]

    def __len__(self) -> int:
        return self.size


def _words() -> list[str]:
    return [f"word{number * 199 % 1000}" for number in range(300)]


def epoch(loader: Any) -> Callable[[], object]:
    """A function that passes once through the loader and keeps no batch."""

    def run() -> int:
        count = 0
        for _ in loader:
            count += 1
        return count

    return run
