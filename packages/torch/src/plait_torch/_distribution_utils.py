"""Additions to plait's `distributions.utils`, for third-party distributions."""

from __future__ import annotations

from typing import Any

import plait

__all__ = ["_clipped_sigmoid", "_standard_normal", "_sum_rightmost"]


def _clipped_sigmoid(x: Any) -> Any:
    """Return the sigmoid, between the least normal number and the largest one below 1.

    Example:
        >>> import plait
        >>> from plait_torch._distribution_utils import _clipped_sigmoid
        >>> bool(_clipped_sigmoid(plait.tensor(100.0)) < 1)
        True
    """
    info = plait.finfo(x.dtype)
    return x.sigmoid().clamp(min=info.tiny, max=1.0 - info.eps)


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Any:
    """Draw from the standard normal distribution."""
    return plait.randn(tuple(shape), dtype=dtype, device=device)


def _sum_rightmost(value: Any, dim: int) -> Any:
    """Sum over the last dimensions.

    Example:
        >>> import plait
        >>> from plait_torch._distribution_utils import _sum_rightmost
        >>> _sum_rightmost(plait.ones(2, 3, 4), 2)
        tensor([12., 12.])
    """
    return value if dim == 0 else value.sum(tuple(range(-dim, 0)))
