"""Softmax, layer normalisation and batch normalisation, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from on_both import check, numbers

import plait_core as pc
from plait_abi import operator

FLOATING = ["float32", "float64", "float16", "bfloat16"]
SIZES = [1, 2, 5, 31, 32, 33, 255, 256, 257, 1025, 4096, 4100, 9001]


def internal(name: str) -> Callable[..., Any]:
    """Return an operator that no module shows."""
    return operator(name)


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("n", SIZES)
def test_softmax_of_rows_of_any_length(n: int, dtype: str) -> None:
    x = numbers((3, n), dtype, n)
    check(lambda t: pc.softmax(t, 1), x)
    check(lambda t: pc.log_softmax(t, 1), x)
    g = numbers((3, n), dtype, n + 1)
    check(lambda t, g: internal("softmax_backward")(g, t, 1), pc.softmax(x, 1), g)
    check(lambda t, g: internal("log_softmax_backward")(g, t, 1), pc.log_softmax(x, 1), g)


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("shape", [(5, 3), (300, 33), (4, 7, 50), (2, 1000, 3), (1, 9, 70)])
def test_softmax_along_other_dimensions(shape: tuple[int, ...], dtype: str) -> None:
    x, g = numbers(shape, dtype), numbers(shape, dtype, 1)
    for dim in range(len(shape) - 1):
        check(lambda t, dim=dim: pc.softmax(t, dim), x)
        check(lambda t, dim=dim: pc.log_softmax(t, dim), x)
        for name in ("softmax", "log_softmax"):
            y = getattr(pc, name)(x, dim)
            backward = internal(f"{name}_backward")
            check(lambda t, g, dim=dim, backward=backward: backward(g, t, dim), y, g)


def test_softmax_that_no_shared_memory_holds() -> None:
    x = numbers((2, 70_000), "float32")
    check(lambda t: pc.softmax(t, 1), x)
    check(lambda t: pc.log_softmax(t[:, 1:], 1), x)


def test_softmax_of_views_scalars_and_nothing() -> None:
    x = numbers((40, 33), "float32")
    check(lambda t: pc.softmax(t.t(), 1), x)
    check(lambda t: pc.softmax(t[::2, 1:], -1), x)
    check(lambda t: pc.softmax(t[0, 0], 0), x)
    check(lambda t: pc.softmax(t, 1), pc.zeros((0, 3)))
    check(lambda t: pc.softmax(t, 1), pc.zeros((3, 0)))
    check(lambda t: pc.softmax(t, 1, dtype=pc.float64), x)


def test_softmax_of_infinities_and_nan() -> None:
    inf, nan = np.inf, np.nan
    rows = [[-inf, -inf, -inf], [-inf, 1, 2], [nan, 1, 2], [1000, 1000, -1000], [-inf, nan, 1]]
    x = pc.tensor(np.array(rows, np.float32))
    for call in (pc.softmax, pc.log_softmax):
        check(lambda t, call=call: call(t, 1), x)
        check(lambda t, call=call: call(t.t(), 0), x)
