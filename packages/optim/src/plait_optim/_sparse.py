"""Sparse gradients: those of plait, which have elements only at some indices of a parameter.

They are recognised by their class, and used by their methods; this package does not import it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any


def _looks_sparse(cls: type) -> bool:
    return hasattr(cls, "_coalesced_") and hasattr(cls, "__plait_parts__")


_is_sparse_class: Callable[[type], bool] = functools.lru_cache(maxsize=256)(_looks_sparse)


def is_sparse(array: Any) -> bool:
    """Return whether an array is a sparse tensor of plait."""
    return _is_sparse_class(type(array))


def any_sparse(classes: Iterable[type]) -> bool:
    """Return whether one of the classes is that of plait's sparse tensors."""
    return any(map(_is_sparse_class, classes))


def at(array: Any, grad: Any) -> Any:
    """Return the elements of a dense array where a coalesced gradient has some, in its order."""
    return array.sparse_mask(grad)._values()


def like(grad: Any, values: Any) -> Any:
    """Return a sparse tensor with the indices of a gradient and other values."""
    return grad._with(values)
