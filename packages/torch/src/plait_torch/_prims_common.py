"""`torch._prims_common`: questions about tensors, and a warning of PyTorch's kernels.

torchvision, transformers and torchao use it.
"""

from __future__ import annotations

from typing import Any

__all__ = ["alert_not_deterministic", "is_contiguous_or_false"]


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
