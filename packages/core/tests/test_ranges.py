"""Reductions, norms and normalisations of numbers as small and as large as a dtype holds them.

Every operator that is defined in one of the folders below is called with its own samples, scaled
over the range of float16, bfloat16 and float32. The result is that of float64, rounded to the
dtype: finite wherever that is finite.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import PlaitError, operator
from plait_ops import specs
from plait_ops.samples import draw
from plait_ops.sampling import Sample
from plait_ops.spec import Operator

FAMILIES = ("reduction/", "normalization/", "linalg/distances", "linalg/matrix_norms")
SQUARES_FIT = {
    "float16": (1e-6, 1e-4, 1e-2, 1.0, 1e2, 1e4),
    "bfloat16": (1e-15, 1e-5, 1.0, 1e5, 1e15),
    "float32": (1e-15, 1e-5, 1.0, 1e5, 1e15),
}
# of the result's largest element: float32 has the errors of its own sums
TOLERANCE = {"float16": 2.0**-9, "bfloat16": 2.0**-6, "float32": 2.0**-17}
LARGEST = {"float16": 65504.0, "bfloat16": 3.38953139e38, "float32": 3.40282347e38}
SMALLEST = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149}
# What adds a number to its input, so that the bins of large numbers have no width.
NOT_SCALED = {"histc"}
# Defined as the numbers of operators one after the other, each of which rounds.
ROUNDED_BETWEEN = {"batch_norm_activation"}
# Made of products of numbers, which float32 doesn't hold for numbers of 1e30, as in PyTorch.
PRODUCTS = {"corrcoef", "batch_norm", "cov"}
# Matrices of a few bits may be singular, and their condition number is any large number.
CONDITIONS = {"linalg_cond", "linalg_cond.name"}

OPERATORS = [
    spec
    for spec in specs.all()
    if spec.family.startswith(FAMILIES)
    and not (spec.unpredictable or spec.internal or spec.name in NOT_SCALED | ROUNDED_BETWEEN)
]


def scaled(sample: Sample, dtype: str, scale: float) -> tuple[Sample, Sample]:
    """Return the call with positive arrays times `scale` in `dtype`, and the same numbers in
    float64.
    """
    references: list[pc.Tensor] = []

    def narrow(x: np.ndarray[Any, Any]) -> pc.Tensor:
        if x.dtype != np.float32:
            return pc.from_numpy(x.copy())
        result = pc.from_numpy(np.abs(x).astype("float64") * scale).to(getattr(pc, dtype))
        references.append(result.to(pc.float64))
        return result

    def wide(x: np.ndarray[Any, Any]) -> pc.Tensor:
        return references.pop(0) if x.dtype == np.float32 else pc.from_numpy(x.copy())

    return sample.mapped(narrow), sample.mapped(wide)


def samples(spec: Operator) -> list[Sample]:
    """Return the samples whose floating arrays are all float32."""
    results = []
    for sample in draw(spec):
        kinds: set[str] = set()

        def note(x: np.ndarray[Any, Any], kinds: set[str] = kinds) -> np.ndarray[Any, Any]:
            kinds.add(x.dtype.name)
            return x

        sample.mapped(note)
        floats = {kind for kind in kinds if kind[0] in "fc"}
        if floats == {"float32"} and "dtype" not in sample.kwargs:
            results.append(sample)
    return results


def as_list(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def assert_rounded(got: pc.Tensor, exact: pc.Tensor, dtype: str, call: Sample) -> None:
    if exact.dtype is not pc.float64:  # counts and indices
        if call.tolerance <= 1:
            assert pc.equal(got, exact), call
        return
    want, result = exact.numpy().ravel(), got.to(pc.float64).numpy().ravel()
    with np.errstate(all="ignore"):
        size = np.abs(want[np.abs(want) <= LARGEST[dtype]]).max(initial=0)
        bound = TOLERANCE[dtype] * call.tolerance * size + 4 * SMALLEST[dtype]
        close = (np.abs(result - want) <= bound) | (np.isnan(result) & np.isnan(want))
        fits = np.abs(want) < LARGEST[dtype] * (1 - TOLERANCE[dtype])
        over = ~fits & ~np.isfinite(result)
    assert (close | over).all(), (call, result, want)


@pytest.mark.parametrize("dtype", list(SQUARES_FIT))
@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
def test_results_fit_wherever_the_exact_one_does(spec: Operator, dtype: str) -> None:
    scales = SQUARES_FIT[dtype]
    if dtype != "float16":
        scales = (1e-5, 1.0, 1e5) if spec.name in PRODUCTS else (1e-30, *scales, 1e30)
    elif spec.name in CONDITIONS:
        scales = scales[1:]
    for sample in samples(spec):
        for scale in scales:
            call, reference = scaled(sample, dtype, scale)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    exact = as_list(operator(spec.name)(*reference.args, **reference.kwargs))
                except (ValueError, PlaitError):
                    continue  # numbers of another range are an error
            result = as_list(operator(spec.name)(*call.args, **call.kwargs))
            for got, want in zip(result, exact, strict=True):
                assert_rounded(got, want, dtype, call)


@pytest.mark.parametrize("p", [0.5, 1, 2, 3, float("inf"), -float("inf"), -2, 0])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(3000,), (7, 300), (300, 7), (40, 40)])
def test_norms_of_every_order(p: float, dtype: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    real = {"float16": "float16", "bfloat16": "bfloat16"}.get(dtype, "float32")
    for scale in SQUARES_FIT[real]:
        values = (rng.random(shape) + 0.5) * scale
        x = pc.from_numpy(values).to(getattr(pc, dtype))
        magnitudes = x.to(pc.complex128 if dtype == "complex64" else pc.float64).abs().numpy()
        for dim in ((0,), (len(shape) - 1,), tuple(range(len(shape)))):
            want = norm_of(magnitudes, p, dim)
            got = pc.norm(x, p, dim).to(pc.float64).numpy()
            top = LARGEST[real]
            tolerance = {"float16": 1e-3, "bfloat16": 8e-3}.get(dtype, 1e-5)
            small = 4 * SMALLEST[real] if real == "float16" else 0
            fits = want < top * (1 - tolerance)
            np.testing.assert_allclose(got[fits], want[fits], rtol=tolerance, atol=small)
            assert (~np.isfinite(got[want > top * (1 + tolerance)])).all()


def norm_of(x: np.ndarray[Any, Any], p: float, dim: tuple[int, ...]) -> np.ndarray[Any, Any]:
    if p == float("inf"):
        return np.asarray(x.max(axis=dim))
    if p == -float("inf"):
        return np.asarray(x.min(axis=dim))
    if p == 0:
        return np.asarray((x != 0).sum(axis=dim), dtype="float64")
    top = x.max() or 1.0
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(top * ((x / top) ** p).sum(axis=dim) ** (1.0 / p))


def test_squares_of_float64_do_not_overflow() -> None:
    for scale in (1e-300, 1e-200, 1.0, 1e200, 1e300):
        x = pc.tensor([[3.0, 4.0], [6.0, 8.0]], dtype=pc.float64) * scale
        np.testing.assert_allclose(pc.norm(x, 2, 1).numpy(), [5 * scale, 10 * scale], rtol=1e-15)
        z = pc.complex(x, x)
        want = np.sqrt(2) * np.asarray([5 * scale, 10 * scale])
        np.testing.assert_allclose(pc.norm(z, 2, 1).numpy(), want, rtol=1e-15)
    strange = pc.tensor([[float("nan"), 1e300], [float("inf"), 1e300], [0.0, 0.0]])
    got = pc.norm(strange.to(pc.float64), 2, 1).tolist()
    assert got[0] != got[0] and got[1:] == [float("inf"), 0.0]


def test_more_than_a_half_counts() -> None:
    """Ranks and counts beyond 2048, which float16 does not hold."""
    x = pc.arange(5000).to(pc.float32) / 5000
    half = x.to(pc.float16)
    assert abs(pc.quantile(half, 0.75).item() - 0.75) < 1e-3
    assert abs(pc.nanquantile(half, 0.75).item() - 0.75) < 1e-3
    assert pc.nanmean(pc.ones(5000, dtype=pc.float16)).item() == 1
