"""The words of linear algebra. Like those of `plait_ops.words` they have C++ versions of the same
name.
"""

from __future__ import annotations

from plait_ops.value_types import Tensor
from plait_ops.words import check, require, word

__all__ = ["require_matrix", "require_square"]


@word(on_call=True)
def require_matrix(argument: str, tensor: Tensor) -> None:
    """Fail unless it is a matrix, or a batch of them, of floating-point or complex numbers."""
    check(
        tensor.ndim >= 2,
        f"`{argument}` must have at least 2 dimensions, of which the last two are a matrix; got "
        f"shape {tensor.shape}",
    )
    require(argument, tensor.dtype, "inexact")


@word(on_call=True)
def require_square(argument: str, tensor: Tensor) -> None:
    """Fail unless it is a square matrix, or a batch of them."""
    require_matrix(argument, tensor)
    check(
        tensor.shape[-1] == tensor.shape[-2],
        f"`{argument}` must be square in its last two dimensions; got shape {tensor.shape}",
    )
