"""Additions to plait's `sparse`: the older constructors of sparse tensors."""

from __future__ import annotations

from typing import Any

import plait

__all__ = ["DoubleTensor", "FloatTensor", "IntTensor", "LongTensor"]


def _constructor(name: str, dtype: Any) -> Any:
    def construct(indices: Any, values: Any, size: Any = None) -> Any:
        return plait.sparse_coo_tensor(indices, values.to(dtype), size)

    construct.__name__ = construct.__qualname__ = name
    construct.__doc__ = f"Return a sparse tensor of {dtype.name}: ``torch.sparse_coo_tensor``."
    return construct


DoubleTensor = _constructor("DoubleTensor", plait.float64)
FloatTensor = _constructor("FloatTensor", plait.float32)
IntTensor = _constructor("IntTensor", plait.int32)
LongTensor = _constructor("LongTensor", plait.int64)
