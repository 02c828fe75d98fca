"""Functions of several operators in a region of autocast: they compute in its dtype."""

from __future__ import annotations

from typing import Any

from plait_core import _core

__all__ = ["cast_for_products"]


def cast_for_products(*tensors: Any) -> tuple[Any, ...]:
    """Return the tensors in the dtype of this thread's region, as one product's operator casts
    them; as they are where there is no region of the first one's device.
    """
    first = tensors[0]
    dtype = None if first is None else _core.autocast_dtype(first.device)
    if dtype is None:
        return tensors
    return tuple(
        x.to(dtype) if x is not None and x.is_floating_point() and x.dtype.itemsize <= 4 else x
        for x in tensors
    )
