"""Dropout of elements and of whole channels."""

from __future__ import annotations

import plait_core as pc
from plait_abi import ArgumentError
from plait_core import Tensor

__all__ = ["dropout", "dropout2d"]


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero each element with probability ``p`` and divide the others by ``1 - p``.

    With ``training=False`` the input is returned as it is (Srivastava et al. 2014).

    Raises:
        ValueError: ``p`` is not in [0, 1].

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> out = nn.functional.dropout(pc.ones(1000), 0.5)
        >>> sorted(set(out.tolist()))
        [0.0, 2.0]
    """
    _check(p, "dropout")
    result = pc.dropout(input, p, training)
    return input.copy_(result) if inplace and training else result


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zero whole channels with probability ``p`` and divide the others by ``1 - p``.

    Args:
        input: Shape (N, C, H, W); also (N, C, L) and (N, C), as PyTorch reads them with a warning.
        p: In [0, 1].
        training: False returns the input as it is.
        inplace: Write the result over the input.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> out = nn.functional.dropout2d(pc.ones(1, 100, 2, 2), 0.5)
        >>> {tuple(channel.flatten().tolist()) for channel in out[0]} == {(0.0,) * 4, (2.0,) * 4}
        True
    """
    _check(p, "dropout2d")
    if input.ndim not in (2, 3, 4):
        raise ArgumentError(
            "dropout2d: `input` must be (N, C, H, W), (N, C, L) or (N, C); "
            f"got {tuple(input.shape)}"
        )
    if not training or p == 0:
        return input
    shape = (*tuple(input.shape)[:2], *(1,) * (input.ndim - 2))
    result = input * pc.dropout(pc.ones(shape, dtype=input.dtype, device=input.device), p, True)
    return input.copy_(result) if inplace else result


def _check(p: float, name: str) -> None:
    if not 0 <= p <= 1:
        raise ArgumentError(f"{name}: `p` must be in [0, 1]; got {p}")
