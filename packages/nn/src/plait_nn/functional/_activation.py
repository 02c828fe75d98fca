"""Activations: pointwise functions and the softmax family."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import plait_core as pc
from plait_abi import ArgumentError, operator
from plait_abi.arguments import passes_on
from plait_abi.binding import unbound
from plait_core import Tensor
from plait_nn import _operators as operators

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "log_softmax",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "selu",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softplus",
    "softsign",
    "tanh",
    "tanhshrink",
]

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

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.relu_(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([0., 0., 2.])
    """
    return pc.relu_(input)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Compute ``x`` where positive, else ``negative_slope * x``.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.functional.leaky_relu(pc.tensor([-2.0, 2.0]), 0.5).tolist()
        [-1.0, 2.0]
    """
    return _run(operators.leaky_relu, inplace, input, negative_slope)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Compute ``x`` where positive, else ``alpha * (exp(x) - 1)`` (Clevert et al. 2015).

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.elu(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.6321,  0.0000,  2.0000])
    """
    return _run(operators.elu, inplace, input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute ``scale * elu(x, alpha)`` with the self-normalising constants (Klambauer 2017).

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.selu(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-1.1113,  0.0000,  2.1014])
    """
    return _run(pc.selu, inplace, input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Compute ``max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))`` (Barron 2017).

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.celu(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.6321,  0.0000,  2.0000])
    """
    return _run(pc.celu, inplace, input, alpha)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute ``x * sigmoid(x)`` (Hendrycks and Gimpel 2016).

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.silu(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.2689,  0.0000,  1.7616])
    """
    return _run(operators.silu, inplace, input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute ``x * tanh(softplus(x))`` (Misra 2019).

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

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.relu6(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([0., 0., 2.])
    """
    return _run(operators.relu6, inplace, input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute ``x * relu6(x + 3) / 6`` (Howard et al. 2019).

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.hardswish(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.3333,  0.0000,  1.6667])
    """
    return _run(operators.hardswish, inplace, input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute ``relu6(x + 3) / 6``.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.hardsigmoid(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([0.3333, 0.5000, 0.8333])
    """
    return _run(operators.hardsigmoid, inplace, input)


@unbound
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Compute ``x`` where positive, else ``weight * x``, one weight or one a channel (dim 1).

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.prelu(pc.tensor([-1.0, 0.0, 2.0]), pc.tensor([0.25]))
        tensor([-0.2500,  0.0000,  2.0000])
    """
    if weight.numel() != 1:
        channels = input.shape[1] if input.ndim > 1 else 1
        if weight.ndim != 1 or weight.shape[0] != channels:
            raise ArgumentError(
                f"prelu: `weight` must have 1 or {channels} elements for input "
                f"{tuple(input.shape)}; got shape {tuple(weight.shape)}"
            )
        weight = weight.reshape((1, channels) + (1,) * (input.ndim - 2))
    else:
        weight = weight.reshape(())
    return pc.where(input > 0, input, weight * input)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Halve along ``dim`` into ``a, b`` and compute ``a * sigmoid(b)`` (Dauphin et al. 2016).

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.glu(pc.tensor([1.0, 2.0, 0.0, 0.0]))
        tensor([0.5000, 1.0000])
    """
    if not input.ndim:
        raise pc.ShapeError("glu: `input` must have a dimension to halve; got shape ()")
    size = input.size(dim)
    if size % 2:
        raise ArgumentError(
            f"glu: `dim` must have an even size; got {size} at dim {dim} of {tuple(input.shape)}"
        )
    half = size // 2
    return input.narrow(dim, 0, half) * pc.sigmoid(input.narrow(dim, half, half))


def _implicit_dim(ndim: int) -> int:
    return 0 if ndim in (0, 1, 3) else 1


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
        dim = _implicit_dim(input.ndim)
    return pc.softmax(input, dim) if dtype is None else pc.softmax(input, dim, dtype=dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    r"""Compute :math:`x_i - \log \sum_j \exp(x_j)` along ``dim``; None is as in `softmax`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> bool((nn.functional.log_softmax(pc.zeros(4), 0) + pc.log(pc.tensor(4.0)) == 0).all())
        True
    """
    if dim is None:
        dim = _implicit_dim(input.ndim)
    return pc.log_softmax(input, dim) if dtype is None else pc.log_softmax(input, dim, dtype=dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """Compute ``softmax(-x)``; a dim of None is as in `softmax`.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.softmin(pc.tensor([0.0, 1.0]), dim=0)
        tensor([0.7311, 0.2689])
    """
    if dtype is not None and not (input.is_floating_point() or input.is_complex()):
        input = input.to(dtype)  # the negative of an unsigned integer wraps around
    return softmax(-input, dim, dtype=dtype)
