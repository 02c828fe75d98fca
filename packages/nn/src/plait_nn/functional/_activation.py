"""Activations: pointwise functions and the softmax family."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import plait_core as pc
from plait_abi import ArgumentError, OutOfRangeError, operator
from plait_abi.arguments import passes_on
from plait_abi.binding import unbound
from plait_abi.frames import warn
from plait_core import Tensor
from plait_nn import _operators as operators
from plait_nn.functional._autocast import cast_for_products

sigmoid = pc.sigmoid
tanh = pc.tanh
softplus = operators.softplus
gelu = operators.gelu
logsigmoid = operators.log_sigmoid
softsign = operators.softsign
tanhshrink = operators.tanhshrink


@functools.cache
def _in_place(name: str) -> Callable[..., Tensor]:
    result: Callable[..., Tensor] = operator(f"{name}_")
    return result


def _run(function: Callable[..., Tensor], inplace: bool, input: Tensor, *args: float) -> Tensor:
    """Call an operator, or its in-place form."""
    return (_in_place(function.__name__) if inplace else function)(input, *args)


@passes_on
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute ``max(x, 0)``; with ``inplace`` in the input's memory.

    Args:
        input: A tensor of any shape.
        inplace: Whether the result is written to the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.functional.relu(pc.tensor([-1.0, 2.0])).tolist()
        [0.0, 2.0]
    """
    return pc.relu_(input) if inplace else pc.relu(input)


