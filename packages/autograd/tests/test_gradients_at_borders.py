"""Gradients at nan, at the ends of straight lines and at roots of 0: PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import plait_autograd as pa
import plait_core as pc
from plait_abi import operator

NAN = math.nan


def slope(function: Callable[[Any], Any], values: list[float]) -> list[float]:
    x = pc.tensor(values).requires_grad_()
    return pa.grad([function(x).sum()], [x])[0].tolist()


@pytest.mark.parametrize(
    ("function", "flat"),
    [
        (operator("relu6"), -1.0),
        (operator("hardtanh"), 2.0),
        (pc.hardshrink, 0.1),
        (operator("softshrink"), 0.1),
        (lambda x: pc.threshold(x, 0.0, 0.0), -1.0),
    ],
)
def test_a_nan_passes_its_gradient_on(function: Callable[[Any], Any], flat: float) -> None:
    assert slope(function, [NAN, flat]) == [1.0, 0.0]


def test_hardswish_at_its_ends() -> None:
    assert slope(operator("hardswish"), [-3.0, 3.0, 0.0]) == [0.0, 1.0, 0.5]


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
