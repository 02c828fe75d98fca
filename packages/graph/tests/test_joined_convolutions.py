"""Convolutions that run as one call with what is behind them: the bits of eager calls."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import plait_abi
import plait_autograd as autograd
import plait_core as pc
import plait_nn as nn
import plait_nn.functional as F
from plait_graph import _graph, compile

sys.path.insert(0, str(Path(__file__).parent))

from same_bits import assert_same


@pytest.fixture(params=[False, True], ids=["default", "reproducible"])
def reproducible(request: Any) -> Iterator[None]:
    """Run in both modes."""
    before = pc.is_reproducible()
    pc.set_reproducible(request.param)
    yield
    pc.set_reproducible(before)


def check(function: Callable[..., Any], *args: Any) -> list[list[str]]:
    """Compare a frozen function with the function; return the operators of each of its groups."""
    compiled = compile(function, frozen=True)
    with autograd.no_grad():
        expected = function(*args)
        for _ in range(4):
            assert_same(compiled(*args), expected)
    checked = compile(function, frozen=True, check=1)
    with autograd.no_grad():
        for _ in range(3):
            assert_same(checked(*args), expected)
    result = []
    for graph in compiled.graphs():
        program = _graph.Program(graph.to_json())
        result += [[graph.nodes[i].op for i in group] for group in program.groups]
    return result


KERNELS = {  # of a convolution of each way to compute it: input, weight, stride, padding, groups
    "pointwise": ((1, 24, 12, 12), (16, 24, 1, 1), 1, 0, 1),
    "pointwise, positions are rows": ((1, 80, 7, 7), (160, 80, 1, 1), 1, 0, 1),
    "pointwise, deep": ((1, 400, 8, 8), (40, 400, 1, 1), 1, 0, 1),
    "pointwise, stride": ((2, 24, 13, 13), (16, 24, 1, 1), 2, 0, 1),
    "pointwise, groups": ((3, 24, 7, 7), (48, 12, 1, 1), 1, 0, 2),
    "pointwise, past the caches": ((2, 4, 1100, 960), (4, 4, 1, 1), 1, 0, 1),
    "winograd": ((2, 32, 28, 28), (32, 32, 3, 3), 1, 1, 1),
    "pixels": ((2, 16, 15, 15), (24, 16, 3, 3), 2, 1, 1),
    "depthwise": ((1, 32, 14, 14), (32, 1, 3, 3), 1, 1, 32),
    "lanes": ((32, 1, 10, 10), (4, 1, 3, 3), 1, 0, 1),
    "dense": ((2, 8, 4, 4), (10, 8, 4, 4), 1, 0, 1),
    "columns": ((1, 3, 64, 64), (8, 3, 3, 3), 1, 1, 1),
}


def signed_zeros(*shape: int) -> pc.Tensor:
    """Return normal numbers, of which many are -0."""
    x = pc.randn(*shape)
    return pc.where(x > 0.5, pc.full(shape, -0.0), x)


@pytest.mark.parametrize("dtype", [pc.float32, pc.float64])
@pytest.mark.parametrize("kind", KERNELS)
def test_each_way_to_compute(kind: str, dtype: Any, reproducible: None) -> None:
    size, weight_size, stride, padding, groups = KERNELS[kind]
    x, w = signed_zeros(*size).to(dtype), pc.randn(*weight_size).to(dtype)
    b = signed_zeros(weight_size[0]).to(dtype)
    residual = signed_zeros(*pc.conv2d(x, w, None, stride, padding, 1, groups).shape).to(dtype)
    for bias in (None, b):

        def add(x: pc.Tensor, r: pc.Tensor, bias: Any = bias) -> pc.Tensor:
            return pc.conv2d(x, w, bias, stride, padding, 1, groups) + r

        assert check(add, x, residual) == [["conv2d", "add"]]
        relu = check(lambda *args, add=add: F.relu(add(*args)), x, residual)
        assert relu == [["conv2d", "add", "relu"]]


@pytest.mark.parametrize(
    ("activation", "name"),
    [
        (F.relu, "relu"),
        (F.relu6, "relu6"),
        (lambda x: F.hardtanh(x, -1, 0.5), "hardtanh"),
        (lambda x: F.leaky_relu(x, 0.25), "leaky_relu"),
        (F.silu, "silu"),
        (F.hardswish, "hardswish"),
        (F.relu_, "relu"),
    ],
)
def test_activations(activation: Any, name: str) -> None:
    layer, x, r = nn.Conv2d(8, 12, 1), pc.randn(2, 8, 9, 9), pc.randn(2, 12, 9, 9)
    assert check(lambda x: activation(layer(x)), x) == [["conv2d", name]]
    assert check(lambda x: activation(layer(x) + r), x) == [["conv2d", "add", name]]
    assert check(lambda x: activation(layer(x).add_(r)), x) == [["conv2d", "add", name]]


def test_shortcuts_of_layers() -> None:
    one, two = nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 3, padding=1)

    def function(x: pc.Tensor) -> pc.Tensor:
        y = x + one(x)  # the operand is the input of the convolution, too
        z = F.relu(y)
        return F.relu(one(z) + two(z)) * 2

    groups = check(function, pc.randn(1, 8, 20, 20))
    assert groups == [["conv2d", "add", "relu"], ["conv2d", "add", "relu"]]


x8, y8 = (1, 8, 20, 20), (1, 8, 20, 20)


@pytest.mark.parametrize(
    "function",
    [
        lambda y, r: (y + r, y),  # the result of the convolution is read again, or returned
        lambda y, r: (y + r) * y,
        lambda y, r: (y + r, y.view(8, 400).sum(0)),
        lambda y, r: y + y,
        lambda y, r: pc.add(y, r, alpha=2),
        lambda y, r: y + r[:, :1],  # broadcast
        lambda y, r: y + r.to(pc.float64),
        lambda y, r: y + r.permute(0, 1, 3, 2),  # another order in memory
        lambda y, r: r.clone().add_(y),  # into the other operand
        lambda y, r: y.add_(y.permute(0, 1, 3, 2).contiguous()),
        lambda y, r: y - r,
    ],
)
def test_what_is_not_joined(function: Any) -> None:
    layer = nn.Conv2d(8, 8, 1)
    groups = check(lambda x, r: function(layer(x), r), pc.randn(*x8), pc.randn(*y8))
    assert "conv2d" not in [op for group in groups for op in group]


@pytest.mark.parametrize("dtype", [pc.float16, pc.bfloat16])
def test_halves_are_rounded_after_each_operator(dtype: Any) -> None:
    layer = nn.Conv2d(8, 8, 1).to(dtype)
    x, r = pc.randn(*x8).to(dtype), pc.randn(*y8).to(dtype)
    assert check(lambda x, r: F.relu(layer(x) + r), x, r) in ([], [["add", "relu"]])


def test_memory_of_what_is_joined() -> None:
    layer = nn.Conv2d(8, 8, 1)
    compiled = compile(lambda x, r: F.relu(layer(x) + r).sum(), frozen=True)
    with autograd.no_grad():
        for _ in range(3):
            compiled(pc.randn(*x8), pc.randn(*y8))
    program = _graph.Program(compiled.graphs()[0].to_json())
    assert program.planned_bytes <= 4 * 8 * 400 + 4096  # one value, and a sum


def test_weights_change_between_runs() -> None:
    layer = nn.Conv2d(8, 8, 1)
    compiled = compile(lambda x: x + layer(x), frozen=True)
    x = pc.randn(*x8)
    with autograd.no_grad():
        for _ in range(4):
            layer.weight.mul_(0.5)
            assert_same(compiled(x), x + layer(x))


def test_gradients_are_those_of_the_parts() -> None:
    layer, x = nn.Conv2d(8, 8, 1), pc.randn(*x8)

    def function(x: pc.Tensor) -> pc.Tensor:
        return F.relu(layer(x) + x).sum()

    compiled = compile(function, frozen=True)
    for run in (function, compiled, compiled, compiled):
        layer.weight.grad = None
        run(x).backward()
        if run is function:
            expected = layer.weight.grad
        assert_same(layer.weight.grad, expected)


def test_operator_has_no_derivative_of_its_own() -> None:
    operator = plait_abi.operator("conv2d_add_activation")
    x, w, r = pc.randn(*x8), pc.randn(8, 8, 1, 1), pc.randn(*y8)
    for each in (x, w, r):
        each.requires_grad_()
    options = (1, 1), (0, 0), (1, 1), 1
    y = operator(x, w, None, *options, r, "relu", 0.0, 0.0, 0.0)
    parts = F.relu(pc.conv2d(x, w) + r)
    assert_same(y.detach(), parts.detach())
    found = autograd.grad(y.sum(), [x, w, r])
    for one, other in zip(found, autograd.grad(parts.sum(), [x, w, r]), strict=True):
        assert_same(one, other)


def test_a_new_kernel_runs() -> None:
    layer, x = nn.Conv2d(8, 8, 1), pc.randn(*x8)
    compiled = compile(lambda x: x + layer(x), frozen=True)

    def conv2d(*args: Any) -> None:
        args[-1].fill_(3)  # the result

    with autograd.no_grad():
        expected = [compiled(x) for _ in range(3)][-1]
        with plait_abi.kernel("conv2d", conv2d):
            assert_same(compiled(x), x + 3)
        assert_same(compiled(x), expected)
