"""Parts of a sparse tensor: ``x[...]``."""

from __future__ import annotations

import operator
from typing import Any

from plait_abi import OutOfRangeError
from plait_core._core import is_tensor

__all__ = ["item"]


def item(x: Any, index: Any) -> Any:
    """Return ``x[index]`` for ints, None, Ellipsis and whole slices; a part may be dense."""
    x = x.to_sparse_coo()
    keys = index if isinstance(index, tuple) else (index,)
    whole = slice(None)
    taken = sum(key is not None and key is not Ellipsis for key in keys)
    if taken > x.ndim or sum(key is Ellipsis for key in keys) > 1:
        raise OutOfRangeError(f"indexing: too many indices for shape {tuple(x.shape)}: {index!r}")
    dim = 0
    for number, key in enumerate(keys):
        if not hasattr(x, "_coalesced"):  # a slice of the only sparse dimension is dense
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
            x = x.select(dim, operator.index(key))
    return x
