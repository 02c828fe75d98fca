"""Parts of a sparse tensor by indices: `select`, `unbind`, `unsqueeze`, and ``x[...]``."""

from __future__ import annotations

from typing import Any

from plait_abi import OutOfRangeError
from plait_abi.binding import operator
from plait_core._sparse._base import wrap_dim

__all__ = ["select", "unsqueeze"]


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
