"""Reductions over an empty list of dimensions, and over None, beside torch's."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
import torch

import plait
from plait_ops import specs

REDUCTIONS = sorted(
    {
        spec.schema.base
        for spec in specs.all()
        if any(each.name == "dim" and each.type == "int[]" for each in spec.schema.arguments)
        and any(each.name == "keepdim" for each in spec.schema.arguments)
        and hasattr(torch, spec.schema.base)
    }
)
DTYPES = ("bool", "uint8", "int64", "float16", "bfloat16", "float32", "complex64")


def results(library: Any, name: str, dtype: str, shape: tuple[int, ...], extra: Any) -> Any:
    """Return arrays of complex numbers, with the names of their dtypes, or None for an error."""
    x = library.arange(6).reshape(2, 3) if len(shape) == 2 else library.tensor(1)
    x = (x > 3 if dtype == "bool" else x).to(getattr(library, dtype))
    try:
        result = getattr(library, name)(x, **extra)
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
        return None
    each = result if isinstance(result, (tuple, list)) else [result]
    return [(str(t.dtype).split(".")[-1], t.to(library.complex128).numpy()) for t in each]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_an_empty_list_of_dimensions(name: str) -> None:
    assert {"any", "all", "sum", "amax"} <= set(REDUCTIONS)
    cases = itertools.product(DTYPES, ((2, 3), ()), ((), [], None), ({}, {"keepdim": True}))
    for dtype, shape, dim, extra in cases:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = results(torch, name, dtype, shape, {"dim": dim, **extra})
            ours = results(plait, name, dtype, shape, {"dim": dim, **extra})
        if theirs is None or ours is None:
            continue  # which calls are refused is another test's
        for (kind, one), (expected, two) in zip(ours, theirs, strict=True):
            of_truth = name in ("any", "all") and dtype == "uint8"  # bool here
            assert kind == expected or of_truth, (dtype, shape, dim, extra)
            assert one.shape == two.shape, (dtype, shape, dim, extra)
            np.testing.assert_allclose(one, two, 1e-2 if dtype.endswith("16") else 1e-5)
