"""Statistical and utility functions of the standard."""

from __future__ import annotations

from typing import Any

from plait_core._core import Tensor
from plait_core.array_api._data_types import promote, wide
from plait_core.array_api._operators import axes_of, call, wrap_axis

__all__ = [
    "all",
    "any",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]

Axis = int | tuple[int, ...] | None


def sum(x: Tensor, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the sum; of integers in 64 bits, unsigned ones unsigned."""
    axes, kind = axes_of("sum", axis, x.ndim), wide(x, dtype)
    if not axes:
        return x.to(kind, copy=True)
    return call("sum", x.to(kind), axes, keepdim=keepdims, dtype=kind)


def prod(x: Tensor, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the product; of integers in 64 bits, unsigned ones unsigned."""
    axes = axes_of("prod", axis, x.ndim)
    kind = wide(x, dtype)
    result = x.to(kind, copy=not axes)
    for each in sorted(axes, reverse=True):
        result = call("prod", result, each, keepdim=keepdims, dtype=kind)
    return result


def _extreme(name: str, x: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    axes = axes_of(name, axis, x.ndim)
    return call(name, x, axes, keepdim=keepdims) if axes else x.clone()


def max(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the largest element."""
    return _extreme("amax", x, axis, keepdims)


def min(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the smallest element."""
    return _extreme("amin", x, axis, keepdims)


def mean(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the mean."""
    axes = axes_of("mean", axis, x.ndim)
    return call("mean", x, axes, keepdim=keepdims) if axes else x.clone()


def var(
    x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """Return the mean squared distance from the mean, with ``n - correction`` for n."""
    axes = axes_of("var", axis, x.ndim)
    n = 1
    for each in axes:
        n *= x.shape[each]
    distance = x - call("mean", x, axes, keepdim=True) if axes else x - x
    total = call("sum", distance * distance, axes, keepdim=keepdims) if axes else distance
    return total / (n - correction)


def std(
    x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """Return the square root of `var`."""
    return call("sqrt", var(x, axis=axis, correction=correction, keepdims=keepdims))


def _truth(name: str, x: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    mask = x.clone() if x.dtype.name == "bool" else x != 0
    for each in sorted(axes_of(name, axis, x.ndim), reverse=True):
        mask = call(name, mask, each, keepdim=keepdims)
    return mask


def all(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return whether all elements are not 0."""
    return _truth("all", x, axis, keepdims)


def any(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return whether any element is not 0."""
    return _truth("any", x, axis, keepdims)


def _scan(name: str, x: Tensor, axis: int | None, dtype: Any, initial: int | None) -> Tensor:
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"{name}: `axis` is required for shape {tuple(x.shape)}")
        axis = 0
    axis = wrap_axis(name, axis, x.ndim)
    kind = wide(x, dtype)
    result = call(name, x.to(kind), axis, dtype=kind)
    if initial is None:
        return result
    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    return call("cat", [call("full", shape, initial, dtype=result.dtype), result], axis)


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Return the sums of the first elements along an axis; `include_initial`: from 0 on."""
    return _scan("cumsum", x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Return the products of the first elements along an axis; `include_initial`: from 1 on."""
    return _scan("cumprod", x, axis, dtype, 1 if include_initial else None)


def diff(
    x: Tensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Return the differences of neighbours along an axis, `n` times over.

    Raises:
        ValueError: if `n` is negative.
    """
    if n < 0:
        raise ValueError(f"diff: `n` must not be negative, got {n}")
    axis = wrap_axis("diff", axis, x.ndim)
    parts = [each for each in (prepend, x, append) if each is not None]
    dtype = x.dtype
    for each in parts:
        dtype = promote(dtype, each.dtype)
    result = call("cat", [each.to(dtype) for each in parts], axis) if len(parts) > 1 else x
    for _ in range(n):
        size = result.shape[axis]
        after = result.narrow(axis, 1, size - 1) if size else result
        before = result.narrow(axis, 0, size - 1) if size else result
        result = after != before if dtype.name == "bool" else after - before
    return result.clone() if n == 0 else result
