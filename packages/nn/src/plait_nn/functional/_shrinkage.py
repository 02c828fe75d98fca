"""Thresholds, random slopes, and the forms of activations that end in an underscore."""

from __future__ import annotations

import plait_core as pc
from plait_abi import ArgumentError
from plait_abi.arguments import passes_on
from plait_abi.binding import unbound
from plait_core import Tensor
from plait_nn import _operators as operators
from plait_nn.functional import _activation as activation

__all__ = [
    "celu_",
    "elu_",
    "gumbel_softmax",
    "hardshrink",
    "hardtanh_",
    "leaky_relu_",
    "rrelu",
    "rrelu_",
    "selu_",
    "softshrink",
    "threshold",
    "threshold_",
]


@unbound
@passes_on
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Compute ``x`` where ``|x| > lambd``, else 0.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.hardshrink(pc.tensor([-1.0, 0.25, 2.0]))
        tensor([-1.,  0.,  2.])
    """
    return pc.hardshrink(input, lambd)


@unbound
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Move ``x`` towards 0 by ``lambd``, at most to 0.

    Raises:
        ValueError: ``lambd`` is negative.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.softshrink(pc.tensor([-1.0, 0.25, 2.0]))
        tensor([-0.5000,  0.0000,  1.5000])
    """
    if lambd < 0:
        raise ArgumentError(f"softshrink: `lambd` must not be negative; got {lambd}")
    return operators.softshrink(input, lambd)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Compute ``x`` where ``x > threshold``, else ``value``.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.threshold(pc.tensor([-1.0, 0.5, 2.0]), 1.0, 20.0)
        tensor([20., 20.,  2.])
    """
    return activation._run(pc.threshold, inplace, input, threshold, value)


@unbound
def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """Compute `threshold` in the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.threshold_(pc.tensor([-1.0, 2.0]), 0.0, 0.5)
        tensor([0.5000, 2.0000])
    """
    return activation._run(pc.threshold, True, input, threshold, value)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Compute ``x`` where positive, else ``a * x`` (Xu et al. 2015).

    In training every element draws its ``a`` from [lower, upper); else it is their mean.

    Raises:
        ValueError: ``lower`` is larger than ``upper``.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.rrelu(pc.tensor([-1.0, 2.0]), 0.25, 0.75)
        tensor([-0.5000,  2.0000])
    """
    if not lower <= upper:
        raise ArgumentError(f"rrelu: `lower` must not exceed `upper`; got {lower} and {upper}")
    result = pc.rrelu(input.clone() if inplace else input, lower, upper, training)
    return input.copy_(result) if inplace else result


@unbound
def rrelu_(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False
) -> Tensor:
    """Compute `rrelu` in the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.rrelu_(pc.tensor([-1.0, 2.0]), 0.25, 0.75)
        tensor([-0.5000,  2.0000])
    """
    return rrelu(input, lower, upper, training, inplace=True)


@unbound
def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Compute `elu` in the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.elu_(pc.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """
    return activation.elu(input, alpha, inplace=True)


@unbound
def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Compute `celu` in the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.celu_(pc.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """
    return activation.celu(input, alpha, inplace=True)


@unbound
def selu_(input: Tensor) -> Tensor:
    """Compute `selu` in the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.selu_(pc.tensor([-1.0, 2.0]))
        tensor([-1.1113,  2.1014])
    """
    return activation.selu(input, inplace=True)


@unbound
def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """Compute `leaky_relu` in the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.leaky_relu_(pc.tensor([-1.0, 2.0]), 0.5)
        tensor([-0.5000,  2.0000])
    """
    return activation.leaky_relu(input, negative_slope, inplace=True)


@unbound
def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """Clip to ``[min_val, max_val]`` in the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.hardtanh_(pc.tensor([-3.0, 0.5]))
        tensor([-1.0000,  0.5000])
    """
    return activation.hardtanh(input, min_val, max_val, inplace=True)


def gumbel_softmax(
    logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    r"""Draw almost one-hot vectors: :math:`\mathrm{softmax}((x + g) / \tau)`, g Gumbel noise.

    Args:
        logits: Unnormalised log-probabilities, any shape.
        tau: The temperature; towards 0 the vectors become one-hot.
        hard: Return one-hot vectors with the gradient of the soft ones.
        eps: Unused; programs written for PyTorch may pass it.
        dim: The dimension that sums to 1.

    References:
        Jang et al. 2017, Maddison et al. 2017.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.gumbel_softmax(pc.zeros(2, 3), hard=True).sum(1)
        tensor([1., 1.])
    """
    noise = -pc.empty_like(logits.detach()).exponential_().log()
    soft = pc.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = soft.detach().argmax(dim, keepdim=True)
    one = pc.zeros_like(soft.detach()).scatter_(dim, index, 1.0)
    return one - soft.detach() + soft
