"""Gradients along long dimensions: their errors do not grow."""

from __future__ import annotations

import numpy as np
import pytest

import plait_autograd as pa
import plait_core as pc


@pytest.mark.parametrize("zeros", [[], [500], [500, 70_000]])
def test_gradients_of_long_products(zeros: list[int]) -> None:
    """The reference: products of earlier elements times reversed sums, each rounded once."""
    rng = np.random.default_rng(7)
    x = np.exp(0.01 * rng.standard_normal(100_000)).astype(np.float32)
    x[zeros] = 0
    g = rng.standard_normal(x.shape).astype(np.float32)
    want, factors = g.astype(np.float64), x.astype(np.float64)
    for i in reversed(range(len(x) - 1)):
        want[i] += factors[i + 1] * want[i + 1]
    want *= np.cumprod(np.concatenate([[1.0], factors[:-1]]))
    leaf = pc.from_numpy(x).requires_grad_()
    (got,) = pa.grad([pc.cumprod(leaf, 0)], [leaf], [pc.from_numpy(g)])
    np.testing.assert_allclose(got.numpy(), want, rtol=5e-7, atol=1e-9 * np.abs(want).max())