@unbound
@passes_on
def relu_(input: Tensor) -> Tensor:
    """Compute ``max(x, 0)`` in the input's memory.

    Args:
        input: A tensor of any shape.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.relu_(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([0., 0., 2.])
    """
    return pc.relu_(input)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Compute ``x`` where positive, else ``negative_slope * x``.

    Args:
        input: A tensor of any shape.
        negative_slope: The factor of negative elements.
        inplace: Whether the result is written to the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.functional.leaky_relu(pc.tensor([-2.0, 2.0]), 0.5).tolist()
        [-1.0, 2.0]
    """
    return _run(operators.leaky_relu, inplace, input, negative_slope)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Compute ``x`` where positive, else ``alpha * (exp(x) - 1)`` (Clevert et al. 2015).

    Args:
        input: A tensor of any shape.
        alpha: The factor of the exponential of negative elements.
        inplace: Whether the result is written to the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.elu(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.6321,  0.0000,  2.0000])
    """
    return _run(operators.elu, inplace, input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute ``scale * elu(x, alpha)`` with the self-normalising constants (Klambauer 2017).

    Args:
        input: A tensor of any shape.
        inplace: Whether the result is written to the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.selu(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-1.1113,  0.0000,  2.1014])
    """
    return _run(pc.selu, inplace, input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Compute ``max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))`` (Barron 2017).

    Args:
        input: A tensor of any shape.
        alpha: The factor of the exponential of negative elements.
        inplace: Whether the result is written to the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.celu(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.6321,  0.0000,  2.0000])
    """
    return _run(pc.celu, inplace, input, alpha)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute ``x * sigmoid(x)`` (Hendrycks and Gimpel 2016).

    Args:
        input: A tensor of any shape.
        inplace: Whether the result is written to the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.silu(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.2689,  0.0000,  1.7616])
    """
    return _run(operators.silu, inplace, input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute ``x * tanh(softplus(x))`` (Misra 2019).

    Args:
        input: A tensor of any shape.
        inplace: Whether the result is written to the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.mish(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.3034,  0.0000,  1.9440])
    """
    return _run(operators.mish, inplace, input)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """Clip to ``[min_val, max_val]``; for integers the bounds are truncated. A bound that is nan
    makes all elements nan.

    Args:
        input: A tensor of any shape.
        min_val: The smallest result.
        max_val: The largest result.
        inplace: Whether the result is written to the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.hardtanh(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-1.,  0.,  1.])
    """
    if min_val > max_val:
        raise ArgumentError(
            f"hardtanh: `min_val` must not exceed `max_val`; got {min_val} and {max_val}"
        )
    if not (input.is_floating_point() or input.is_complex() or input.dtype == pc.bool):
        run = pc.clamp_ if inplace else pc.clamp
        return run(input, int(min_val), int(max_val))
    if math.isnan(min_val) or math.isnan(max_val):
        return (pc.clamp_ if inplace else pc.clamp)(input, min_val, max_val)  # all are nan
    return _run(operators.hardtanh, inplace, input, min_val, max_val)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Clip to ``[0, 6]``.

    Args:
        input: A tensor of any shape.
        inplace: Whether the result is written to the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.relu6(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([0., 0., 2.])
    """
    return _run(operators.relu6, inplace, input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute ``x * relu6(x + 3) / 6`` (Howard et al. 2019).

    Args:
        input: A tensor of any shape.
        inplace: Whether the result is written to the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.hardswish(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.3333,  0.0000,  1.6667])
    """
    return _run(operators.hardswish, inplace, input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute ``relu6(x + 3) / 6``.

    Args:
        input: A tensor of any shape.
        inplace: Whether the result is written to the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.hardsigmoid(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([0.3333, 0.5000, 0.8333])
    """
    return _run(operators.hardsigmoid, inplace, input)


@unbound
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Compute ``x`` where positive, else ``weight * x``, one weight or one a channel (dim 1).

    Args:
        input: Shape (N, C, ...).
        weight: The slopes of negative elements: shape (C) or (1).

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.prelu(pc.tensor([-1.0, 0.0, 2.0]), pc.tensor([0.25]))
        tensor([-0.2500,  0.0000,  2.0000])
    """
    if weight.numel() != 1:
        channels = input.shape[1] if input.ndim > 1 else 1
        if weight.ndim != 1 or weight.shape[0] != channels:
            raise ArgumentError(
                f"prelu: `weight` must have one element, or one for each channel, {channels}, for "
                f"`input` of shape {tuple(input.shape)}; got shape {tuple(weight.shape)}"
            )
    else:
        weight = weight.reshape(())
    return operators.prelu(*cast_for_products(input, weight))


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Halve along ``dim`` into ``a, b`` and compute ``a * sigmoid(b)`` (Dauphin et al. 2016).

    Args:
        input: A tensor.
        dim: The dimension along which it is computed.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.glu(pc.tensor([1.0, 2.0, 0.0, 0.0]))
        tensor([0.5000, 1.0000])
    """
    if not input.ndim:
        raise pc.ShapeError("glu: `input` must have a dimension to halve; got shape ()")
    if not -input.ndim <= dim < input.ndim:
        raise OutOfRangeError(
            f"glu: `dim` must be in [{-input.ndim}, {input.ndim - 1}] for shape "
            f"{tuple(input.shape)}; got {dim}. Dimension out of range"
        )
    size = input.shape[dim]
    if size % 2:
        raise ArgumentError(
            f"glu: `dim` must have an even size; got {size} at dim {dim} of {tuple(input.shape)}"
        )
    return operators.glu(input, dim)


def _implicit_dim(function: str, ndim: int) -> int:
    dim = 0 if ndim in (0, 1, 3) else 1
    warn(
        f"Implicit dimension choice for {function} has been deprecated: without `dim` it takes "
        f"dimension {dim} of an `input` with {ndim} dimensions; pass `dim`"
    )
    return dim


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    r"""Compute :math:`\exp(x_i) / \sum_j \exp(x_j)` along ``dim``.

    Args:
        input: Any floating-point tensor.
        dim: The dimension that sums to 1. None means 0 for 0, 1 and 3 dimensions and 1 otherwise,
            as in early PyTorch; new programs should pass the dimension.
        _stacklevel: Unused; programs written for PyTorch may pass it.
        dtype: Cast the input to this first.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.functional.softmax(pc.zeros(2, 4), dim=1).tolist()
        [[0.25, 0.25, 0.25, 0.25], [0.25, 0.25, 0.25, 0.25]]
    """
    if dim is None:
        dim = _implicit_dim("softmax", input.ndim)
    return pc.softmax(input, dim) if dtype is None else pc.softmax(input, dim, dtype=dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    r"""Compute :math:`x_i - \log \sum_j \exp(x_j)` along ``dim``; None is as in `softmax`.

    Args:
        input: A tensor.
        dim: The dimension along which it is computed.
        dtype: The dtype to which the input is cast first; or None.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> bool((nn.functional.log_softmax(pc.zeros(4), 0) + pc.log(pc.tensor(4.0)) == 0).all())
        True
    """
    if dim is None:
        dim = _implicit_dim("log_softmax", input.ndim)
    return pc.log_softmax(input, dim) if dtype is None else pc.log_softmax(input, dim, dtype=dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """Compute ``softmax(-x)``; a dim of None is as in `softmax`.

    Args:
        input: A tensor.
        dim: The dimension along which it is computed.
        dtype: The dtype to which the input is cast first; or None.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.softmin(pc.tensor([0.0, 1.0]), dim=0)
        tensor([0.7311, 0.2689])
    """
    if dtype is not None and not (input.is_floating_point() or input.is_complex()):
        input = input.to(dtype)  # the negative of an unsigned integer wraps around
    if dim is None:
        dim = _implicit_dim("softmin", input.ndim)
    return softmax(-input, dim, dtype=dtype)


@unbound
@passes_on
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Compute ``x`` where ``|x| > lambd``, else 0.

    Args:
        input: A tensor of any shape.
        lambd: The threshold; not negative.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.hardshrink(pc.tensor([-1.0, 0.25, 2.0]))
        tensor([-1.,  0.,  2.])
    """
    return pc.hardshrink(input, lambd)


@unbound
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Move ``x`` towards 0 by ``lambd``, at most to 0.

    Args:
        input: A tensor of any shape.
        lambd: The threshold; not negative.

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

    Args:
        input: A tensor of any shape.
        threshold: Elements that are not larger are replaced.
        value: Their new value.
        inplace: Whether the result is written to the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.threshold(pc.tensor([-1.0, 0.5, 2.0]), 1.0, 20.0)
        tensor([20., 20.,  2.])
    """
    return _run(pc.threshold, inplace, input, threshold, value)


@unbound
def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """Compute `threshold` in the input's memory.

    Args:
        input: A tensor of any shape.
        threshold: Elements that are not larger are replaced.
        value: Their new value.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.threshold_(pc.tensor([-1.0, 2.0]), 0.0, 0.5)
        tensor([0.5000, 2.0000])
    """
    return _run(pc.threshold, True, input, threshold, value)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Compute ``x`` where positive, else ``a * x`` (Xu et al. 2015).

    In training every element draws its ``a`` from [lower, upper); else it is their mean.

    Args:
        input: A tensor of any shape.
        lower: The smallest slope.
        upper: The largest slope.
        training: Whether slopes are drawn; else each is the mean of both.
        inplace: Whether the result is written to the input's memory.

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

    Args:
        input: A tensor of any shape.
        lower: The smallest slope.
        upper: The largest slope.
        training: Whether slopes are drawn; else each is the mean of both.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.rrelu_(pc.tensor([-1.0, 2.0]), 0.25, 0.75)
        tensor([-0.5000,  2.0000])
    """
    return rrelu(input, lower, upper, training, inplace=True)


@unbound
def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Compute `elu` in the input's memory.

    Args:
        input: A tensor of any shape.
        alpha: The factor of the exponential of negative elements.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.elu_(pc.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """
    return elu(input, alpha, inplace=True)


@unbound
def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Compute `celu` in the input's memory.

    Args:
        input: A tensor of any shape.
        alpha: The factor of the exponential of negative elements.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.celu_(pc.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """
    return celu(input, alpha, inplace=True)


@unbound
def selu_(input: Tensor) -> Tensor:
    """Compute `selu` in the input's memory.

    Args:
        input: A tensor of any shape.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.selu_(pc.tensor([-1.0, 2.0]))
        tensor([-1.1113,  2.1014])
    """
    return selu(input, inplace=True)


@unbound
def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """Compute `leaky_relu` in the input's memory.

    Args:
        input: A tensor of any shape.
        negative_slope: The factor of negative elements.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.leaky_relu_(pc.tensor([-1.0, 2.0]), 0.5)
        tensor([-0.5000,  2.0000])
    """
    return leaky_relu(input, negative_slope, inplace=True)


@unbound
def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """Clip to ``[min_val, max_val]`` in the input's memory.

    Args:
        input: A tensor of any shape.
        min_val: The smallest result.
        max_val: The largest result.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.hardtanh_(pc.tensor([-3.0, 0.5]))
        tensor([-1.0000,  0.5000])
    """
    return hardtanh(input, min_val, max_val, inplace=True)


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
    noise = -pc.empty_like(logits.detach(), memory_format=pc.contiguous_format).exponential_().log()
    soft = pc.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = soft.detach().argmax(dim, keepdim=True)
    one = pc.zeros_like(soft.detach()).scatter_(dim, index, 1.0)
    return one - soft.detach() + soft
