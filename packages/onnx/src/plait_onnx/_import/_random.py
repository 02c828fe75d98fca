"""Operators that draw random numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_onnx._import._errors import dtype_of
from plait_onnx._import._registry import Node, operator

Function = Callable[..., Any]


def _generator(node: Node) -> Any:
    """Return the generator of a node that has a seed of its own, which counts on."""
    seed = node.number("seed", None)
    if seed is not None and not math.isfinite(seed):
        raise node.error(f"seed must be a number, got {seed}")
    return None if seed is None else pc.Generator().manual_seed(abs(int(seed * 1000)) % (1 << 63))


def _normal(node: Node) -> Function:
    mean, scale = node.number("mean", 0.0), node.number("scale", 1.0)
    generator = _generator(node)
    return lambda shape: pc.randn(*shape, generator=generator) * scale + mean


def _uniform(node: Node) -> Function:
    low, high = node.number("low", 0.0), node.number("high", 1.0)
    generator = _generator(node)
    return lambda shape: pc.rand(*shape, generator=generator) * (high - low) + low


def _by_shape(make: Callable[[Node], Function]) -> Callable[[Node], Function]:
    def build(node: Node) -> Function:
        shape, dtype, draw = node.integers("shape"), node.dtype("dtype", pc.float32), make(node)
        node.check_size(shape)
        return lambda: draw(shape).to(dtype)

    return build


def _by_tensor(make: Callable[[Node], Function]) -> Callable[[Node], Function]:
    def build(node: Node) -> Function:
        dtype, draw = node.dtype("dtype", None), make(node)
        return lambda x: draw(x.shape).to(device=x.device, dtype=dtype or x.dtype)

    return build


operator("RandomNormal")(_by_shape(_normal))
operator("RandomUniform")(_by_shape(_uniform))
operator("RandomNormalLike")(_by_tensor(_normal))
operator("RandomUniformLike")(_by_tensor(_uniform))


@operator("Bernoulli")
def _bernoulli(node: Node) -> Function:
    dtype, generator = node.dtype("dtype", None), _generator(node)

    def run(x: Tensor) -> Tensor:
        drawn = pc.rand(*x.shape, generator=generator).to(x.device) < x
        return drawn.to(dtype or x.dtype)

    return run


@operator("Multinomial")
def _multinomial(node: Node) -> Function:
    count, dtype = node.integer("sample_size", 1), dtype_of(node.integer("dtype", 6), node.where)
    generator = _generator(node)
    if not 0 < count < 1 << 31:
        raise node.error(f"sample_size must be positive, got {count}")

    def run(x: Tensor) -> Tensor:
        node.check_size([x.shape[0], count], 8)
        chances = pc.softmax(x.to(pc.float32), 1)
        return pc.multinomial(chances, count, True, generator=generator).to(dtype)

    return run
