"""`functional_call` under the name that older programs import."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plait_core import Tensor
from plait_nn._functional_call import functional_call as _functional_call
from plait_nn._module import Module

__all__ = ["functional_call"]


def functional_call(
    module: Module,
    parameters_and_buffers: Mapping[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors instead of its own: `plait.nn.functional_call`.

    Args:
        module: The module.
        parameters_and_buffers: The tensors to use, by dotted name.
        args: The arguments of the call.
        kwargs: Its keyword arguments; or None.
        tie_weights: Whether a tensor under one name stands for it under all its names.
        strict: Whether all names must be given, and no others.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> given = {"weight": pc.tensor([[2.0]]), "bias": pc.tensor([1.0])}
        >>> nn.utils.stateless.functional_call(nn.Linear(1, 1), given, pc.tensor([3.0]))
        tensor([7.])
    """
    return _functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )
