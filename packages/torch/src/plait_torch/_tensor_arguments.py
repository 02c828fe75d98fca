"""The check that an argument is a tensor, for functions that PyTorch has in C++."""

from __future__ import annotations

from typing import Any

import plait

__all__ = ["require_tensor"]


def require_tensor(function: str, argument: str, value: Any) -> None:
    """Raise TypeError unless a value is a tensor.

    Example:
        >>> import plait
        >>> from plait_torch._tensor_arguments import require_tensor
        >>> require_tensor("is_signed", "input", plait.ones(1))
    """
    if not isinstance(value, plait.Tensor):
        raise TypeError(
            f"{function}(): argument '{argument}' must be Tensor, not {type(value).__name__}"
        )
