"""Matrix products: every layout, long inner sizes, integers, no BLAS library at all."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator

RNG = np.random.default_rng(4)
SIZES = [(1, 1, 1), (2, 3, 4), (1, 7, 5), (5, 7, 1), (33, 70, 20), (100, 130, 90), (6, 20_000, 5)]
DTYPES = [np.float32, np.float64, np.int64, np.int8]


def draw(shape: tuple[int, ...], dtype: Any) -> Any:
    if np.dtype(dtype).kind == "f":
        return RNG.standard_normal(shape).astype(dtype)
    return RNG.integers(-5, 6, shape).astype(dtype)


def layouts(m: int, n: int, dtype: Any) -> Iterator[Any]:
    yield draw((m, n), dtype)
    yield draw((n, m), dtype).T
    yield draw((2 * m, n + 3), dtype)[::2, :n]
    yield draw((m, 2 * n), dtype)[:, ::2]
    yield draw((m, n), dtype)[::-1]
    yield np.broadcast_to(draw((1, n), dtype), (m, n))
    yield np.broadcast_to(draw((m, 1), dtype), (m, n))


def product(a: Any, b: Any) -> Any:
    """``a @ b``, more exactly: NumPy sums strided operands one by one in some releases."""
    if a.dtype.kind != "f":
        return a @ b
    wide = np.float64 if a.dtype == np.float32 else np.longdouble
    return (a.astype(wide) @ b.astype(wide)).astype(a.dtype)


def check(got: Any, want: Any, k: int) -> None:
    if want.dtype.kind != "f":
        np.testing.assert_array_equal(got.numpy(), want)
        return
    unit = float(np.finfo(want.dtype).eps)
    # the sum of a repeated term is rounded to one side for many terms: OpenBLAS's for AVX-512 are
    # off by 64 units for 20,000
    np.testing.assert_allclose(
        got.numpy(), want, rtol=(40 + k**0.5) * unit, atol=20 * unit * (k + 1) ** 0.5 * 4
    )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_layouts(size: tuple[int, int, int], dtype: Any) -> None:
    m, k, n = size
    if np.dtype(dtype).kind != "f" and m * k * n > 10**6:
        k = 700
    for a in layouts(m, k, dtype):
        for b in layouts(k, n, dtype):
            check(pc.mm(pc.from_numpy(a), pc.from_numpy(b)), product(a, b), k)
        x, w, v = pc.from_numpy(a), draw((n, k), dtype), draw((2 * k,), dtype)[::-2]
        check(pc.mv(x, pc.from_numpy(v)), product(a, v), k)
        if np.dtype(dtype).kind == "f":
            bias = draw((n,), dtype)
            got = operator("linear")(x, pc.from_numpy(w), pc.from_numpy(bias))
            check(got, product(a, w.T) + bias, k)
            check(operator("linear")(x, pc.from_numpy(w)), product(a, w.T), k)
        self = draw((m, 1), dtype)
        got = pc.addmm(pc.from_numpy(self), x, pc.from_numpy(w.T), beta=2, alpha=3)
        check(got, (2 * self + 3 * product(a, w.T)).astype(dtype), 9 * k)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_leading_dimensions_of_linear(dtype: Any) -> None:
    x, w = draw((3, 4, 5, 7), dtype), draw((6, 7), dtype)
    for order in ((0, 1, 2, 3), (1, 0, 2, 3), (2, 1, 0, 3)):
        moved = x.transpose(order)
        check(operator("linear")(pc.from_numpy(moved), pc.from_numpy(w)), moved @ w.T, 7)
    short = draw((6, 5), dtype)
    moved = x.transpose(3, 0, 1, 2)
    check(operator("linear")(pc.from_numpy(moved), pc.from_numpy(short)), moved @ short.T, 5)


@pytest.mark.parametrize("batch", [0, 1, 3, 40])
@pytest.mark.parametrize(
    "size", [(3, 4, 5), (1, 9, 1), (70, 60, 50), (2, 0, 3), (9, 7, 2), (33, 5, 7), (12, 9, 11)]
)
def test_batches(batch: int, size: tuple[int, int, int]) -> None:
    m, k, n = size
    for dtype in (np.float32, np.int32):
        a, b = draw((batch, m, k), dtype), draw((batch, n, k), dtype).transpose(0, 2, 1)
        check(pc.bmm(pc.from_numpy(a), pc.from_numpy(b)), a @ b, k)
        moved = draw((k, m, batch), dtype).transpose(2, 1, 0)
        check(pc.bmm(pc.from_numpy(moved), pc.from_numpy(b)), moved @ b, k)


def test_dot() -> None:
    for dtype in (np.float64, np.int64):
        a, b = draw((1000,), dtype), draw((2000,), dtype)[::2]
        check(pc.dot(pc.from_numpy(a), pc.from_numpy(b)), np.asarray(a @ b), 1000)
    assert float(pc.dot(pc.zeros(0), pc.zeros(0))) == 0


def test_nan_in_terms_with_the_factor_zero() -> None:
    bad = pc.full((3, 3), float("nan"))
    got = pc.addmm(bad, pc.ones(3, 2), pc.ones(2, 3), beta=0)
    np.testing.assert_array_equal(got.numpy(), np.full((3, 3), 2, np.float32))


def test_without_a_blas_library() -> None:
    code = """
import numpy as np
import plait_core as pc
rng = np.random.default_rng(0)
for dtype in (np.float32, np.float64):
    for m, k, n in ((3, 4, 5), (130, 300, 70), (1, 50, 9), (9, 50, 1), (4, 9000, 4)):
        a = rng.standard_normal((m, k)).astype(dtype)
        b = rng.standard_normal((n, k)).astype(dtype).T
        got = pc.mm(pc.from_numpy(a), pc.from_numpy(b)).numpy()
        assert np.allclose(got, a @ b, rtol=1e-4, atol=1e-3), (dtype, m, k, n)
x = rng.standard_normal((2, 3, 9, 9)).astype(np.float32)
w = rng.standard_normal((4, 3, 3, 3)).astype(np.float32)
windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
want = np.einsum("nchwij,ocij->nohw", windows, w)
assert np.allclose(pc.conv2d(pc.from_numpy(x), pc.from_numpy(w)).numpy(), want, atol=1e-4)
"""
    environment = {**os.environ, "PLAIT_BLAS_LIBRARY": "none"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=240)
