"""Reductions: every set of dimensions in every layout, accuracy of long sums, nan, ties."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plait_core as pc

RNG = np.random.default_rng(2)
SHAPES = [(1,), (5000,), (70_001,), (64, 10), (1000, 64), (64, 1000), (3, 5, 7), (8, 6, 24, 24)]
SHAPES += [(9001, 3), (4, 135, 7)]


def layouts(x: Any) -> Iterator[Any]:
    yield x
    yield x[::-1]
    yield np.broadcast_to(x[:1], x.shape)
    if x.ndim > 1:
        yield x.transpose()
        yield x[..., ::2]
        yield np.moveaxis(x, 1, 0)


def dimensions(ndim: int) -> Iterator[tuple[int, ...]]:
    for n in range(1, ndim + 1):
        yield from itertools.combinations(range(ndim), n)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float_reductions(shape: tuple[int, ...], dtype: Any) -> None:
    unit = float(np.finfo(dtype).eps)
    for x in layouts(RNG.standard_normal(shape).astype(dtype)):
        exact, t = x.astype(np.float64), pc.from_numpy(x)
        for dims in dimensions(x.ndim):
            scale = np.abs(exact).sum(dims)
            got = pc.sum(t, dims).numpy()
            # float64 results of strided input are summed one by one
            slack = 16 if dtype == np.float32 else x.size
            assert (np.abs(got - exact.sum(dims)) <= slack * unit * scale + 1e-300).all()
            n = x.size / max(scale.size, 1)
            got = pc.mean(t, dims).numpy()
            assert (np.abs(got - exact.mean(dims)) <= slack * unit * scale / n + 1e-300).all()
            np.testing.assert_array_equal(pc.amax(t, dims).numpy(), x.max(dims))
            np.testing.assert_array_equal(pc.amin(t, dims).numpy(), x.min(dims))
            if n > 1:
                want = exact.var(dims, ddof=1)
                np.testing.assert_allclose(pc.var(t, dims).numpy(), want, rtol=2e-5, atol=1e-12)
            if len(dims) == 1:
                (dim,) = dims
                np.testing.assert_array_equal(pc.argmax(t, dim).numpy(), x.argmax(dim))
                value, index = pc.min(t, dim)
                np.testing.assert_array_equal(value.numpy(), x.min(dim))
                np.testing.assert_array_equal(index.numpy(), x.argmin(dim))
                top = exact.max(dim)
                spread = np.exp(exact - np.expand_dims(top, dim)).sum(dim)
                got = pc.logsumexp(t, dim).numpy()
                np.testing.assert_allclose(got, top + np.log(spread), rtol=3e-6, atol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.bool_])
def test_integer_reductions(shape: tuple[int, ...], dtype: Any) -> None:
    for x in layouts(RNG.integers(0, 100, shape).astype(dtype)):
        t = pc.from_numpy(x)
        for dims in dimensions(x.ndim):
            np.testing.assert_array_equal(pc.sum(t, dims).numpy(), x.sum(dims, dtype=np.int64))
            np.testing.assert_array_equal(pc.amax(t, dims).numpy(), x.max(dims))
            np.testing.assert_array_equal(pc.all(t, dims).numpy(), x.all(dims))
            np.testing.assert_array_equal(pc.any(t > 98, dims).numpy(), (x > 98).any(dims))
        assert int(pc.argmax(t)) == x.argmax()
        for dim in range(x.ndim):
            np.testing.assert_array_equal(
                pc.cumsum(t, dim).numpy(), np.cumsum(x, dim, dtype=np.int64)
            )


@pytest.mark.parametrize("value", [0.1, 1e-3])
def test_long_sums_stay_accurate(value: float) -> None:
    x = pc.full((10_000_000,), value)
    want = float(np.float32(value)) * 1e7
    assert float(x.sum()) == pytest.approx(want, rel=1e-6)
    assert float(x.view(100_000, 100).sum(0)[7]) == pytest.approx(want / 100, rel=3e-6)
    assert float(x.mean()) == pytest.approx(float(np.float32(value)), rel=1e-6)


def test_variance_of_numbers_far_from_zero() -> None:
    x = (RNG.standard_normal(100_000) + 1e4).astype(np.float32)
    want = x.astype(np.float64).var(ddof=1)
    assert float(pc.var(pc.from_numpy(x))) == pytest.approx(want, rel=1e-4)


@pytest.mark.parametrize("n", [3, 40, 1000, 200_000])
def test_nan_wins(n: int) -> None:
    x = RNG.standard_normal(n).astype(np.float32)
    x[n // 2] = np.nan
    x[-1] = np.nan
    t = pc.from_numpy(x)
    for result in (t.max(), t.min(), pc.amax(t), t.sum(), t.mean()):
        assert np.isnan(float(result))
    assert int(t.argmax()) == int(t.argmin()) == n // 2
    wide = np.tile(x, (9, 1))
    assert np.isnan(pc.amax(pc.from_numpy(wide), 1).numpy()).all()
    assert np.isnan(pc.amax(pc.from_numpy(wide), 0).numpy()[n // 2])


@pytest.mark.parametrize("n", [5, 100, 150_000])
def test_the_first_of_equal_elements_counts(n: int) -> None:
    x = np.zeros(n, np.int32)
    x[n // 2 :] = 1
    assert int(pc.from_numpy(x).argmax()) == n // 2
    assert int(pc.from_numpy(1 - x).argmin()) == n // 2


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_scans(dtype: Any) -> None:
    x = RNG.integers(1, 3, (40, 30, 50)).astype(dtype)
    for dim in range(3):
        t = pc.from_numpy(x)
        np.testing.assert_array_equal(pc.cumsum(t, dim).numpy(), np.cumsum(x, dim))
        small = t[:3, :3, :3]
        want = np.cumprod(x[:3, :3, :3], dim)
        np.testing.assert_array_equal(pc.cumprod(small, dim).numpy(), want)


def test_empty_reductions() -> None:
    x = pc.zeros(0, 3)
    np.testing.assert_array_equal(x.sum(0).numpy(), np.zeros(3, np.float32))
    assert float(x.sum()) == 0
    assert float(pc.prod(x)) == 1
    assert np.isnan(float(x.mean()))
    assert not bool(x.bool().any())
    assert bool(x.bool().all())
    assert (pc.logsumexp(x, 0).numpy() == -np.inf).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [0, 40, 1030, 2049])
def test_extremes_among_infinities_of_both_signs(dtype: Any, index: int) -> None:
    """NaN wins wherever it is; infinities that cancel in a sum, and sums that overflow, do not."""
    x = np.full(2050, np.finfo(dtype).max, dtype)
    x[[7, 1100]], x[[9, 1200]] = np.inf, -np.inf
    assert float(pc.from_numpy(x).amax()) == np.inf and float(pc.from_numpy(x).amin()) == -np.inf
    x[index] = np.nan
    for rows in (x, np.tile(x, (3, 1))):
        t = pc.from_numpy(rows)
        assert np.isnan(t.amax(-1).numpy()).all() and np.isnan(t.amin(-1).numpy()).all()


@pytest.mark.parametrize("reduce", [pc.all, pc.any, lambda x, *dim: x.prod(*dim, dtype="bool")])
@pytest.mark.parametrize("dim", [(), (0,)])
def test_the_truth_of_nothing_is_a_bool(reduce: Any, dim: tuple[int, ...]) -> None:
    result = reduce(pc.zeros(0, 3), *dim)
    want = reduce is not pc.any
    assert set(result.reshape(-1).tolist()) == {want}
    assert set(result.numpy().view(np.uint8).reshape(-1).tolist()) == {int(want)}
    assert result.to("int64").max().item() == int(want)


WIDER: dict[str, Any] = {
    "sum": lambda x, dim, to: x.sum(dim, dtype=to),
    "mean": lambda x, dim, to: x.mean(dim, dtype=to),
    "nansum": lambda x, dim, to: pc.nansum(x, dim, dtype=to),
    "vector_norm": lambda x, dim, to: pc.linalg.vector_norm(x, 2, dim, dtype=to),
    "fro": lambda x, dim, to: pc.norm(x, "fro", dim, dtype=to),
    **{
        f"norm {p}": lambda x, dim, to, p=p: pc.norm(x, p, dim, dtype=to)
        for p in (0, 1, 2, 3, float("inf"))
    },
}


@pytest.mark.parametrize("dtype", [pc.float32, pc.float16, pc.bfloat16])
@pytest.mark.parametrize("name", WIDER)
def test_a_wider_dtype_of_the_result_is_that_of_the_sum(name: str, dtype: Any) -> None:
    pc.manual_seed(0)
    for shape in ((3, 7), (300, 4), (2, 40), (40, 2), (70, 70), (5000, 3), (3, 5000)):
        x = pc.randn(*shape).to(dtype)
        for dim in (None, 0, 1):
            result = WIDER[name](x, dim, pc.float64)
            expected = WIDER[name](x.to(pc.float64), dim, None)
            assert result.dtype is pc.float64
            np.testing.assert_allclose(result.numpy(), expected.numpy(), 1e-13, 1e-13)
