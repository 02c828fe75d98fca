"""A part of a dataset, and random parts of it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from plait_data._dataset import Dataset, Indexable, T_co
from plait_data._fetch import batch_at, samples_at
from plait_data._html import name_and_size
from plait_data._randomness import RandomSource

__all__ = ["Subset", "random_split"]

T = TypeVar("T")


class Subset(Dataset[T_co]):
    """The samples of ``dataset`` at ``indices``, in that order.

    Args:
        dataset: any indexable dataset.
        indices: a sequence of indices into it; one may come several times.

    Example:
        >>> from plait_data import Subset
        >>> list(Subset("plait", [4, 0]))
        ['t', 'p']
    """

    def __init__(self, dataset: Indexable[T_co], indices: Sequence[int]) -> None:
        self.dataset: Any = dataset
        self.indices = indices
        self._array: npt.NDArray[np.intp] | None = None

    def __getitem__(self, index: Any) -> T_co:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]  # type: ignore[no-any-return]
        return self.dataset[self.indices[index]]  # type: ignore[no-any-return]

    def __getitems__(self, indices: Sequence[int]) -> list[T_co]:
        return samples_at(self.dataset, [self.indices[i] for i in indices])

    def __getbatch__(self, indices: npt.NDArray[np.intp]) -> Any:
        if self._array is None or len(self._array) != len(self.indices):
            array = np.asarray(self.indices)
            if array.dtype.kind not in "iu" or array.ndim != 1:
                return NotImplemented  # keys of another kind: sample by sample
            self._array = array.astype(np.intp)
        return batch_at(self.dataset, self._array[indices])

    def __len__(self) -> int:
        return len(self.indices)

    def _facts(self) -> Iterable[tuple[str, str]]:
        yield from super()._facts()
        yield "of", name_and_size(self.dataset)


def random_split(
    dataset: Indexable[T], lengths: Sequence[int | float], generator: Any = None
) -> list[Subset[T]]:
    """Split a dataset at random into disjoint parts.

    Args:
        dataset: a dataset with ``len()``.
        lengths: the number of samples of each part, summing to ``len(dataset)``; or fractions
            summing to 1: part ``i`` then gets ``floor(n * lengths[i])`` samples, and the remaining
            samples go to the first parts, one each.
        generator: None, a ``numpy.random.Generator``, an int seed, or another library's generator.

    Raises:
        ValueError: the lengths don't sum to the dataset's, or one is negative.

    Example:
        >>> from plait_data import random_split
        >>> train, test = random_split(range(10), [0.8, 0.2], generator=0)
        >>> len(train), len(test), sorted([*train, *test]) == list(range(10))
        (8, 2, True)
    """
    if not hasattr(dataset, "__len__"):
        raise TypeError(f"random_split: `dataset` must have a length; got {type(dataset).__name__}")
    sized: Any = dataset
    counts = _counts(len(sized), lengths)
    order = RandomSource("random_split", generator).rng().permutation(len(sized)).tolist()
    parts = []
    start = 0
    for count in counts:
        parts.append(Subset[T](dataset, order[start : start + count]))
        start += count
    return parts


def _counts(size: int, lengths: Sequence[int | float]) -> list[int]:
    if not hasattr(lengths, "__iter__") or not all(hasattr(n, "__float__") for n in lengths):
        raise TypeError(f"random_split: `lengths` must be a sequence of numbers; got {lengths!r}")
    if any(not length >= 0 for length in lengths):
        raise ValueError(f"random_split: `lengths` must be >= 0; got {list(lengths)}")
    if not math.isclose(sum(lengths), 1):
        return _whole_counts(size, lengths)
    counts = [math.floor(size * length) for length in lengths]
    for i in range(size - sum(counts)):
        counts[i % len(counts)] += 1
    for position, count in enumerate(counts):
        if count == 0:
            warnings.warn(f"random_split: part {position} of {size} samples is empty", stacklevel=3)
    return counts


def _whole_counts(size: int, lengths: Sequence[int | float]) -> list[int]:
    if sum(lengths) != size or any(length != int(length) for length in lengths):
        raise ValueError(
            "random_split: `lengths` must be counts that sum to the length of the dataset "
            f"({size}) or fractions that sum to 1; got {list(lengths)}"
        )
    return [int(length) for length in lengths]
