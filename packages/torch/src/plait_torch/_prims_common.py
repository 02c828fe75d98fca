"""`torch._prims_common`: questions about tensors, and a warning of PyTorch's kernels.

torchvision, transformers and torchao use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plait

__all__ = [
    "alert_not_deterministic",
    "is_contiguous_or_false",
    "make_contiguous_strides_for",
    "suggest_memory_format",
]


def make_contiguous_strides_for(shape: Sequence[int], row_major: bool = True) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor, or of one whose matrices are stored by columns.

    Example:
        >>> from plait_torch._prims_common import make_contiguous_strides_for
        >>> make_contiguous_strides_for((2, 3, 4)), make_contiguous_strides_for((2, 3, 4), False)
        ((12, 4, 1), (12, 1, 3))
    """
    result: list[int] = []
    step = 1
    for size in reversed(shape):
        result.insert(0, step)
        step *= max(size, 1)
    if not row_major and len(shape) > 1:
        result[-2:] = [1, max(shape[-2], 1)]
    return tuple(result)


def suggest_memory_format(x: Any) -> Any:
    """Return the memory format in which a tensor is stored: by channels or contiguous.

    Example:
        >>> import plait
        >>> from plait_torch._prims_common import suggest_memory_format
        >>> suggest_memory_format(plait.ones(1, 2, 3, 4).to(memory_format=plait.channels_last)).name
        'channels_last'
    """
    for ndim, memory_format in ((4, plait.channels_last), (5, plait.channels_last_3d)):
        by_channels = x.ndim == ndim and x.is_contiguous(memory_format=memory_format)
        if by_channels and not x.is_contiguous():
            return memory_format
    return plait.contiguous_format


def alert_not_deterministic(caller: str) -> None:
    """Do nothing: all algorithms of plait are deterministic."""


def is_contiguous_or_false(a: Any) -> bool:
    """Return whether a tensor is contiguous.

    Example:
        >>> import plait
        >>> from plait_torch._prims_common import is_contiguous_or_false
        >>> is_contiguous_or_false(plait.ones(2, 3).t())
        False
    """
    contiguous: bool = a.is_contiguous()
    return contiguous
