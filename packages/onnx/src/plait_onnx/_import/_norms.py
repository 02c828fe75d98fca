"""Normalizations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plait_core as pc
import plait_nn.functional as F
from plait_core import Tensor
from plait_onnx._import._registry import Node, operator

Function = Callable[..., Any]


@operator("BatchNormalization")
def _batch_norm(node: Node) -> Function:
    epsilon, momentum = node.number("epsilon", 1e-5), node.number("momentum", 0.9)
    training = node.flag("training_mode") if node.version >= 14 else False
    if node.version < 7 and not node.flag("is_test"):
        training = len([name for name in node.outputs if name]) > 1
    if node.version < 9 and not node.flag("spatial", True):
        raise node.error("spatial=0, statistics of each element, is not supported")

    def run(x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor) -> Any:
        if not training:
            if scale.dtype == x.dtype == mean.dtype:
                return F.batch_norm(x, mean, var, scale, bias, False, 0.0, epsilon)
            shape = (-1, *[1] * (x.ndim - 2))
            scale, bias, mean, var = (t.reshape(shape) for t in (scale, bias, mean, var))
            y = (x.to(var.dtype) - mean) * pc.rsqrt(var + epsilon) * scale + bias
            return y.to(x.dtype)
        axes = [0, *range(2, x.ndim)]
        center = pc.mean(x, axes)
        spread = pc.var(x, axes, correction=0)
        y = F.batch_norm(x, center, spread, scale, bias, False, 0.0, epsilon)
        new = (mean * momentum + center * (1 - momentum), var * momentum + spread * (1 - momentum))
        return y, new[0].to(mean.dtype), new[1].to(var.dtype)

    return run


@operator("InstanceNormalization")
def _instance_norm(node: Node) -> Function:
    epsilon = node.number("epsilon", 1e-5)

    def run(x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
        axes = list(range(2, x.ndim))
        shape = (-1, *[1] * (x.ndim - 2))
        mean = pc.mean(x, axes, keepdim=True)
        var = pc.var(x, axes, correction=0, keepdim=True)
        return (x - mean) * pc.rsqrt(var + epsilon) * scale.reshape(shape) + bias.reshape(shape)

    return run


@operator("LayerNormalization")
def _layer_norm(node: Node) -> Function:
    axis, epsilon = node.integer("axis", -1), node.number("epsilon", 1e-5)
    several = any(node.outputs[1:])
    stash = node.integer("stash_type", 1)

    def run(x: Tensor, scale: Tensor, bias: Tensor | None = None) -> Any:
        at = axis % x.ndim
        shape = list(x.shape[at:])
        if list(scale.shape) == shape and not several and x.dtype == scale.dtype:
            return F.layer_norm(x, shape, scale, bias, epsilon)
        axes = list(range(at, x.ndim))
        wide = x.to(pc.float32) if stash == 1 and x.itemsize == 2 else x
        mean = pc.mean(wide, axes, keepdim=True)
        inverse = pc.rsqrt(pc.var(wide, axes, correction=0, keepdim=True) + epsilon)
        y = ((wide - mean) * inverse).to(x.dtype) * scale
        return (
            y if bias is None and not several else (y if bias is None else y + bias, mean, inverse)
        )

    return run


@operator("RMSNormalization")
def _rms_norm(node: Node) -> Function:
    axis, epsilon = node.integer("axis", -1), node.number("epsilon", 1e-5)
    stash = node.integer("stash_type", 1)

    def run(x: Tensor, scale: Tensor) -> Tensor:
        axes = list(range(axis % x.ndim, x.ndim))
        wide = x.to(pc.float32) if stash == 1 and x.itemsize == 2 else x
        mean = pc.mean(wide * wide, axes, keepdim=True)
        return ((wide * pc.rsqrt(mean + epsilon)).to(x.dtype) * scale).to(scale.dtype)

    return run


@operator("GroupNormalization")
def _group_norm(node: Node) -> Function:
    groups, epsilon = node.integer("num_groups"), node.number("epsilon", 1e-5)

    def run(x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
        if node.version >= 21:
            return F.group_norm(x, groups, scale, bias, epsilon)
        y = F.group_norm(x, groups, None, None, epsilon)  # version 18: a scale for each group
        shape = (x.shape[0], groups, -1)
        return (y.reshape(shape) * scale[:, None] + bias[:, None]).reshape(x.shape)

    return run


@operator("LpNormalization")
def _lp_norm(node: Node) -> Function:
    axis, p = node.integer("axis", -1), node.integer("p", 2)
    if p not in (1, 2):
        raise node.error(f"p must be 1 or 2, got {p}")

    def run(x: Tensor) -> Tensor:
        norm = pc.linalg.vector_norm(x, p, axis, True)
        return pc.where(norm == 0, pc.zeros_like(x), x / norm)

    return run


@operator("MeanVarianceNormalization")
def _mean_variance(node: Node) -> Function:
    axes = node.integers("axes", [0, 2, 3])

    def run(x: Tensor) -> Tensor:
        mean = pc.mean(x, axes, keepdim=True)
        square = pc.mean(x * x, axes, keepdim=True)
        return (x - mean) / (pc.sqrt(square - mean * mean) + 1e-9)

    return run


@operator("LRN")
def _lrn(node: Node) -> Function:
    size, alpha, beta = node.integer("size"), node.number("alpha", 1e-4), node.number("beta", 0.75)
    bias = node.number("bias", 1.0)
    if size < 1:
        raise node.error(f"size must be positive, got {size}")

    def run(x: Tensor) -> Tensor:
        low = (size - 1) // 2
        shape = list(x.shape)
        node.check_size([*shape, size])
        flat = (x * x).reshape(shape[0], 1, shape[1], -1)
        wide = F.pad(flat, [0, 0, low, size - 1 - low])
        sums = F.avg_pool2d(wide, (size, 1), 1).reshape(shape)  # means
        return x / pc.pow(sums * alpha + bias, beta)

    return run
