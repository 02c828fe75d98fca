"""Stacking and gathering arrays of any library without importing one.

An array is what exchanges memory by DLPack. Its library is what its ``__array_namespace__()``
returns (the array API standard) or else the top-level module of the class that defines
``__dlpack__``, which is loaded already, since the array exists.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["gather", "is_array", "stack"]

Index = npt.NDArray[np.intp]


def is_array(value: object) -> bool:
    """Whether ``value`` is an array or tensor of some library (NumPy scalars are not)."""
    if isinstance(value, np.ndarray):
        return True
    return hasattr(type(value), "__dlpack__") and not isinstance(value, np.generic)


def _library(array: Any) -> Any:
    """The module with the functions for ``array``, or None."""
    namespace = getattr(array, "__array_namespace__", None)
    if namespace is not None:
        return namespace()
    for base in type(array).__mro__:
        if "__dlpack__" in vars(base):
            return sys.modules.get(base.__module__.partition(".")[0])
    return None


def stack(arrays: Sequence[Any]) -> Any:
    """The arrays, all of one shape, along a new first dimension; a fresh array.

    Raises:
        TypeError: the arrays are not of NumPy and their library has no ``stack``.
    """
    first = arrays[0]
    if isinstance(first, np.ndarray):
        if first.ndim == 0:
            return np.array(arrays)
        # One concatenation along the existing dimension: np.stack makes a view of each first.
        return np.concatenate(arrays).reshape(len(arrays), *first.shape)
    function = getattr(_library(first), "stack", None)
    if function is None:
        kind = f"{type(first).__module__}.{type(first).__qualname__}"
        raise TypeError(
            f"stack: the library of an array must offer `stack`; {kind} has none "
            "(plait_data.collate.register can say how its samples become a batch)"
        )
    return function(arrays)


def gather(array: Any, indices: Index) -> Any:
    """``array[indices]`` along the first dimension as a fresh array, or NotImplemented.

    Raises:
        IndexError: an index is outside of [-n, n) for n = len(array).
    """
    if type(array) is np.ndarray:
        return array.take(indices, axis=0)
    if isinstance(array, np.ndarray):  # masked arrays, memory maps: their own indexing
        return array[indices]
    if not is_array(array):
        return NotImplemented
    library = _library(array)
    indices = _in_range(indices, len(array))
    if hasattr(library, "index_select") and hasattr(library, "from_numpy"):
        return library.index_select(array, 0, library.from_numpy(indices))
    if hasattr(library, "take") and hasattr(library, "asarray"):
        return library.take(array, library.asarray(indices), axis=0)
    return NotImplemented


def _in_range(indices: Index, size: int) -> Index:
    """The indices with negative ones counted from the end, which the standard leaves open."""
    if indices.size == 0:
        return indices
    low, high = indices.min(), indices.max()
    if low < -size or high >= size:
        wrong = low if low < -size else high
        raise IndexError(f"gather: indices must be in [{-size}, {size}); got {wrong}")
    return indices if low >= 0 else np.where(indices < 0, indices + size, indices)
