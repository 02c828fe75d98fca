"""`torch.nn.utils.stateless`: what PyTorch has beside `functional_call`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from plait_nn._functional_call import reparametrized

__all__ = ["_reparametrize_module"]


def _reparametrize_module(
    module: Any,
    parameters_and_buffers: Any,
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
) -> AbstractContextManager[None]:
    """Give a module other tensors in a block; ``stack_weights`` has no effect.

    Example:
        >>> import plait
        >>> from plait_torch._stateless import _reparametrize_module
        >>> layer = plait.nn.Linear(1, 1)
        >>> with _reparametrize_module(layer, {"bias": plait.tensor([3.0])}):
        ...     print(layer(plait.zeros(1)).item())
        3.0
    """
    return reparametrized(module, parameters_and_buffers, tie_weights=tie_weights, strict=strict)
