"""Datasets one after the other."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

from plait_data._dataset import Dataset, IterableDataset, T_co

__all__ = ["ChainDataset", "ConcatDataset"]


class ConcatDataset(Dataset[T_co]):
    """The samples of several datasets one after the other; ``a + b`` makes one too.

    Args:
        datasets: at least one dataset with ``len()``, none of them iterable-style.

    Raises:
        ValueError: ``datasets`` is empty.
        TypeError: one of them is an `IterableDataset` (`ChainDataset` is for these).

    Example:
        >>> from plait_data import ConcatDataset
        >>> both = ConcatDataset([["a", "b"], ["c"]])
        >>> len(both), both[2], both[-3]
        (3, 'c', 'a')
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets: list[Any] = list(datasets)
        if not self.datasets:
            raise ValueError("ConcatDataset: `datasets` must hold at least one dataset; got none")
        for position, dataset in enumerate(self.datasets):
            if isinstance(dataset, IterableDataset):
                raise TypeError(
                    "ConcatDataset: `datasets` must be indexable; "
                    f"datasets[{position}] is an IterableDataset (use ChainDataset)"
                )
        self.cumulative_sizes: list[int] = list(accumulate(len(d) for d in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T_co:
        size = len(self)
        if not -size <= index < size:
            raise IndexError(f"ConcatDataset: index must be in [{-size}, {size}); got {index}")
        index = index % size
        which = bisect_right(self.cumulative_sizes, index)
        start = self.cumulative_sizes[which - 1] if which else 0
        sample: T_co = self.datasets[which][index - start]
        return sample


class ChainDataset(IterableDataset[T_co]):
    """The streams of several iterable datasets one after the other; ``a + b`` makes one too.

    Args:
        datasets: iterable datasets.

    Raises:
        TypeError: at iteration, if one of them is not an `IterableDataset`.

    Example:
        >>> from plait_data import ChainDataset, IterableDataset
        >>> class Letters(IterableDataset[str]):
        ...     def __init__(self, letters):
        ...         self.letters = letters
        ...     def __iter__(self):
        ...         return iter(self.letters)
        >>> "".join(ChainDataset([Letters("pla"), Letters("it")]))
        'plait'
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[T_co]:
        for dataset in self._checked():
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._checked())

    def _checked(self) -> Iterator[Any]:
        for position, dataset in enumerate(self.datasets):
            if not isinstance(dataset, IterableDataset):
                raise TypeError(
                    "ChainDataset: `datasets` must be IterableDatasets; "
                    f"datasets[{position}] is a {type(dataset).__name__}"
                )
            yield dataset
