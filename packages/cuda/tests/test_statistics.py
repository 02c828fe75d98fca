"""Variances, norms and logarithms of sums of exponentials."""

from __future__ import annotations

import numpy as np
import pytest
from on_both import check, numbers

import plait_core as pc

INEXACT = ["float32", "float64", "float16", "bfloat16", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", INEXACT)
def test_variance_and_mean(dtype: str) -> None:
    x = numbers((37, 65), dtype)
    for dim in (0, 1, [0, 1]):
        check(lambda t, dim=dim: pc.var(t, dim), x)
        check(lambda t, dim=dim: pc.std(t[:, ::3], dim, correction=0), x)
        check(lambda t, dim=dim: tuple(pc.var_mean(t, dim, keepdim=True)), x)
        check(lambda t, dim=dim: tuple(pc.std_mean(t.t(), dim)), x)


def test_the_mean_of_one_infinity_and_finite_numbers() -> None:
    for n in (2, 33, 700, 20_000):
        for at in (0, n // 2, n - 1):
            x = numbers((n,), "float32").numpy().copy()
            x[at] = np.inf
            mean = pc.var_mean(pc.tensor(x).to("cuda"))[1]
            assert float(mean) == np.inf, (n, at)


@pytest.mark.parametrize("n", [1, 2, 33, 256, 1025, 40_000])
def test_variance_far_from_zero(n: int) -> None:
    x = pc.tensor(np.random.default_rng(n).normal(size=(3, n)) + 1e6)
    check(lambda t: tuple(pc.var_mean(t, 1, correction=0)), x, tolerance=1e-10)
    check(lambda t: tuple(pc.var_mean(t, correction=0)), x, tolerance=1e-10)
    y = pc.tensor((np.random.default_rng(n).normal(size=(n, 3)) + 100).astype(np.float32))
    check(lambda t: tuple(pc.var_mean(t, 0, correction=0)), y, tolerance=2e-5)


def test_variance_of_large_and_few_numbers() -> None:
    check(lambda t: pc.var(t, 1), pc.tensor(np.full((2, 50), 1e19, np.float32)))
    check(lambda t: pc.std(t, 1), numbers((2, 70), "float32") * 1e15)
    check(lambda t: pc.var(t, 0), pc.ones((1, 4)))
    check(lambda t: tuple(pc.var_mean(t, 0)), pc.ones((0, 4)))
    special = pc.tensor([[1.0, np.inf, 2.0], [np.nan, 1.0, 2.0], [1.0, 1.0, 1.0]])
    check(lambda t: pc.var(t, 1), special)


@pytest.mark.parametrize("dtype", INEXACT)
@pytest.mark.parametrize("p", [0, 1, 2, np.inf, -np.inf])
def test_norms(dtype: str, p: float) -> None:
    x = numbers((37, 65), dtype)
    for dim in (0, 1, [0, 1]):
        check(lambda t, dim=dim: pc.norm(t, p, dim), x)
        check(lambda t, dim=dim: pc.norm(t.t(), p, dim, keepdim=True), x)
    check(
        lambda t: pc.norm(t, p),
        numbers((30_001,), dtype),
        tolerance=1e-5 if "64" in dtype else None,
    )


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e-160, 1.0, 1e160, 1e300])
def test_norms_of_numbers_whose_squares_do_not_fit(scale: float) -> None:
    x = pc.tensor(np.random.default_rng(0).normal(size=(3, 300)) * scale)
    want = np.array([np.linalg.norm(row / scale) * scale for row in x.numpy()])
    got = pc.norm(x.to("cuda"), 2, 1).cpu().numpy()
    np.testing.assert_allclose(got, want, rtol=1e-12 if scale > 1e-300 else 1e-2)
    y = pc.tensor([[scale, 1.0], [np.inf, scale], [np.nan, scale], [np.nan, np.inf]])
    check(lambda t: pc.norm(t, 2, 1), pc.tensor(y.numpy()))


def test_norm_in_a_wider_dtype() -> None:
    check(lambda t: pc.norm(t, 2, 1, dtype=pc.float64), numbers((4, 90), "float32"))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_logsumexp(dtype: str) -> None:
    x = numbers((37, 65), dtype)
    for dim in ([0], [1], [0, 1]):
        check(lambda t, dim=dim: pc.logsumexp(t, dim), x)
        check(lambda t, dim=dim: pc.logsumexp(t[:, ::2], dim, True), x)
    check(lambda t: pc.logsumexp(t, [0]), numbers((20_011,), dtype))


def test_logsumexp_of_infinities_and_large_numbers() -> None:
    inf, nan = np.inf, np.nan
    rows = [[-inf, -inf], [inf, 1], [inf, -inf], [nan, inf], [nan, -inf], [1000, 1000], [-inf, 3]]
    x = pc.tensor(np.array(rows, np.float32))
    check(lambda t: pc.logsumexp(t, [1]), x)
    check(lambda t: pc.logsumexp(t.t(), [0]), x)
    check(lambda t: pc.logsumexp(t, [1]), pc.zeros((3, 0)))
