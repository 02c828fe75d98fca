"""Normalisation of activations and of vectors."""

from __future__ import annotations

from collections.abc import Sequence

import plait_core as pc
from plait_abi.arguments import passes_on
from plait_abi.binding import unbound
from plait_core import Tensor
from plait_nn import _operators as operators
from plait_nn._halves import HALVES, widened

__all__ = ["batch_norm", "batch_norm_activation", "cosine_similarity", "layer_norm", "normalize"]


def is_mixed(input: Tensor, *members: Tensor | None) -> bool:
    """Return whether the input has a half dtype and the layer's members are float32.

    Such layers compute in float32 and return the input's dtype, as in PyTorch.
    """
    if input.dtype not in HALVES:
        return False
    present = [each for each in members if each is not None]
    return bool(present) and all(each.dtype == pc.float32 for each in present)


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    r"""Compute :math:`(x - \mathrm{E}[x]) / \sqrt{\mathrm{Var}[x] + \epsilon} \cdot w + b`.

    Mean and variance are each channel's over the batch if ``training``, else the running ones
    (Ioffe and Szegedy 2015). In training the running ones, if given, are updated with ``momentum``.
    The operator `plait_core.batch_norm` has another order of arguments, as in PyTorch.

    Args:
        input: Shape (N, C) or (N, C, \*).
        running_mean: Shape (C), written in training; None: not kept.
        running_var: Shape (C), written in training; None: not kept.
        weight: Shape (C), or None.
        bias: Shape (C), or None.
        training: Whether to normalise by the batch.
        momentum: The weight of the batch in the running statistics.
        eps: Keeps the root away from 0.

    Raises:
        ShapeError: A shape does not fit, or there is only one value for each channel in training.
        ValueError: There are no running statistics, and it is not training.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x = pc.tensor([[1.0], [3.0]])
        >>> nn.functional.batch_norm(x, None, None, training=True, eps=0.0).tolist()
        [[-1.0], [1.0]]
    """
    members = (weight, bias, running_mean, running_var)
    if is_mixed(input, *members):
        wide = pc.batch_norm(input.float(), *members, training, momentum, eps)
        return wide.to(input.dtype)
    if (
        training and input.ndim > 1 and not input.numel()
    ):  # there are no values, so the derivatives are 0, not 0 / 0
        zeros = input.new_zeros(input.shape[1])
        return pc.batch_norm(input, weight, bias, zeros, zeros + 1, False, momentum, eps)
    return pc.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


def batch_norm_activation(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    *,
    activation: str = "relu",
    residual: Tensor | None = None,
    min_val: float = 0.0,
    max_val: float = 6.0,
    negative_slope: float = 0.01,
) -> Tensor:
    r"""Compute ``activation(batch_norm(input, ...) + residual)``, in training in one pass.

    The numbers are those of the functions one after the other. Memory is read and written once
    forward and once backward, and without ``residual`` only ``input`` is kept for the gradient.
    A `plait_nn.Sequential` does this by itself.

    Args:
        input: Shape (N, C) or (N, C, \*).
        running_mean: Shape (C), written in training; None: not kept.
        running_var: Shape (C), written in training; None: not kept.
        weight: Shape (C), or None.
        bias: Shape (C), or None.
        training: Whether to normalise by the batch.
        momentum: The weight of the batch in the running statistics.
        eps: Keeps the root away from 0.
        activation: "relu", "hardtanh", "leaky_relu", "silu" or "hardswish".
        residual: What is added before the activation, of the shape of ``input``; None: nothing.
        min_val: The lower bound of "hardtanh"; the defaults are those of `relu6`.
        max_val: Its upper bound.
        negative_slope: The slope of "leaky_relu".

    Raises:
        ShapeError: A shape does not fit, or there is only one value for each channel in training.
        ValueError: The activation is another one; or there are no running statistics, and it is not
            training.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> x = pc.tensor([[1.0], [3.0]])
        >>> F.batch_norm_activation(x, None, None, training=True, eps=0.0).tolist()
        [[0.0], [1.0]]
    """
    options = {
        "activation": activation,
        "min_val": min_val,
        "max_val": max_val,
        "negative_slope": negative_slope,
    }
    members = (weight, bias, running_mean, running_var)
    if is_mixed(input, *members):
        other = None if residual is None else residual.float()
        wide = operators.batch_norm_activation(
            input.float(), *members, training, momentum, eps, residual=other, **options
        )
        return wide.to(input.dtype)
    if training and input.ndim > 1 and not input.numel():  # as in `batch_norm`
        zeros = input.new_zeros(input.shape[1])
        members, training = (weight, bias, zeros, zeros + 1), False
    return operators.batch_norm_activation(
        input, *members, training, momentum, eps, residual=residual, **options
    )


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    r"""Compute :math:`(x - \mathrm{E}[x]) / \sqrt{\mathrm{Var}[x] + \epsilon} \cdot w + b`.

    Mean and (biased) variance are over the last ``len(normalized_shape)`` dimensions (Ba 2016).

    Args:
        input: Shape ``(*, *normalized_shape)``.
        normalized_shape: The dimensions to normalise over.
        weight: Shape ``normalized_shape``, or None.
        bias: Shape ``normalized_shape``, or None.
        eps: Keeps the root away from 0.

    Raises:
        ShapeError: ``input`` does not end in ``normalized_shape``.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.functional.layer_norm(pc.tensor([[1.0, 3.0]]), (2,), eps=0.0).tolist()
        [[-1.0, 1.0]]
    """
    expected = tuple(normalized_shape)
    if not expected or input.shape[-len(expected) :] != expected:
        raise pc.ShapeError(
            f"layer_norm: `input` must end in the dimensions `normalized_shape` {expected}; "
            f"got shape {tuple(input.shape)}"
        )
    if is_mixed(input, weight, bias):
        return pc.layer_norm(input.float(), expected, weight, bias, eps).to(input.dtype)
    return pc.layer_norm(input, expected, weight, bias, eps)


def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """Divide by the ``p``-norm along ``dim``, or by ``eps`` where that is larger.

    The result is written to ``out``, if given.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> unit = nn.functional.normalize(pc.tensor([[3.0, 4.0]]))
        >>> [round(u, 4) for u in unit[0].tolist()]
        [0.6, 0.8]
    """
    # a half holds neither every norm of halves nor the default eps
    wide = widened(input)
    norms = pc.norm(wide, p, dim, True).clamp(min=eps)
    if wide is input:
        return input / norms if out is None else pc.div(input, norms, out=out)
    unit = (wide / norms).to(input.dtype)
    return unit if out is None else pc.mul(unit, 1, out=out)


@unbound
@passes_on
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Compute ``x1 . x2 / (|x1| |x2|)`` along ``dim``, each norm at least ``eps``.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.cosine_similarity(pc.tensor([3.0, 4.0]), pc.tensor([3.0, 0.0]), dim=0)
        tensor(0.6000)
    """
    return pc.cosine_similarity(x1, x2, dim, eps)
