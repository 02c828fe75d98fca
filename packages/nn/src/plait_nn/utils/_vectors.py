"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

import plait_core as pc
from plait_core import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return all elements of all parameters, one after the other, as a vector.

    Args:
        parameters: The parameters.

    Example:
        >>> import plait_nn as nn
        >>> tuple(nn.utils.parameters_to_vector(nn.Linear(2, 3).parameters()).shape)
        (9,)
    """
    return pc.cat([parameter.reshape((-1,)) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Write the elements of a vector into the parameters, in their order, without recording.

    Args:
        parameters: The parameters.

    Raises:
        TypeError: ``vec`` is not a tensor.
        ValueError: Its number of elements is not that of the parameters.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.Linear(1, 1)
        >>> nn.utils.vector_to_parameters(pc.tensor([2.0, 3.0]), layer.parameters())
        >>> layer.weight.item(), layer.bias.item()
        (2.0, 3.0)
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"vector_to_parameters: `vec` must be a Tensor; got {type(vec).__name__}")
    targets = list(parameters)
    count = sum(parameter.numel() for parameter in targets)
    if vec.ndim != 1 or vec.numel() != count:
        raise ValueError(
            f"vector_to_parameters: `vec` must have shape ({count},); got {tuple(vec.shape)}"
        )
    values, start = vec.detach(), 0
    for parameter in targets:
        piece = values.narrow(0, start, parameter.numel())
        parameter.detach().copy_(piece.reshape(tuple(parameter.shape)))
        start += parameter.numel()
