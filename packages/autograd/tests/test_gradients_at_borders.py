"""Gradients at nan, at the ends of straight lines and at roots of 0: PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import plait_autograd as pa
import plait_core as pc

NAN = math.nan


def slope(function: Callable[[Any], Any], values: list[float]) -> list[float]:
    x = pc.tensor(values).requires_grad_()
    return pa.grad([function(x).sum()], [x])[0].tolist()


@pytest.mark.parametrize(
    ("function", "flat"),
    [
        (pc.relu6, -1.0),
        (pc.hardtanh, 2.0),
        (pc.hardshrink, 0.1),
        (pc.softshrink, 0.1),
        (lambda x: pc.threshold(x, 0.0, 0.0), -1.0),
    ],
)
def test_a_nan_passes_its_gradient_on(function: Callable[[Any], Any], flat: float) -> None:
    assert slope(function, [NAN, flat]) == [1.0, 0.0]


def test_hardswish_at_its_ends() -> None:
    assert slope(pc.hardswish, [-3.0, 3.0, 0.0]) == [0.0, 1.0, 0.5]


@pytest.mark.parametrize("correction", [0, 1])
def test_the_deviation_of_equal_numbers(correction: int) -> None:
    """As of `std`: the slope of a root at 0 is taken as 0."""
    both = slope(lambda x: pc.std_mean(x, correction=correction)[0], [2.0, 2.0, 2.0])
    assert both == slope(lambda x: pc.std(x, correction=correction), [2.0, 2.0, 2.0]) == [0, 0, 0]
