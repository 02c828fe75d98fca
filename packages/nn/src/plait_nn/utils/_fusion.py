"""Folding a batch norm in evaluation mode into the layer before it."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import plait_core as pc
from plait_core import Tensor
from plait_nn._halves import widened
from plait_nn._module import Module
from plait_nn._parameter import Parameter

M = TypeVar("M", bound=Module)


def fuse_conv_bn_eval(conv: M, bn: Module, transpose: bool = False) -> M:
    r"""Return one convolution that computes ``bn(conv(x))`` of two modules in evaluation mode.

    Its weight is :math:`W \gamma / \sqrt{\sigma^2 + \epsilon}` for each output channel, its bias
    :math:`(b - \mu) \gamma / \sqrt{\sigma^2 + \epsilon} + \beta`.

    Args:
        conv: A convolution.
        bn: A batch norm with running statistics.
        transpose: Whether `conv` is a transposed convolution; with groups this is an error.

    Raises:
        RuntimeError: One of them is in training mode, or `bn` has no running statistics.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> conv, bn = nn.Conv2d(2, 3, 3).eval(), nn.BatchNorm2d(3).eval()
        >>> fused = nn.utils.fuse_conv_bn_eval(conv, bn)
        >>> x = pc.randn(1, 2, 5, 5)
        >>> bool(((fused(x) - bn(conv(x))).abs() < 1e-5).all())
        True
    """
    if transpose and getattr(conv, "groups", 1) != 1:
        raise NotImplementedError(
            f"fuse_conv_bn_eval: a transposed convolution must have one group; got {conv.groups}"
        )
    return _fused("fuse_conv_bn_eval", conv, bn, transpose)


def fuse_linear_bn_eval(linear: M, bn: Module) -> M:
    """Return one linear layer that computes ``bn(linear(x))`` of two modules in evaluation mode.

    Raises:
        RuntimeError: One of them is in training mode, or `bn` has no running statistics.
        ValueError: `bn` has neither one feature nor those of `linear`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> linear, bn = nn.Linear(2, 3).eval(), nn.BatchNorm1d(3).eval()
        >>> fused = nn.utils.fuse_linear_bn_eval(linear, bn)
        >>> x = pc.randn(4, 2)
        >>> bool(((fused(x) - bn(linear(x))).abs() < 1e-5).all())
        True
    """
    if bn.num_features not in (1, linear.out_features):
        raise ValueError(
            f"fuse_linear_bn_eval: `bn` must have 1 or {linear.out_features} features; "
            f"got {bn.num_features}"
        )
    return _fused("fuse_linear_bn_eval", linear, bn, False)


def _fused(operator: str, layer: M, bn: Module, transpose: bool) -> M:
    if layer.training or bn.training:
        raise RuntimeError(f"{operator}: both modules must be in evaluation mode; call eval()")
    if bn.running_mean is None or bn.running_var is None:
        raise RuntimeError(f"{operator}: `bn` must have running statistics; it has none")
    result: Any = copy.deepcopy(layer)
    result.weight, result.bias = fuse_conv_bn_weights(
        result.weight,
        result.bias,
        bn.running_mean,
        bn.running_var,
        bn.eps,
        bn.weight,
        bn.bias,
        transpose,
    )
    output: M = result
    return output


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Return weight and bias of the fused convolution; `fuse_conv_bn_eval` has the formula.

    Args:
        conv_w: The weight, output channels first (second with `transpose`).
        conv_b: The bias, or None.
        bn_rm: The running mean.
        bn_rv: The running variance.
        bn_eps: The number that is added to the variance.
        bn_w: The weight of the norm; None: 1.
        bn_b: The bias of the norm; None: 0.
        transpose: Whether the weight is that of a transposed convolution.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> one = pc.ones(1)
        >>> weight, bias = nn.utils.fuse_conv_bn_weights(
        ...     pc.full((1, 1, 1), 6.0), None, one, one * 4, 0.0, None, one
        ... )
        >>> weight.flatten().tolist(), bias.tolist()
        ([3.0], [0.5])
    """
    mean = widened(bn_rm)
    bias = pc.zeros_like(mean) if conv_b is None else widened(conv_b.detach())
    factor = (widened(bn_rv) + bn_eps).rsqrt()
    if bn_w is not None:
        factor = factor * widened(bn_w.detach())
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    weight = widened(conv_w.detach()) * factor.reshape(shape)
    bias = (bias - mean) * factor
    if bn_b is not None:
        bias = bias + widened(bn_b.detach())
    dtype, first = conv_w.dtype, conv_w.requires_grad
    second = first if conv_b is None else conv_b.requires_grad
    return Parameter(weight.to(dtype), first), Parameter(bias.to(dtype), second)


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Return weight and bias of the fused linear layer; the arguments of `fuse_conv_bn_weights`.

    Args:
        linear_w: Weight of the linear layer.
        linear_b: Its bias, or None.
        bn_rm: Running mean.
        bn_rv: Running variance.
        bn_eps: `eps` of the normalization.
        bn_w: Factors of the normalization.
        bn_b: Offsets of the normalization.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> one = pc.ones(1)
        >>> weight, bias = nn.utils.fuse_linear_bn_weights(
        ...     pc.full((1, 2), 6.0), one, one, one * 4, 0.0, one * 2, None
        ... )
        >>> weight.tolist(), bias.tolist()
        ([[6.0, 6.0]], [0.0])
    """
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
