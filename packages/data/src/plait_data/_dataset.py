"""Datasets: by index, streams, of arrays, and concatenations."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from plait_data._arrays import gather
from plait_data._html import Shown, array_text, name_and_size

__all__ = ["ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "TensorDataset"]

T_co = TypeVar("T_co", covariant=True)


class Indexable(Protocol[T_co]):
    """What has samples by index: a `Dataset`, a list, or an object of another class."""

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
        what = type(tensor).__name__
        if getattr(tensor, "shape", None) == ():
            what += " without dimensions"
        raise ValueError(
            f"TensorDataset: `tensors[{position}]` must have a first dimension; got a {what}"
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
        for dataset in self._checked():
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._checked())

    def _facts(self) -> Iterable[tuple[str, str]]:
        # an iterator is not touched: it could give its datasets only once
        datasets = self.datasets if isinstance(self.datasets, (list, tuple)) else ()
        for position, dataset in enumerate(datasets):
            yield f"datasets[{position}]", name_and_size(dataset)

    def _checked(self) -> Iterator[Any]:
        for position, dataset in enumerate(self.datasets):
            if not isinstance(dataset, IterableDataset):
                raise TypeError(
                    "ChainDataset: `datasets` must be IterableDatasets; "
                    f"datasets[{position}] is a {type(dataset).__name__}"
                )
            yield dataset
