"""Slices that take all of a tensor: their gradient is that of the result, without a copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import plait_autograd as pa
import plait_core as pc

WHOLE: list[Callable[[Any], Any]] = [
    lambda x: x[:, ::1],
    lambda x: x[..., -5:9],
    lambda x: x.narrow(1, 0, 3),
    lambda x: x.narrow(-1, -3, 3),
    lambda x: x[:1],
    lambda x: x[::4],
]
PARTS: list[Callable[[Any], Any]] = [
    lambda x: x.select(0, 0),
    lambda x: x[-1],
    lambda x: x[:1, 1:],
    lambda x: x.flip(0),
    lambda x: x[0, ::2],
]


@pytest.mark.parametrize("take", [*WHOLE, *PARTS])
def test_gradients_of_slices(take: Callable[[Any], Any]) -> None:
    x = pc.arange(3.0, dtype=pc.float64).reshape(1, 3).requires_grad_()
    assert pa.gradcheck(take, (x,))
    assert pa.gradgradcheck(lambda t: take(t * t * t), (x,))


@pytest.mark.parametrize("take", WHOLE)
def test_the_gradient_of_a_whole_slice_is_passed_on(take: Callable[[Any], Any]) -> None:
    x = pc.ones(1, 3).requires_grad_() * 2
    gradient = pc.ones(1, 3)
    (result,) = pa.grad(take(x), x, gradient)
    assert result.data_ptr() == gradient.data_ptr()
