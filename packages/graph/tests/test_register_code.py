"""Pointwise calls whose values stay in vector registers: the bits of eager calls."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import plait_autograd as autograd
import plait_core as pc
import plait_nn as nn
from plait_graph import _graph, compile

sys.path.insert(0, str(Path(__file__).parent))

from same_bits import assert_same

LARGE = 40_011  # elements: several blocks for two threads, and a rest that is no whole vector
NUMBERS = [0.0, -0.0, 1.0, -1.5, float("inf"), -float("inf"), float("nan"), 1e-40, 3e30, -7.7, 5.0]

ONE_OPERAND = ["neg", "abs", "sqrt", "rsqrt", "reciprocal", "square", "relu"]
TWO_OPERANDS = ["maximum", "minimum", "fmax", "fmin"]
SCALARS_TOO = ["add", "sub", "mul", "div", "clamp_min", "clamp_max"]


def values(shape: tuple[int, ...], dtype: Any, *, step: int) -> Any:
    """Return a tensor in which all pairs of NUMBERS stand beside those of another step."""
    n = int(pc.zeros(shape).numel())
    numbers = pc.tensor(NUMBERS, dtype=dtype)
    return numbers[pc.arange(n) // step % len(NUMBERS)].reshape(shape)


def runs(function: Any) -> list[list[str]]:
    """Return the operators of each run of register code in a compiled function's programs."""
    result = []
    for graph in function.graphs():
        program = _graph.Program(graph.to_json())
        result += [[graph.nodes[i].op for i in run] for run in program.register_runs]
    return result


def check(function: Callable[..., Any], *args: Any) -> list[list[str]]:
    """Compare a compiled function with the function; return its runs of register code."""
    compiled = compile(function, frozen=True)
    with autograd.no_grad():
        expected = function(*args)
        for _ in range(2):
            assert_same(compiled(*args), expected)
    return runs(compiled)


@pytest.fixture(params=[pc.float32, pc.float64], ids=["float32", "float64"])
def dtype(request: Any) -> Any:
    """Return each dtype that register code has."""
    return request.param


@pytest.mark.parametrize("name", ONE_OPERAND)
def test_operators_of_one_operand(name: str, dtype: Any) -> None:
    operator, x = getattr(pc, name), values((LARGE,), dtype, step=1)
    assert len(check(lambda x: operator(operator(x)), x)[0]) == 2


@pytest.mark.parametrize("name", TWO_OPERANDS + SCALARS_TOO)
def test_operators_of_two_operands(name: str, dtype: Any) -> None:
    operator = getattr(pc, name)
    x, y = (values((LARGE,), dtype, step=step) for step in (1, len(NUMBERS)))
    x = pc.where(x.isnan() & y.isnan(), 1.0, x)  # which of two nan an instruction gives is open

    def function(x: Any, y: Any) -> Any:
        a, b = x.abs(), y.neg()
        # an operand in memory, the accumulator first, the accumulator last, both at once
        return operator(x, y), operator(a, y), operator(x, b), operator(b.relu(), b.relu())

    assert sum(map(len, check(function, x, y))) == 8
    assert check(lambda x, y: operator(x.neg(), y).abs(), x, y[:1]) == [
        ["neg", "true_divide" if name == "div" else name, "abs"]
    ]


@pytest.mark.parametrize("name", SCALARS_TOO)
@pytest.mark.parametrize("number", [0.1, -3, float("inf"), 1e300])
def test_numbers(name: str, number: float, dtype: Any) -> None:
    operator, x = getattr(pc, name), values((LARGE,), dtype, step=1)
    assert len(check(lambda x: operator(operator(x.neg(), number), number), x)[0]) == 3
    if not name.startswith("clamp"):
        assert len(check(lambda x: operator(number, x.neg()).neg(), x)[0]) == 3


def test_bounds(dtype: Any) -> None:
    x = values((LARGE,), dtype, step=1)
    relu6, leaky_relu = nn.functional.relu6, nn.functional.leaky_relu

    def function(x: Any) -> Any:
        y = nn.functional.hardtanh(leaky_relu(-x, 0.25), -0.3, 2.5)
        return relu6(y * 3).clamp(0.5, 4.0), x.neg().clamp(2.0, 1.0)

    names = ["neg", "leaky_relu", "hardtanh", "mul", "relu6", "clamp_between"]
    assert check(function, x) == [[*names, "neg", "clamp_between"]]


def test_bounds_that_are_tensors(dtype: Any) -> None:
    x, low, high = (values((LARGE,), dtype, step=step) for step in (1, 11, 121))
    assert check(lambda x, low, high: (-x).clamp(low.abs(), high.abs()).abs(), x, low, high)


def test_derivative_of_relu(dtype: Any) -> None:
    x = values((LARGE,), dtype, step=1)

    def function(x: Any) -> Any:
        x = x.detach().requires_grad_()
        (gradient,) = autograd.grad((x * 2).relu().mul(3).sum(), x)
        return gradient

    compiled = compile(function, frozen=True)
    for _ in range(3):
        assert_same(compiled(x), function(x))
    assert any("relu_backward" in run for run in runs(compiled))


def test_values_that_are_read_later(dtype: Any) -> None:
    def function(x: Any, y: Any) -> Any:
        a = x * 2
        b = a + y
        c = b.exp()  # a kernel, between two runs
        d = c * a
        d -= b
        d *= d
        return d + a, d, b.sum()

    x, y = (pc.randn(LARGE, dtype=pc.float32).to(dtype) for _ in range(2))
    assert check(function, x, y) == [["mul", "add"], ["mul", "sub", "mul", "add"]]


@pytest.mark.parametrize("shape", [(), (1,), (7, 1), (1, 5717), (3, 1, 1), (3, 7, 1)], ids=str)
def test_broadcast_operands(shape: tuple[int, ...], dtype: Any) -> None:
    x, y = (pc.randn(*s, dtype=pc.float32).to(dtype) for s in ((3, 7, 5717), shape))
    assert check(lambda x, y: (x * y - 1) / y, x, y) == [["mul", "sub", "true_divide"]]


def test_what_is_no_register_code() -> None:
    x = pc.randn(LARGE)
    assert check(lambda x: (x * 2).exp().tanh() + 1, x) == []  # one call alone is a kernel's
    assert check(lambda x: pc.add(x, x, alpha=2).sub(x, alpha=3).abs(), x) == []
    rows = pc.randn(900, 61)
    assert check(lambda x, y: (x * y).relu() - y, rows, rows[:, :1]) == []  # short rows
    n = pc.randint(0, 9, (LARGE,))
    assert check(lambda n: (n * 2 + 1).abs(), n) == []


def test_results_that_are_in_no_cache() -> None:
    x = pc.randn((33 << 18) + 5)  # float32 numbers of more than 32 MiB

    def function(x: Any) -> Any:
        y = (x * 2).relu()
        return y - 1, y

    assert check(function, x) == [["mul", "relu", "sub"]]
