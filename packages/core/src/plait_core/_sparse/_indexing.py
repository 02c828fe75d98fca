"""Parts of a sparse tensor by indices: `select`, `unbind`, `unsqueeze`, and ``x[...]``."""

from __future__ import annotations

import operator as python
from typing import TYPE_CHECKING, Any

from plait_abi.binding import operator
from plait_core._core import is_tensor
from plait_core._sparse._base import SparseBase, wrap_dim

if TYPE_CHECKING:
    from plait_core._sparse._coordinates import SparseTensor

__all__ = ["item", "select", "unsqueeze"]


def select(x: SparseTensor, dim: int, index: int) -> Any:
    """Return the slice at an index of a dimension; of the only sparse dimension a dense one."""
    at, sparse = wrap_dim("select", dim, x.ndim), x.sparse_dim()
    size = x.shape[at]
    if not -size <= index < size:
        raise IndexError(
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


def unsqueeze(x: SparseTensor, dim: int) -> SparseTensor:
    """Return the tensor with a new dimension of size 1, dense behind the sparse ones."""
    at, sparse = wrap_dim("unsqueeze", dim, x.ndim + 1), x.sparse_dim()
    shape = (*tuple(x.shape)[:at], 1, *tuple(x.shape)[at:])
    places, stored = x._indices(), x._values()
    if at > sparse:
        return type(x)(places, stored.unsqueeze(at - sparse + 1), shape, x._coalesced)
    rows = [places[i] for i in range(sparse)]
    rows.insert(at, operator("zeros")((stored.shape[0],), dtype=places.dtype, device=x.device))
    return type(x)(operator("stack")(rows, 0), stored, shape, x._coalesced)


def item(x: Any, index: Any) -> Any:
    """Return ``x[index]`` for ints, None, Ellipsis and whole slices; a part may be dense."""
    x = x.to_sparse_coo()
    keys = index if isinstance(index, tuple) else (index,)
    whole = slice(None)
    taken = sum(key is not None and key is not Ellipsis for key in keys)
    if taken > x.ndim or sum(key is Ellipsis for key in keys) > 1:
        raise IndexError(f"indexing: too many indices for shape {tuple(x.shape)}: {index!r}")
    dim = 0
    for number, key in enumerate(keys):
        if not isinstance(x, SparseBase):
            rest = (*[whole] * dim, *keys[number:])
            return x[rest]
        if key is Ellipsis:
            dim = x.ndim - sum(each is not None for each in keys[number + 1 :])
        elif key is None:
            x = x.unsqueeze(dim)
            dim += 1
        elif isinstance(key, slice) and key == whole:
            dim += 1
        elif isinstance(key, bool) or not (hasattr(key, "__index__") or is_tensor(key)):
            raise TypeError(
                "indexing: a sparse tensor takes ints, None, Ellipsis and `:`, got "
                f"{type(key).__name__}; call to_dense() first"
            )
        else:
            x = x.select(dim, python.index(key))
    return x
