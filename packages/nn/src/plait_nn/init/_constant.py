"""Fixed values."""

from __future__ import annotations

import plait_core as pc
from plait_core import Tensor


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with ``val``; return the tensor.

    Args:
        tensor: The tensor to write, which is returned.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.init.constant_(pc.empty(2), 0.5)
        tensor([0.5000, 0.5000])
    """
    tensor.detach().fill_(val)
    return tensor


def ones_(tensor: Tensor) -> Tensor:
    """Fill with 1; return the tensor.

    Args:
        tensor: The tensor to write, which is returned.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.init.ones_(pc.empty(2))
        tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with 0; return the tensor.

    Args:
        tensor: The tensor to write, which is returned.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.init.zeros_(pc.empty(2))
        tensor([0., 0.])
    """
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """Set a matrix to the identity, so that a linear layer returns as many of its inputs as
    possible.

    Args:
        tensor: The tensor to write, which is returned.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.init.eye_(pc.empty(2, 3)).tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    if tensor.ndim != 2:
        raise ValueError(f"eye_: `tensor` must have 2 dimensions; got {tuple(tensor.shape)}")
    tensor.detach().copy_(pc.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Set a convolution's weight ``(out, in, *kernel)`` so that it returns as many channels as
    possible.

    Args:
        tensor: The tensor to write, which is returned.
        groups: Number of groups of channels.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.init.dirac_(pc.empty(1, 1, 3, 3)).tolist()
        [[[[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]]]
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError(f"dirac_: `tensor` must have 3 to 5 dimensions; got {tuple(tensor.shape)}")
    if groups < 1 or tensor.shape[0] % groups:
        raise ValueError(
            f"dirac_: `groups` must divide dim 0 of {tuple(tensor.shape)}; got {groups}"
        )
    outputs = tensor.shape[0] // groups
    middle = tuple(size // 2 for size in tensor.shape[2:])
    values = tensor.detach()
    values.zero_()
    for group in range(groups):
        for channel in range(min(outputs, tensor.shape[1])):
            place = (group * outputs + channel, channel, *middle)
            values[place] = 1.0
    return tensor
