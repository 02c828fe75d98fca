"""Indexing, searching, sorting and set functions of the standard."""

from __future__ import annotations

from typing import Any, NamedTuple

from plait_abi import ShapeError
from plait_core._core import Tensor, is_tensor
from plait_core.array_api._data_types import result_type
from plait_core.array_api._elementwise import common
from plait_core.array_api._operators import axes_of, call, several, wrap_axis

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "count_nonzero",
    "nonzero",
    "searchsorted",
    "sort",
    "take",
    "take_along_axis",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "where",
]


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Return the elements at positions along an axis.

    Raises:
        ValueError: if `axis` is None and `x` does not have exactly one dimension.
    """
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take: `axis` is required for shape {tuple(x.shape)}")
        axis = 0
    axis = wrap_axis("take", axis, x.ndim)
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    return call("index_select", x, axis, _wrapped(indices.reshape(-1), x.shape[axis])).reshape(
        shape
    )


def _wrapped(indices: Tensor, size: int) -> Tensor:
    indices = indices.to("int64")
    return call("where", indices < 0, indices + size, indices)


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return the elements whose positions along an axis `indices` gives; other axes broadcast."""
    axis = wrap_axis("take_along_axis", axis, x.ndim)
    if x.ndim != indices.ndim:
        raise ShapeError(
            f"take_along_axis: `x` and `indices` must have the same number of dimensions; got "
            f"shapes {tuple(x.shape)} and "
            f"{tuple(indices.shape)}"
        )
    outer = [max(a, b) if min(a, b) else 0 for a, b in zip(x.shape, indices.shape, strict=True)]
    source, target = list(outer), list(outer)
    source[axis], target[axis] = x.shape[axis], indices.shape[axis]
    index = _wrapped(indices.expand(tuple(target)), x.shape[axis])
    return call("gather", x.expand(tuple(source)), axis, index)


def _extreme(name: str, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    if axis is None:
        result = call(name, x.reshape(-1), 0)
        return result.reshape((1,) * x.ndim) if keepdims else result
    return call(name, x, wrap_axis(name, axis, x.ndim), keepdims)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the (first) largest element along an axis; None: in the flat array."""
    return _extreme("argmax", x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the (first) smallest element along an axis; None: in the flat array."""
    return _extreme("argmin", x, axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the number of elements that are not 0."""
    axes = axes_of("count_nonzero", axis, x.ndim)
    mask = (x if x.dtype.name == "bool" else x != 0).to("int64")
    return call("sum", mask, axes, keepdim=keepdims) if axes else mask


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Return the indices of the elements that are not 0, an array for each axis.

    Raises:
        ShapeError: if `x` has no dimensions.
    """
    if x.ndim == 0:
        raise ShapeError("nonzero: at least one dimension is required, got shape ()")
    return tuple(several("unbind", call("nonzero", x != 0 if x.dtype.is_complex else x), 1))


def searchsorted(
    x1: Tensor, x2: Tensor, /, *, side: str = "left", sorter: Tensor | None = None
) -> Tensor:
    """Return the indices at which the elements of `x2` would be inserted into the sorted `x1`."""
    a, b = common(x1, x2)
    if sorter is not None:
        a = take(a, sorter)
    return call("searchsorted", a, b, right=side == "right")


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """Return the elements of `x1` where the condition holds, else those of `x2`."""
    if not is_tensor(x1) and not is_tensor(x2):
        dtype = result_type(x1, x2)
        x1, x2 = (call("full", (), value, dtype=dtype) for value in (x1, x2))
    return call("where", condition, *common(x1, x2))


def _sorted(x: Tensor, axis: int, descending: bool, stable: bool) -> tuple[Tensor, Tensor]:
    if x.ndim == 0:
        return x.clone(), call("zeros", (), dtype="int64")
    at = wrap_axis("sort", axis, x.ndim)
    values, order = several("sort", x, dim=at, descending=descending, stable=stable)
    return values, order


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the elements in order along an axis; NaN is larger than all."""
    return _sorted(x, axis, descending, stable)[0]


def argsort(
    x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Tensor:
    """Return the positions of the elements in order along an axis."""
    return _sorted(x, axis, descending, stable)[1]


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Tensor
    inverse_indices: Tensor


def _order(flat: Tensor) -> Tensor:
    if not flat.dtype.is_complex:
        return several("sort", flat, dim=0, stable=True)[1]
    by_imag = several("sort", call("imag", flat), dim=0, stable=True)[1]
    by_real = several("sort", call("real", flat)[by_imag], dim=0, stable=True)[1]
    return by_imag[by_real]


def unique_all(x: Tensor, /) -> UniqueAll:
    """Return the distinct elements in order, the first index of each, the index of each element's
    value among them, and their counts. Every NaN is distinct.
    """
    flat = x.reshape(-1)
    n = flat.numel()
    order = _order(flat)
    ordered = flat[order]
    fresh = call("ones", (n,), dtype="bool")
    if n > 1:
        fresh[1:] = ordered[1:] != ordered[:-1]
    starts = call("nonzero", fresh).reshape(-1)
    ends = call("cat", [starts[1:], call("full", (min(n, 1),), n, dtype="int64")], 0)
    inverse = call("zeros", (n,), dtype="int64")
    inverse[order] = call("cumsum", fresh.to("int64"), 0) - 1
    return UniqueAll(ordered[starts], order[starts], inverse.reshape(tuple(x.shape)), ends - starts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """Return the distinct elements and their counts."""
    result = unique_all(x)
    return UniqueCounts(result.values, result.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """Return the distinct elements and the index of each element's value among them."""
    result = unique_all(x)
    return UniqueInverse(result.values, result.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """Return the distinct elements."""
    return unique_all(x).values
