"""Datasets zipped together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plait_data._dataset import Dataset
from plait_data._fetch import batch_at, samples_at

__all__ = ["StackDataset"]


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
            what = "both" if args else "none"
            raise ValueError(
                "StackDataset: datasets must be given either by position (samples are tuples) or "
                f"by name (samples are dicts); got {what}"
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
