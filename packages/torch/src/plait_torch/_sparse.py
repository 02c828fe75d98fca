"""Additions to plait's `sparse`: older constructors of sparse tensors, and checks."""

from __future__ import annotations

from typing import Any

import plait

__all__ = [
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "check_sparse_tensor_invariants",
]


class check_sparse_tensor_invariants:  # noqa: N801 - PyTorch's name
    """A context manager and decorator without effect: arguments of sparse tensors are checked in
    any case.

    Example:
        >>> from plait_torch._sparse import check_sparse_tensor_invariants
        >>> with check_sparse_tensor_invariants():
        ...     check_sparse_tensor_invariants.is_enabled()
        True
    """

    def __init__(self, enable: bool = True) -> None:
        pass

    @staticmethod
    def is_enabled() -> bool:
        """Return whether arguments are checked: True."""
        return True

    @staticmethod
    def enable() -> None:
        """Do nothing: arguments are checked."""

    @staticmethod
    def disable() -> None:
        """Do nothing: arguments are checked."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass

    def __call__(self, function: Any) -> Any:
        return function


def _constructor(name: str, dtype: Any) -> Any:
    def construct(indices: Any, values: Any, size: Any = None) -> Any:
        return plait.sparse_coo_tensor(indices, values.to(dtype), size)

    construct.__name__ = construct.__qualname__ = name
    construct.__doc__ = f"Return a sparse tensor of {dtype.name}: ``torch.sparse_coo_tensor``."
    return construct


DoubleTensor = _constructor("DoubleTensor", plait.float64)
FloatTensor = _constructor("FloatTensor", plait.float32)
HalfTensor = _constructor("HalfTensor", plait.float16)
IntTensor = _constructor("IntTensor", plait.int32)
LongTensor = _constructor("LongTensor", plait.int64)
