"""Kernels that read halves where they lie: reductions, scans and normalizations of rows and columns
around every length at which they are cut, and conversions of long integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plait_core as pc

HALVES = (pc.float16, pc.bfloat16)
UNIT = {pc.float16: 2.0**-11, pc.bfloat16: 2.0**-8}  # the largest relative error of one rounding
FEW = (1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 65, 129, 255, 257)
MANY = (1023, 1024, 1025, 2047, 2049, 4097, 16383, 16385, 32769, 70001)
SHAPES = [(131, n) for n in FEW] + [(n, 131) for n in FEW]
SHAPES += [(5, n) for n in MANY] + [(n, k) for n in MANY for k in (3, 16, 19)]

Function = Callable[[Any], Any]
REDUCTIONS: dict[str, tuple[Function, Function]] = {
    "sum": (lambda x: x.sum(), np.sum),
    "sum of rows": (lambda x: x.sum(1), lambda x: x.sum(1)),
    "sum of columns": (lambda x: x.sum(0), lambda x: x.sum(0)),
    "mean of rows": (lambda x: x.mean(1), lambda x: x.mean(1)),
    "least of columns": (lambda x: x.amin(0), lambda x: x.min(0)),
    "largest": (lambda x: x.amax((0, 1)), np.max),
    "norm of rows": (lambda x: x.norm(dim=1), lambda x: np.sqrt((x * x).sum(1))),
}
SCANS: dict[str, tuple[Function, Function]] = {
    "rows": (lambda x: x.cumsum(1), lambda x: x.cumsum(1)),
    "columns": (lambda x: x.cumsum(0), lambda x: x.cumsum(0)),
}


def log_softmax(x: Any) -> Any:
    shifted = x - x.max(1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(1, keepdims=True))


def layer_norm(x: Any) -> Any:
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)


NORMALIZATIONS: dict[str, tuple[Function, Function]] = {
    "log_softmax": (lambda x: x.log_softmax(1), log_softmax),
    "layer_norm": (lambda x: pc.layer_norm(x, x.shape[1:]), layer_norm),
}


def values(shape: tuple[int, ...], dtype: pc.dtype) -> tuple[pc.Tensor, Any]:
    rng = np.random.default_rng(shape[0] * 100_003 + shape[1])
    t = pc.tensor(rng.uniform(0.03, 0.12, shape) * rng.choice([-1.0, 1.0, 1.0], shape)).to(dtype)
    return t, t.to(pc.float64).numpy()


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_at_every_cut(shape: tuple[int, int], dtype: pc.dtype) -> None:
    t, x = values(shape, dtype)
    for name, (ours, exact) in (REDUCTIONS | SCANS | NORMALIZATIONS).items():
        if shape[1] == 1 and name in NORMALIZATIONS:
            continue  # differences of a number and itself
        got, want = ours(t).to(pc.float64).numpy(), exact(x)
        size = 1.01 * UNIT[dtype] * np.abs(want)
        assert (np.abs(got - want) <= size + 2e-5 * (1 + np.abs(want))).all(), name


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("n", [5, 40, 300, 1030, 5000])
def test_nan_and_infinity(n: int, dtype: pc.dtype) -> None:
    for at in {0, 3, n // 2, n - 1}:
        x = np.ones((4, n))
        x[1, at], x[2, at] = np.nan, np.inf
        t = pc.tensor(x).to(dtype)
        for rows in (t.sum(1), t.T.contiguous().sum(0), t.amax(1), t.T.contiguous().amax(0)):
            assert np.isnan(rows[1].item()) and np.isposinf(rows[2].item())
            assert np.isfinite(rows[0].item()) and np.isfinite(rows[3].item())
        for made in (t.log_softmax(1), pc.layer_norm(t, (n,))):
            assert np.isnan(made[1].to(pc.float32).numpy()).all()
            assert np.isfinite(made[0].to(pc.float32).numpy()).all()


@pytest.mark.parametrize("dtype", HALVES)
def test_long_integers(dtype: pc.dtype) -> None:
    edges = [s * (1 << k) + d for k in range(40) for d in (-1, 0, 1) for s in (-1, 1)]
    for signed in (True, False):
        kept = [e for e in edges if signed or e >= 0]
        for some in (kept, [e for e in kept if abs(e) <= 1 << 24], [e for e in kept if e < 9]):
            x = np.array(some * 60, np.int64 if signed else np.uint64)
            got = pc.from_numpy(x).to(dtype).to(pc.float32).numpy()
            want = pc.tensor(x.astype(np.float64)).to(dtype).to(pc.float32).numpy()
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", HALVES)
def test_truth_of_every_half(dtype: pc.dtype) -> None:
    halves = pc.from_numpy(np.arange(1 << 16, dtype=np.uint16)).view(dtype)
    want = halves.to(pc.float32).numpy() != 0
    np.testing.assert_array_equal(halves.to(pc.bool).numpy(), want)
