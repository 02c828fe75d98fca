"""Running sums, products and extremes, and recurrences, along any dimension."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from on_both import check, numbers

import plait_core as pc
from plait_abi import operator

REAL = ["float32", "float64", "float16", "bfloat16", "uint8", "int8", "uint16", "int16"]
REAL += ["uint32", "int32", "uint64", "int64"]
COMPLEX = ["complex64", "complex128"]
SHAPES = [(1,), (37,), (3, 300), (300, 3), (2, 65, 5), (70, 8), (100, 70), (4, 33, 40)]


@pytest.mark.parametrize("dtype", [*REAL, *COMPLEX, "bool"])
@pytest.mark.parametrize("shape", SHAPES)
def test_running_values_of_all_dtypes(shape: tuple[int, ...], dtype: str) -> None:
    x = numbers(shape, dtype)
    half = dtype in ("float16", "bfloat16")
    for dim in range(len(shape)):
        check(lambda t, dim=dim: pc.cumsum(t, dim), x)
        near_one = x if not dtype.startswith(("float", "bfloat", "complex")) else x / 8 + 1
        check(lambda t, dim=dim: pc.cumprod(t, dim), near_one, tolerance=3e-3 if half else None)
        if dtype in COMPLEX:
            continue
        check(lambda t, dim=dim: tuple(pc.cummax(t, dim)), x)
        check(lambda t, dim=dim: tuple(pc.cummin(t, dim)), x)


@pytest.mark.parametrize("n", [1, 16, 17, 255, 256, 257, 1024, 1025, 9001, 100_000])
def test_long_lines_are_cut_into_pieces(n: int) -> None:
    for shape in ((n,), (2, n), (n, 3)):
        x = numbers(shape, "float32", n)
        dim = 0 if len(shape) == 1 or shape[1] == 3 else 1
        check(lambda t, dim=dim: pc.cumsum(t, dim), x)
        check(lambda t, dim=dim: tuple(pc.cummin(t, dim)), x)
        check(lambda t, dim=dim: pc.logcumsumexp(t, dim), x)
        f = numbers(shape, "float32", n + 1) / 4
        for reverse in (False, True):
            check(
                lambda f, t, dim=dim, reverse=reverse: operator("linear_recurrence")(
                    f, t, dim, reverse
                ),
                *(f, x),
            )


def test_running_values_of_views_and_nothing() -> None:
    x = numbers((40, 33), "float32")
    check(lambda t: pc.cumsum(t.t(), 1), x)
    check(lambda t: pc.cumsum(t[::2, 1:], 0, dtype=pc.float64), x)
    check(lambda t: pc.cumprod(t[0, 0], 0), x)
    check(lambda t: tuple(pc.cummax(t.t(), 0)), x)
    check(lambda t: pc.cumsum(t, 0), pc.zeros((0, 3)))


def test_extremes_keep_nan_and_take_the_latest_of_equal_ones() -> None:
    values = np.zeros(500, np.float32)
    values[[100, 300]] = np.nan
    values[[5, 40]] = 1
    values[[7, 9]] = -1
    for x in (pc.tensor(values), pc.tensor(values[:99])):
        check(lambda t: tuple(pc.cummax(t, 0)), x)
        check(lambda t: tuple(pc.cummin(t, 0)), x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", *COMPLEX])
def test_logcumsumexp(dtype: str) -> None:
    x = numbers((33, 70), dtype)
    for dim in (0, 1):
        if dtype in COMPLEX:  # imaginary parts are angles

            def turned(t: Any, dim: int = dim) -> Any:
                return pc.logcumsumexp(t, dim).cpu().exp()

            got, want = turned(x.to("cuda")).numpy(), turned(x).numpy()
            np.testing.assert_allclose(got, want, rtol=1e-4 if dtype == "complex64" else 1e-10)
        else:
            check(lambda t, dim=dim: pc.logcumsumexp(t, dim), x)
            check(lambda t, dim=dim: pc.logcumsumexp(t, dim), x * 300)


def test_logcumsumexp_of_infinities() -> None:
    inf, nan = np.inf, np.nan
    rows = [[-inf, -inf, 1, 2], [-inf, inf, 1, -inf], [1, nan, inf, 0], [inf, -inf, nan, 1]]
    x = pc.tensor(np.array(rows, np.float32))
    check(lambda t: pc.logcumsumexp(t, 1), x)
    check(lambda t: pc.logcumsumexp(t.t(), 0), x)


@pytest.mark.parametrize("dtype", ["float32", "float64", *COMPLEX])
@pytest.mark.parametrize("shape", [(70,), (5, 300), (300, 5), (3, 40, 7)])
def test_recurrences(shape: tuple[int, ...], dtype: str) -> None:
    f, t = numbers(shape, dtype) / 3, numbers(shape, dtype, 1)
    recurrence = operator("linear_recurrence")
    for dim in range(len(shape)):
        for reverse in (False, True):
            check(lambda f, t, d=dim, r=reverse: recurrence(f, t, d, r), f, t)
    zero = pc.zeros((900,), dtype=pc.float64)
    check(lambda f, t: recurrence(f, t, 0, False), zero + 1e10, zero)


def test_filters() -> None:
    x = numbers((2, 3, 100), "float32")
    for order in (1, 2, 5):
        factors = numbers((3, order), "float32", order) / (4 * order)
        check(lambda x, f: operator("all_pole_filter")(x, f), x, factors)
