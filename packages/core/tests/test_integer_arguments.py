"""Integers and bools given to every operator: the value that the same numbers have as float64, or
an error. An operator that is meant for floats must not compute with integers that wrap around, or
lose fractions, without a word.
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator
from plait_ops import specs
from plait_ops.samples import draw
from plait_ops.sampling import Sample
from plait_ops.spec import Operator

DTYPES = (
    *("bool", "uint8", "int8", "int16", "int32", "int64"),
    *("uint16", "uint32", "uint64"),
)

REFUSALS = (TypeError, ValueError, IndexError, RuntimeError, NotImplementedError)

# What integers mean elsewhere, too; the operator's documentation says it.
OWN_MEANING = {
    "diff": "of bools it is their exclusive or, as in NumPy and PyTorch",
    "pow": "a negative power of an integer is 0, 1 or -1",
    "floor_divide": "a division by zero gives 0",
    "remainder": "a division by zero gives 0",
    "fmod": "a division by zero gives 0",
    "resample": "images of uint8 are rounded, as in PyTorch",
    "index_reduce": "a mean loses its fraction, as in PyTorch",
    "scatter_reduce": "a mean loses its fraction, as in PyTorch",
}

SIGN_OF_ZERO = {"atan2", "arctan2", "rsqrt", "reciprocal", "signbit", "copysign"}
"""They tell 0.0 from -0.0, which integers do not have."""

WRAPS = {
    "l1_loss": "a difference of narrow or unsigned integers wraps around, as in PyTorch",
    "pairwise_distance": "a difference of narrow or unsigned integers wraps around, as in PyTorch",
}
NARROW = {dtype for dtype in DTYPES if dtype.startswith("u")} | {"int8"}


def public_operators() -> list[Operator]:
    return [
        spec
        for spec in specs.all()
        if not (spec.internal or spec.unpredictable)
        and not any(argument.writes for argument in spec.schema.arguments)
    ]


def whole(x: np.ndarray[Any, Any], dtype: str, largest: int) -> np.ndarray[Any, Any]:
    """Return floats as whole numbers that `dtype` holds, not all of them small."""
    numbers = np.round(np.nan_to_num(x.astype("float64"), nan=1.0, posinf=3.0, neginf=-3.0))
    numbers = numbers.clip(-3, 3) * (1 if largest < 9 else 29)
    if dtype == "bool":
        return (numbers > 0).astype("float64")
    return (np.abs(numbers) if dtype.startswith("u") else numbers) + 0.0  # no -0.0


def cast(sample: Sample, spec: Operator, dtype: str, largest: int, to: str) -> Sample:
    """Return a sample with its floating-point tensors as whole numbers of another dtype."""
    values = spec.schema.bind(sample.args, sample.kwargs)
    for argument in spec.schema.arguments:
        value = values[argument.name]
        numeric = argument.type in ("Scalar", "Tensor|Scalar")
        if numeric and isinstance(value, float) and np.isfinite(value):
            values[argument.name] = int(value)
    named = Sample((), values)
    return dataclasses.replace(named, tolerance=sample.tolerance).mapped(
        lambda x: whole(x, dtype, largest).astype(to) if x.dtype.kind == "f" else x.copy()
    )


def results(spec: Operator, sample: Sample) -> list[np.ndarray[Any, Any]]:
    call = sample.mapped(pc.from_numpy)
    result = operator(spec.name)(**call.kwargs)
    each = result if isinstance(result, (tuple, list)) else [result]
    return [np.asarray(x.detach().numpy()) for x in each]


def assert_value(got: np.ndarray[Any, Any], want: np.ndarray[Any, Any], text: str) -> None:
    assert got.shape == want.shape, text
    if got.dtype.kind in "iu":
        assert (want == np.round(want)).all(), f"a fraction was lost: {text}"
        exact = np.abs(want) < 2.0**53
        whole_numbers = np.where(exact, want, 0).astype("int64").astype(got.dtype)
        np.testing.assert_array_equal(np.where(exact, got, 0), whole_numbers, text)
    elif got.dtype.kind == "b":
        np.testing.assert_array_equal(got, want.astype("bool"), text)
    else:
        fits = np.abs(want) < 1e30  # of float32
        ours, theirs = np.where(fits, got, 0), np.where(fits, want, 0)
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4, err_msg=text)


def magnitudes(dtype: str) -> tuple[int, ...]:
    return (3, 100) if dtype in ("uint8", "int8", "int64") else (3,)


@pytest.mark.parametrize("spec", public_operators(), ids=lambda spec: spec.name)
def test_integers_have_the_value_of_floats_or_are_refused(spec: Operator) -> None:
    if spec.name in OWN_MEANING or spec.schema.base in SIGN_OF_ZERO:
        return
    for sample in draw(spec):
        kinds: set[str] = set()
        sample.mapped(lambda x, kinds=kinds: kinds.add(x.dtype.name))
        if "float32" not in kinds or kinds & {"complex64", "complex128"}:
            continue
        for dtype in DTYPES:
            if spec.name in WRAPS and dtype in NARROW:
                continue
            for largest in magnitudes(dtype):
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    try:
                        got = results(spec, cast(sample, spec, dtype, largest, dtype))
                    except REFUSALS:
                        continue
                    want = results(spec, cast(sample, spec, dtype, largest, "float64"))
                    for ours, theirs in zip(got, want, strict=True):
                        assert_value(ours, theirs, f"{spec.name} of {dtype}: {sample}")


def test_the_check_finds_overflows() -> None:
    """Products of int8 that wrap around, and shares that lose their fractions, are found."""
    with pytest.raises(AssertionError, match="not equal"):
        assert_value(np.array([100 * 100], "int64").astype("int8"), np.array([9999.0]), "")
    with pytest.raises(AssertionError, match="fraction"):
        assert_value(np.array([0], "int64"), np.array([0.5]), "")
