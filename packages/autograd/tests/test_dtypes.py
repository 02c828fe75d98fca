"""Gradients of halves."""

from __future__ import annotations

from typing import Any

import pytest

import plait_core as pc
from plait_abi import operator

HALVES = pytest.mark.parametrize("dtype", [pc.float16, pc.bfloat16], ids=lambda d: d.name)


@HALVES
def test_halves_differentiate(dtype: Any) -> None:
    x = pc.tensor([0.5, -1.0, 2.0], dtype=dtype, requires_grad=True)
    y = (x * x).sum() + pc.softmax(x, 0).square().sum()
    y.backward()
    wide = x.detach().to(pc.float32).requires_grad_()
    ((wide * wide).sum() + pc.softmax(wide, 0).square().sum()).backward()
    assert x.grad is not None and wide.grad is not None
    assert x.grad.dtype is dtype
    assert pc.allclose(x.grad.to(pc.float32), wide.grad, rtol=2e-2, atol=2e-2)


@HALVES
def test_layers_of_halves(dtype: Any) -> None:
    pc.manual_seed(0)
    image = pc.randn(2, 3, 6, 6).to(dtype).requires_grad_()
    weight = pc.randn(4, 3, 3, 3).to(dtype).requires_grad_()
    scale = pc.ones(4, dtype=dtype).requires_grad_()
    head = pc.randn(5, 64).to(dtype).requires_grad_()
    leaves = [image, weight, scale, head]

    def loss(image: Any, weight: Any, scale: Any, head: Any) -> Any:
        hidden = pc.conv2d(image, weight) * scale.view(-1, 1, 1)
        scores = operator("linear")(pc.relu(hidden).flatten(1), head)
        return operator("cross_entropy")(scores * 0.1, pc.tensor([1, 3]))

    loss(*leaves).backward()
    wide = [x.detach().to(pc.float32).requires_grad_() for x in leaves]
    loss(*wide).backward()
    for x, y in zip(leaves, wide, strict=True):
        assert x.grad is not None and y.grad is not None and x.grad.dtype is dtype
        size = y.grad.abs().max().item()
        difference = (x.grad.to(pc.float32) - y.grad).abs().max().item()
        assert difference <= (0.02 if dtype is pc.float16 else 0.1) * size


def test_mixed_dtypes_cast_back() -> None:
    half = pc.tensor([1.0, 2.0], dtype=pc.float16, requires_grad=True)
    wide = pc.tensor([3.0, 4.0], requires_grad=True)
    (half * wide).sum().backward()
    assert half.grad is not None and wide.grad is not None
    assert (half.grad.dtype, wide.grad.dtype) == (pc.float16, pc.float32)
    assert half.grad.tolist() == [3.0, 4.0] and wide.grad.tolist() == [1.0, 2.0]
