"""Fan-in and fan-out of weights, and gains of nonlinearities."""

from __future__ import annotations

import math

from plait_core import Tensor


def fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """Return the numbers of inputs of one output and of outputs of one input.

    The weight is ``(out, in, *kernel)``; each fan counts the elements of the kernel.

    Args:
        tensor: The tensor to write, which is returned.

    Raises:
        ValueError: The tensor has fewer than 2 dimensions.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.init._calculate_fan_in_and_fan_out(pc.zeros(8, 3, 5, 5))
        (75, 200)
    """
    if tensor.ndim < 2:
        raise ValueError(
            f"init: fan in and fan out need at least 2 dimensions; got shape {tuple(tensor.shape)}"
        )
    kernel = math.prod(tensor.shape[2:])
    return tensor.shape[1] * kernel, tensor.shape[0] * kernel


def correct_fan(tensor: Tensor, mode: str) -> int:
    """Return the fan that ``mode`` names.

    Args:
        tensor: The tensor to write, which is returned.
        mode: "fan_in" keeps the variance of the forward pass, "fan_out" that of the backward pass.

    Raises:
        ValueError: ``mode`` is unknown, or the tensor has fewer than 2 dimensions.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.init._calculate_correct_fan(pc.zeros(8, 3, 5, 5), "fan_out")
        200
    """
    modes = ("fan_in", "fan_out")
    mode = mode.lower()
    if mode not in modes:
        raise ValueError(f"init: `mode` must be fan_in or fan_out; got {mode!r}")
    return fan_in_and_fan_out(tensor)[modes.index(mode)]


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    r"""Return the factor by which a nonlinearity shrinks a signal's standard deviation.

    1 for linear, conv* and sigmoid, 5/3 for tanh, :math:`\sqrt 2` for relu,
    :math:`\sqrt{2 / (1 + s^2)}` for leaky_relu with slope ``param`` (0.01), 3/4 for selu.

    Args:
        nonlinearity: The activation, such as "relu" or "leaky_relu".
        param: Slope of negative elements for leaky_relu; None is 0.01.

    Example:
        >>> import plait_nn as nn
        >>> round(nn.init.calculate_gain("relu"), 4)
        1.4142
    """
    if nonlinearity in ("linear", "sigmoid") or nonlinearity.startswith("conv"):
        return 1.0
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"init: negative_slope {param!r} is not a number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"init: unsupported nonlinearity {nonlinearity!r}")
