"""Gradients of gamma and beta samples by their parameters, beyond the samples of the specs."""

from __future__ import annotations

import math

import numpy as np
import pytest

import plait_core as pc
from plait_abi import binding

gamma_gradient = binding.operator("gamma_sample_grad")
beta_gradient = binding.operator("beta_sample_grad")


@pytest.mark.parametrize("dtype", [pc.float32, pc.float64])
@pytest.mark.parametrize("a", [1e-2, 0.3, 1.0, 7.0, 300.0, 1e6])
def test_powers_of_uniform_numbers(a: float, dtype: pc.dtype) -> None:
    """The distribution function of Beta(a, 1) is x**a: a sample moves by -x log(x) / a."""
    share = np.array([0.001, 0.1, 0.5, 0.9, 0.999])
    x = pc.tensor(share ** (1 / a), dtype=dtype)
    x = x[(x > 0) & (x < 1)]
    got = beta_gradient(x, pc.tensor(a, dtype=dtype), pc.tensor(1.0, dtype=dtype))
    exact = x.numpy().astype(np.float64)
    expected = -exact * np.log(exact) / a / (1 - exact)
    tolerance = 1e-6 if dtype == pc.float32 else 1e-8
    np.testing.assert_allclose(got.numpy(), expected, rtol=tolerance)
    assert len(expected) > 1


@pytest.mark.parametrize("a", [0.05, 0.9, 3.0, 21.0, 199.0, 5e4, 2e5])
def test_gamma_against_differences_of_its_distribution_function(a: float) -> None:
    z = np.array([-1.5, -0.4, 0.0, 1.0, 2.5])
    x = a * np.maximum(1 - 1 / (9 * a) + z / (3 * math.sqrt(a)), 0.05) ** 3
    shape, at = pc.tensor(a, dtype=pc.float64), pc.tensor(x)
    h = min(a, math.sqrt(a)) * 1e-4
    slope = (pc.special.gammainc(shape + h, at) - pc.special.gammainc(shape - h, at)) / (2 * h)
    density = ((a - 1) * at.log() - at - math.lgamma(a)).exp()
    np.testing.assert_allclose(
        gamma_gradient(shape, at).numpy(), (-slope / density).numpy(), rtol=1e-6
    )


def test_gamma_goes_on_smoothly_where_the_expansion_begins() -> None:
    z = np.linspace(-6, 6, 25)
    result = []
    for a in (99_999.999, 100_000.001):
        x = a + z * math.sqrt(a) + (z * z - 1) / 3
        result.append(gamma_gradient(pc.tensor(a, dtype=pc.float64), pc.tensor(x)).numpy())
    np.testing.assert_allclose(result[0], result[1], rtol=1e-7)


def test_corners() -> None:
    result = gamma_gradient(pc.tensor([1.0, -1.0, 1.0, math.nan]), pc.tensor([0.0, 1.0, -1.0, 1.0]))
    np.testing.assert_array_equal(result.numpy(), [0, math.nan, math.nan, math.nan])
    one, two = pc.ones(4), pc.full((4,), 2.0)
    result = beta_gradient(pc.tensor([0.0, 1.5, math.nan, 1.0]), two, one).numpy()
    np.testing.assert_array_equal(result[:3], [0, math.nan, math.nan])
    assert math.isclose(result[3], 0.5, rel_tol=1e-6)  # x**2: -log(x) x / 2 / (1 - x) at 1


def test_shares_are_positive_and_sum_to_one() -> None:
    draw = binding.operator("dirichlet_sample")
    for dtype in (pc.float32, pc.float64):
        shares = draw(pc.full((1000, 4), 0.02, dtype=dtype)).numpy()
        assert (shares > 0).all()
        np.testing.assert_allclose(shares.sum(-1), 1, rtol=1e-6)
