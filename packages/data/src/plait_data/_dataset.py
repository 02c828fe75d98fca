"""Datasets: by index, streams, of arrays, and concatenations."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from plait_data._arrays import gather
from plait_data._fetch import batch_at, samples_at
from plait_data._html import Shown, array_text, name_and_size
from plait_data._randomness import RandomSource

T_co = TypeVar("T_co", covariant=True)


class Indexable(Protocol[T_co]):
    """An object with samples by index: a `Dataset`, a list, or an object of another class."""

    def __getitem__(self, index: Any, /) -> T_co: ...


class Dataset(Shown, Generic[T_co]):
    """Samples by index. A subclass defines ``__getitem__(index)`` and, mostly, ``__len__()``.

    Deriving is not required: a loader takes any object with these two methods, such as a list.
    Two methods are optional and make loading faster:

    - ``__getitems__(indices)`` returns the list of the samples at a list of indices.
    - ``__getbatch__(indices)`` returns the samples at an array of indices collated already, each
      array with a new first dimension, or NotImplemented. The loader calls it only if the default
      collation would run.

    Neither is called if a subclass overrides only ``__getitem__``.

    Example:
        >>> from plait_data import Dataset, DataLoader
        >>> class Squares(Dataset[int]):
        ...     def __getitem__(self, index):
        ...         return index * index
        ...     def __len__(self):
        ...         return 4
        >>> [batch.tolist() for batch in DataLoader(Squares(), batch_size=2)]
        [[0, 1], [4, 9]]
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(
            f"{type(self).__name__}: a Dataset must define `__getitem__(index)`; it has none"
        )

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """Samples in a stream. A subclass defines ``__iter__()``, and ``__len__()`` if the length is
    known.

    Example:
        >>> from plait_data import IterableDataset, DataLoader
        >>> class Countdown(IterableDataset[int]):
        ...     def __iter__(self):
        ...         return iter([3, 2, 1])
        >>> [batch.tolist() for batch in DataLoader(Countdown(), batch_size=2)]
        [[3, 2], [1]]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(
            f"{type(self).__name__}: an IterableDataset must define `__iter__()`; it has none"
        )

    def __add__(self, other: Dataset[T_co]) -> ChainDataset[T_co]:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Any, ...]]):
    """Arrays side by side: sample ``i`` is ``(tensors[0][i], tensors[1][i], ...)``.

    Args:
        *tensors: NumPy arrays, plait or torch tensors, or anything else with ``len()`` that can be
            indexed; all of one length (for arrays: one size of the first dimension).

    A loader with the default collation gathers a whole batch of each array at once instead of
    sample by sample; the batches are the same.

    Raises:
        ValueError: no tensor, a tensor without dimensions, or unequal lengths.

    Example:
        >>> import numpy as np
        >>> from plait_data import TensorDataset
        >>> samples = TensorDataset(np.zeros((5, 2)), np.arange(5))
        >>> len(samples), samples[3][1].item()
        (5, 3)
    """

    def __init__(self, *tensors: Any) -> None:
        if not tensors:
            raise ValueError("TensorDataset: at least one tensor is required; got none")
        sizes = [_length(position, tensor) for position, tensor in enumerate(tensors)]
        if any(size != sizes[0] for size in sizes):
            raise ValueError(
                "TensorDataset: `tensors` must have one size of the first dimension; "
                f"got {', '.join(map(str, sizes))}"
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])

    def _facts(self) -> Iterable[tuple[str, str]]:
        yield from super()._facts()
        for position, tensor in enumerate(self.tensors):
            yield f"tensors[{position}]", array_text(tensor)

    def __getbatch__(self, indices: npt.NDArray[np.intp]) -> Any:
        """The samples at ``indices``, one array for each tensor; NotImplemented if one has no
        gather.
        """
        columns = []
        for tensor in self.tensors:
            column = gather(tensor, indices)
            if column is NotImplemented:
                return NotImplemented
            columns.append(column)
        return columns


def _length(position: int, tensor: Any) -> int:
    try:
        return len(tensor)
    except TypeError:
        got = type(tensor).__name__
        if getattr(tensor, "shape", None) == ():
            got += " without dimensions"
        raise ValueError(
            f"TensorDataset: `tensors[{position}]` must have a first dimension; got a {got}"
        ) from None


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

    def __init__(self, datasets: Iterable[Indexable[T_co]]) -> None:
        if not hasattr(datasets, "__iter__") and not hasattr(datasets, "__getitem__"):
            raise TypeError(
                "ConcatDataset: `datasets` must be a sequence of datasets; "
                f"got {type(datasets).__name__}"
            )
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

    def _facts(self) -> Iterable[tuple[str, str]]:
        yield from super()._facts()
        for position, dataset in enumerate(self.datasets):
            yield f"datasets[{position}]", name_and_size(dataset)

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

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets: Iterable[Any] = datasets

    def __iter__(self) -> Iterator[T_co]:
        for dataset in self._streams():
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._streams())

    def _facts(self) -> Iterable[tuple[str, str]]:
        # an iterator is not touched: it could give its datasets only once
        datasets = self.datasets if isinstance(self.datasets, (list, tuple)) else ()
        for position, dataset in enumerate(datasets):
            yield f"datasets[{position}]", name_and_size(dataset)

    def _streams(self) -> Iterator[Any]:
        for position, dataset in enumerate(self.datasets):
            if not isinstance(dataset, IterableDataset):
                raise TypeError(
                    "ChainDataset: `datasets` must be IterableDatasets; "
                    f"datasets[{position}] is a {type(dataset).__name__}"
                )
            yield dataset


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
        parts.append(Subset(dataset, order[start : start + count]))
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


class StackDataset(Dataset[Any]):
    """Several datasets side by side: sample ``i`` holds sample ``i`` of each.

    Args:
        *args: indexable datasets of one length; samples are tuples.
        **kwargs: or datasets by name; samples are dicts.

    Attributes:
        datasets: the tuple or dict of them.

    Raises:
        ValueError: no dataset, both kinds of arguments, or unequal lengths.

    Example:
        >>> from plait_data import StackDataset
        >>> StackDataset("ab", [1, 2])[1], StackDataset(letter="ab", number=[1, 2])[0]
        (('b', 2), {'letter': 'a', 'number': 1})
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            got = "both" if args else "none"
            raise ValueError(
                "StackDataset: datasets must be given either by position (samples are tuples) or "
                f"by name (samples are dicts); got {got}"
            )
        self.datasets: tuple[Any, ...] | dict[str, Any] = args or kwargs
        lengths = [len(dataset) for dataset in self._each()]
        if len(set(lengths)) > 1:
            raise ValueError(
                f"StackDataset: datasets must have one length; got {', '.join(map(str, lengths))}"
            )

    def _each(self) -> Iterable[Any]:
        return self.datasets.values() if isinstance(self.datasets, dict) else self.datasets

    def _named(self, parts: Sequence[Any]) -> Any:
        if isinstance(self.datasets, dict):
            return dict(zip(self.datasets, parts, strict=True))
        return tuple(parts)

    def __getitem__(self, index: Any) -> Any:
        return self._named([dataset[index] for dataset in self._each()])

    def __getitems__(self, indices: Sequence[Any]) -> list[Any]:
        columns = [samples_at(dataset, indices) for dataset in self._each()]
        return [self._named(parts) for parts in zip(*columns, strict=True)]

    def __getbatch__(self, indices: npt.NDArray[np.intp]) -> Any:
        """The batch at ``indices``; NotImplemented if a dataset has no ``__getbatch__``."""
        batches = []
        for dataset in self._each():
            batch = batch_at(dataset, indices)
            if batch is NotImplemented:
                return NotImplemented
            batches.append(batch)
        return self._named(batches) if isinstance(self.datasets, dict) else batches

    def __len__(self) -> int:
        return len(next(iter(self._each())))
