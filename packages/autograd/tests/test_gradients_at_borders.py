"""Gradients at nan, at the ends of straight lines and at roots of 0: PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import plait_autograd as pa
import plait_core as pc
from plait_abi import operator

NAN, INF = math.nan, math.inf


def slope(function: Callable[[Any], Any], values: list[float]) -> list[float]:
    x = pc.tensor(values).requires_grad_()
    return pa.grad([function(x).sum()], [x])[0].tolist()


# Parameters, then arguments and derivatives there: PyTorch's. At nan its loops over many elements
# and over few disagree for some; one of the two is taken: lines pass nan, exponentials give nan.
CORNERS: dict[str, tuple[tuple[float, ...], dict[float, float]]] = {
    "relu": ((), {0.0: 0, NAN: 1}),
    "relu6": ((), {0.0: 0, 6.0: 0, NAN: 1, INF: 0}),
    "hardtanh": ((), {-1.0: 0, 1.0: 0, 0.0: 1, NAN: 1, INF: 0, -INF: 0}),
    "hardsigmoid": ((), {-3.0: 0, 3.0: 0, 0.0: 1 / 6, NAN: 0, INF: 0, -INF: 0}),
    "hardswish": ((), {-3.0: 0, 3.0: 1, 0.0: 0.5, NAN: NAN, INF: 1, -INF: 0}),
    "threshold": ((0.5, 20.0), {0.5: 0, 0.75: 1, NAN: 1, INF: 1, -INF: 0}),
    "hardshrink": ((), {0.5: 0, -0.5: 0, 0.75: 1, NAN: 1, INF: 1, -INF: 1}),
    "softshrink": ((), {0.5: 0, -0.5: 0, 0.75: 1, NAN: 1, INF: 1, -INF: 1}),
    "leaky_relu": ((), {0.0: 0.01, NAN: 0.01, INF: 1, -INF: 0.01}),
    "elu": ((2.0,), {0.0: 2, NAN: NAN, INF: 1, -INF: 0}),
    "celu": ((2.0,), {0.0: 1, NAN: NAN, INF: 1, -INF: 0}),
    "selu": ((), {0.0: 1.7580993, NAN: NAN, INF: 1.0507010, -INF: 0}),
    "softplus": ((2.0, 3.0), {0.0: 0.5, 1.75: 1, NAN: NAN, INF: 1, -INF: 0, -800.0: 0}),
    "log_sigmoid": ((), {0.0: 0.5, NAN: NAN, INF: 0, -INF: 1, 800.0: 0, -800.0: 1}),
    "mish": ((), {0.0: 0.6, NAN: NAN, INF: NAN, -INF: NAN, 1e30: 1, -1e30: 0}),
    "silu": ((), {0.0: 0.5, NAN: NAN, INF: NAN, -INF: NAN}),
    "softsign": ((), {0.0: 1, NAN: NAN, INF: NAN, -INF: NAN, 1e30: 0}),
    "tanhshrink": ((), {0.0: 0, NAN: NAN, INF: 1, -INF: 1}),
}


@pytest.mark.parametrize("dtype", [pc.float32, pc.float64, pc.bfloat16])
@pytest.mark.parametrize("name", CORNERS)
def test_corners_of_activations(name: str, dtype: Any) -> None:
    """Alone and repeated: loops over many elements and over few are different code."""
    parameters, derivatives = CORNERS[name]
    for times in (1, 40):
        x = pc.tensor(list(derivatives) * times, dtype=dtype).requires_grad_()
        got = pa.grad([operator(name)(x, *parameters).sum()], [x])[0].tolist()
        want = list(derivatives.values()) * times
        tolerance = 1e-2 if dtype == pc.bfloat16 else 1e-6
        assert got == pytest.approx(want, rel=tolerance, nan_ok=True)


@pytest.mark.parametrize("name", ["elu", "selu", "celu"])
def test_second_derivatives_of_exponential_units(name: str) -> None:
    """At 0 that of the straight line is taken."""
    x = pc.tensor([0.0, 1.0, NAN, -INF]).requires_grad_()
    (first,) = pa.grad([operator(name)(x).sum()], [x], create_graph=True)
    assert pa.grad([first.sum()], [x])[0].tolist() == pytest.approx([0, 0, NAN, 0], nan_ok=True)


@pytest.mark.parametrize("name", ["softplus", "mish", "log_sigmoid"])
def test_small_derivatives_and_infinite_gradients(name: str) -> None:
    """Where the derivative is subnormal it is not 0, and an infinite gradient stays infinite."""
    x = pc.tensor([90.0 if name == "log_sigmoid" else -90.0]).requires_grad_()
    derivative = math.exp(-90.0) * (-89.0 if name == "mish" else 1.0)
    y = operator(name)(x)
    assert pa.grad([y], [x], [pc.ones(1)])[0].item() == pytest.approx(derivative, rel=1e-4)
    infinite = pa.grad([operator(name)(x)], [x], [pc.full([1], INF)])[0].item()
    assert infinite == math.copysign(INF, derivative)


@pytest.mark.parametrize("correction", [0, 1])
def test_the_deviation_of_equal_numbers(correction: int) -> None:
    """The derivative of the root at 0 is taken as 0, as for `std`."""
    both = slope(lambda x: pc.std_mean(x, correction=correction)[0], [2.0, 2.0, 2.0])
    assert both == slope(lambda x: pc.std(x, correction=correction), [2.0, 2.0, 2.0]) == [0, 0, 0]


@pytest.mark.parametrize(("p", "dtype"), [(-1, pc.float16), (-3, pc.float32)])
def test_norms_whose_powers_overflow(p: int, dtype: Any) -> None:
    """The powers of an element and of the norm leave the dtype; their quotient does not."""
    values = {-1: [0.002, 0.001], -3: [1e-11, 2e-11]}[p]
    wide, x = (pc.tensor(values, dtype=d).requires_grad_() for d in (pc.float64, dtype))
    norms = [pc.norm(each, p) for each in (wide, x)]
    want, got = (pa.grad([n], [each])[0] for n, each in zip(norms, (wide, x), strict=True))
    assert got.tolist() == pytest.approx(want.tolist(), rel=1e-2)
