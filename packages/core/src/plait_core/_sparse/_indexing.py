"""Parts of a sparse tensor by indices: `select`, `narrow_copy`, `unsqueeze`, and ``x[...]``."""

from __future__ import annotations

from typing import Any

from plait_abi import ArgumentError, OutOfRangeError
from plait_abi.binding import operator
from plait_core._sparse._base import wrap_dim

__all__ = ["narrow_copy", "select", "unsqueeze"]


def select(x: Any, dim: int, index: int) -> Any:
    """Return the slice at an index of a dimension; of the only sparse dimension a dense one."""
    at, sparse = wrap_dim("select", dim, x.ndim), x.sparse_dim()
    size = x.shape[at]
    if not -size <= index < size:
        raise OutOfRangeError(
            f"select: index {index} is out of bounds for dimension {at} of shape {tuple(x.shape)}"
        )
    index %= size
    shape = tuple(n for i, n in enumerate(x.shape) if i != at)
    places, stored = x._indices(), x._values()
    if at >= sparse:
        return type(x)(places, stored.select(at - sparse + 1, index), shape, x._coalesced)
    here = operator("nonzero")(places[at] == index).reshape(-1)
    stored = stored.index_select(0, here)
    if sparse == 1:
        return stored.sum(0)
    rest = operator("stack")([places[i][here] for i in range(sparse) if i != at], 0)
    return type(x)(rest, stored, shape, x._coalesced)


def narrow_copy(x: Any, dim: int, start: int, length: int) -> Any:
    """Return the part of a dimension that has `length` indices from `start` on."""
    at, sparse = wrap_dim("narrow_copy", dim, x.ndim), x.sparse_dim()
    size = x.shape[at]
    if not (0 <= start <= size and 0 <= length <= size - start):
        raise ArgumentError(
            f"narrow_copy: `start` {start} and `length` {length} must lie in dimension {at} of "
            f"shape {tuple(x.shape)}"
        )
    shape = tuple(length if i == at else n for i, n in enumerate(x.shape))
    places, stored = x._indices(), x._values()
    if at >= sparse:
        part = stored.narrow(at - sparse + 1, start, length).clone()
        return type(x)(places.clone(), part, shape, x._coalesced)
    row = places[at]
    here = operator("nonzero")((row >= start) & (row < start + length)).reshape(-1)
    places = places.index_select(1, here)
    places[at] -= start
    return type(x)(places, stored.index_select(0, here), shape, x._coalesced)


def unsqueeze(x: Any, dim: int) -> Any:
    """Return the tensor with a new dimension of size 1, dense behind the sparse ones."""
    at, sparse = wrap_dim("unsqueeze", dim, x.ndim + 1), x.sparse_dim()
    shape = (*tuple(x.shape)[:at], 1, *tuple(x.shape)[at:])
    places, stored = x._indices(), x._values()
    if at > sparse:
        return type(x)(places, stored.unsqueeze(at - sparse + 1), shape, x._coalesced)
    rows = [places[i] for i in range(sparse)]
    rows.insert(at, operator("zeros")((stored.shape[0],), dtype=places.dtype, device=x.device))
    return type(x)(operator("stack")(rows, 0), stored, shape, x._coalesced)
