"""Random values whose scale comes from the layer's shape."""

from __future__ import annotations

import math
from typing import Any

from plait_abi.frames import warn
from plait_core import Tensor
from plait_nn.init._fans import calculate_gain, correct_fan, fan_in_and_fan_out
from plait_nn.init._random import normal_, uniform_


def is_empty(tensor: Tensor) -> bool:
    """Return whether there is nothing to initialize, with a warning."""
    empty = 0 in tensor.shape
    if empty:
        warn(f"Initializing zero-element tensors is a no-op: got shape {tuple(tensor.shape)}")
    return empty


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    r"""Draw from :math:`U(-a, a)`, :math:`a = g \sqrt{6 / (f_{in} + f_{out})}` (Glorot 2010).

    Args:
        tensor: The tensor to write, which is returned.
        gain: Factor of the standard deviation; see `calculate_gain`.
        generator: The generator of the random numbers; None is the default one.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> w = nn.init.xavier_uniform_(pc.empty(2, 4))
        >>> bool((w.abs() <= 1).all())
        True
    """
    bound = gain * math.sqrt(6.0 / sum(fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    r"""Draw from :math:`N(0, s^2)`, :math:`s = g \sqrt{2 / (f_{in} + f_{out})}` (Glorot 2010).

    Args:
        tensor: The tensor to write, which is returned.
        gain: Factor of the standard deviation; see `calculate_gain`.
        generator: The generator of the random numbers; None is the default one.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> bool(abs(nn.init.xavier_normal_(pc.empty(100, 100)).std() - 0.1) < 0.01)
        True
    """
    std = gain * math.sqrt(2.0 / sum(fan_in_and_fan_out(tensor)))
    return normal_(tensor, 0.0, std, generator)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    r"""Draw from :math:`U(-b, b)`, :math:`b = g \sqrt{3 / f}` (He et al. 2015).

    Args:
        tensor: A weight ``(out, in, *kernel)``.
        a: The slope of the leaky_relu that follows.
        mode: "fan_in" keeps the size of activations, "fan_out" that of gradients.
        nonlinearity: The nonlinearity that follows, for `calculate_gain`.
        generator: The generator of the random numbers.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> bool(nn.init.kaiming_uniform_(pc.empty(4, 6)).abs().max() < 1.01)
        True
    """
    if is_empty(tensor):
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(correct_fan(tensor, mode))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    r"""Draw from :math:`N(0, g^2 / f)` (He et al. 2015); arguments as in `kaiming_uniform_`.

    Args:
        tensor: The tensor to write, which is returned.
        a: Slope of negative elements, for ``"leaky_relu"``.
        mode: "fan_in" keeps the variance of the forward pass, "fan_out" that of the backward pass.
        nonlinearity: The activation that follows, such as "relu" or "leaky_relu".
        generator: The generator of the random numbers; None is the default one.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> bool(abs(nn.init.kaiming_normal_(pc.empty(100, 50)).std() - 0.2) < 0.02)
        True
    """
    if is_empty(tensor):
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(correct_fan(tensor, mode))
    return normal_(tensor, 0.0, std, generator)
