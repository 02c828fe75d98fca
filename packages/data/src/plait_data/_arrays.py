"""Stacking and gathering arrays of any library without importing one.

An array is an object that exchanges memory by DLPack. Its library is what its
``__array_namespace__()`` returns (the array API standard) or else the top-level module of the class
that defines ``__dlpack__``, which is loaded already, since the array exists.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Index = npt.NDArray[np.intp]
Allocate = Callable[[tuple[int, ...], np.dtype[Any]], Any]

_allocate: Allocate | None = None


def allocate_with(allocate: Allocate | None) -> None:
    """Set the allocator of the arrays of batches, which in workers uses shared memory.

    ``allocate(shape, dtype)`` returns an array to write to, or None to leave it to NumPy.
    """
    global _allocate
    _allocate = allocate


def _destination(arrays: Sequence[Any]) -> Any:
    """The destination for a stack of NumPy arrays, or None for a new array."""
    first = arrays[0]
    if _allocate is None or type(first) is not np.ndarray or first.dtype.hasobject:
        return None
    if any(array.dtype != first.dtype or type(array) is not np.ndarray for array in arrays):
        return None
    return _allocate((len(arrays), *first.shape), first.dtype)


def is_array(value: object) -> bool:
    """Whether ``value`` is an array or tensor of some library (NumPy scalars are not)."""
    if isinstance(value, np.ndarray):
        return True
    return hasattr(type(value), "__dlpack__") and not isinstance(value, np.generic)


def library_of(array: Any) -> Any:
    """The module with the functions for ``array``, or None."""
    namespace = getattr(array, "__array_namespace__", None)
    if namespace is not None:
        return namespace()
    for base in type(array).__mro__:
        if "__dlpack__" in vars(base):
            return sys.modules.get(base.__module__.partition(".")[0])
    return None


_stack_functions: dict[type, Any] = {}  # of the libraries of these classes of arrays


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
        out = _destination(arrays)
        if out is not None:
            np.concatenate(arrays, out=out.reshape(-1, *first.shape[1:]))
            return out
        return np.concatenate(arrays).reshape(len(arrays), *first.shape)
    function = _stack_functions.get(type(first))
    if function is None:
        function = getattr(library_of(first), "stack", None)
        if function is not None:
            _stack_functions[type(first)] = function
    if _allocate is None and function is not None:
        return function(arrays)
    if function is None:
        kind = f"{type(first).__module__}.{type(first).__qualname__}"
        raise TypeError(
            f"stack: the library of an array must offer `stack`; {kind} has none "
            "(plait_data.collate.register can say how its samples become a batch)"
        )
    out = _foreign_destination(arrays)
    # The array API's `stack` has no `out`; the library's own, with PyTorch's names, does.
    return function(arrays) if out is None else tensor_library(first).stack(arrays, out=out)


def _foreign_destination(arrays: Sequence[Any]) -> Any:
    """A tensor of the arrays' library over memory of `allocate_with`, or None."""
    if _allocate is None or (library := tensor_library(arrays[0])) is None:
        return None
    first = arrays[0]
    if any(type(array) is not type(first) or array.dtype != first.dtype for array in arrays):
        return None
    try:
        dtype = first.numpy().dtype
    except (TypeError, ValueError, RuntimeError):  # a dtype or device that NumPy does not support
        return None
    out = _allocate((len(arrays), *first.shape), dtype)
    return None if out is None else library.from_numpy(out)


def tensor_library(value: Any) -> Any:
    """The module whose ``Tensor`` is exactly the type of ``value`` and that has ``from_numpy``."""
    kind = type(value)
    library = sys.modules.get(kind.__module__.partition(".")[0])
    if getattr(library, "Tensor", None) is not kind or not hasattr(library, "from_numpy"):
        return None
    return library if hasattr(kind, "numpy") else None


def gather(array: Any, indices: Index) -> Any:
    """``array[indices]`` along the first dimension as a fresh array, or NotImplemented.

    Raises:
        IndexError: an index is outside of [-n, n) for n = len(array).
    """
    if type(array) is np.ndarray:
        shape = (len(indices), *array.shape[1:])
        if _allocate is not None and not array.dtype.hasobject:
            out = _allocate(shape, array.dtype)
            # indices are checked here, as with mode="raise" NumPy would copy twice
            if out is not None:
                return array.take(_in_range(indices, len(array)), axis=0, out=out, mode="clip")
        return array.take(indices, axis=0)
    if isinstance(array, np.ndarray):  # masked arrays and memory maps use their own indexing
        return array[indices]
    if not is_array(array):
        return NotImplemented
    library = library_of(array)
    indices = _in_range(indices, len(array))
    if hasattr(library, "index_select") and hasattr(library, "from_numpy"):
        return library.index_select(array, 0, _as_index(library.from_numpy(indices), array))
    if hasattr(library, "take") and hasattr(library, "asarray"):
        return library.take(array, _as_index(library.asarray(indices), array), axis=0)
    return NotImplemented


def _as_index(index: Any, array: Any) -> Any:
    """The index on the device of the array, if their library has devices."""
    device = getattr(array, "device", None)
    # the standard's method, and PyTorch's
    move = getattr(index, "to_device", None) or getattr(index, "to", None)
    return index if device is None or move is None else move(device)


def _in_range(indices: Index, size: int) -> Index:
    """The indices with negative ones counted from the end, which the standard does not require."""
    if indices.size == 0:
        return indices
    low, high = indices.min(), indices.max()
    if low < -size or high >= size:
        wrong = low if low < -size else high
        raise IndexError(f"gather: indices must be in [{-size}, {size}); got {wrong}")
    return indices if low >= 0 else np.where(indices < 0, indices + size, indices)
