"""The samples at given indices, by the fastest way a dataset offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["batch_at", "samples_at"]


def samples_at(dataset: Any, indices: Sequence[int]) -> list[Any]:
    """The list of samples at ``indices``, through ``__getitems__`` where the dataset has it.

    Raises:
        ValueError: ``__getitems__`` returned another number of samples.
    """
    if not _speaks_for_getitem(type(dataset), "__getitems__"):
        return [dataset[index] for index in indices]
    samples = dataset.__getitems__(indices)
    if len(samples) != len(indices):
        raise ValueError(
            f"{type(dataset).__name__}: `__getitems__` must return one sample an index; "
            f"got {len(samples)} for {len(indices)}"
        )
    return list(samples)


def batch_at(dataset: Any, indices: Sequence[int] | npt.NDArray[np.intp]) -> Any:
    """The collated batch at ``indices``, or NotImplemented where a dataset has no short way."""
    if not _speaks_for_getitem(type(dataset), "__getbatch__"):
        return NotImplemented
    array = np.asarray(indices)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        return NotImplemented  # a sampler of keys, not of positions
    return dataset.__getbatch__(array.astype(np.intp, copy=False))


def _speaks_for_getitem(kind: type, method: str) -> bool:
    """Whether ``method`` is as specific as ``__getitem__``.

    A subclass that overrides ``__getitem__`` alone (to augment images, say) must see it called.
    """
    for base in kind.__mro__:
        if method in vars(base):
            return True
        if "__getitem__" in vars(base):
            return False
    return False
