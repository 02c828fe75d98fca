"""unique and unique_consecutive against NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import plait_core as pc


def arrays() -> list[Any]:
    rng = np.random.default_rng(0)
    return [
        rng.integers(-3, 3, (5, 6)),
        rng.integers(0, 2, (4, 3, 2)).astype("uint8"),
        rng.integers(0, 2, 9) > 0,
        rng.integers(-2, 2, (6, 4)).astype("float32")[::2, ::-1],
        rng.random(1000).round(2),
        np.zeros((0, 3), "int32"),
        np.array(5.0),
    ]


@pytest.mark.parametrize("array", arrays(), ids=lambda a: f"{a.dtype}{a.shape}")
@pytest.mark.parametrize(
    ("inverse", "counts"), [*itertools.product((False, True), (False, True))], ids=str
)
def test_elements(array: Any, inverse: bool, counts: bool) -> None:
    flags: Any = {"return_inverse": inverse, "return_counts": counts}
    want = np.unique(array, **flags)
    got = pc.unique(pc.tensor(array), **flags)
    expected = list(want) if isinstance(want, tuple) else [want]
    results = list(got) if isinstance(got, tuple) else [got]
    assert len(results) == len(expected)
    if inverse:
        assert results[1].shape == array.shape
    for x, y in zip(results, expected, strict=True):
        np.testing.assert_array_equal(x.numpy(), y.reshape(x.shape))
        assert str(x.dtype).endswith(str(y.dtype))


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_slices(dim: int) -> None:
    rng = np.random.default_rng(dim + 5)
    for shape in ((9, 2), (3, 4, 2), (2, 7)):
        array = rng.integers(0, 2, shape)
        want = np.unique(array, return_inverse=True, return_counts=True, axis=dim)
        got = pc.tensor(array).unique(return_inverse=True, return_counts=True, dim=dim)
        for x, y in zip(got, want, strict=True):
            np.testing.assert_array_equal(x.numpy(), y.reshape(x.shape))


def test_every_nan_is_its_own() -> None:
    x = pc.tensor([float("nan"), 1.0, float("nan"), 1.0])
    values, counts = pc.unique(x, return_counts=True)
    assert counts.tolist() == [2, 1, 1]
    assert values[0].item() == 1


def consecutive(array: Any) -> tuple[list[Any], list[int], list[int]]:
    values: list[Any] = []
    inverse: list[int] = []
    counts: list[int] = []
    for item in array.reshape(-1).tolist():
        if not values or item != values[-1]:
            values.append(item)
            counts.append(0)
        counts[-1] += 1
        inverse.append(len(values) - 1)
    return values, inverse, counts


@pytest.mark.parametrize("array", arrays(), ids=lambda a: f"{a.dtype}{a.shape}")
def test_consecutive(array: Any) -> None:
    values, inverse, counts = consecutive(array)
    got = pc.tensor(array).unique_consecutive(True, True)
    assert got[0].tolist() == values
    assert got[1].shape == array.shape
    assert got[1].reshape(-1).tolist() == inverse
    assert got[2].tolist() == counts
    assert pc.unique_consecutive(pc.tensor(array)).tolist() == values


def test_consecutive_slices() -> None:
    x = pc.tensor([[1, 1, 2], [0, 0, 5]])
    values, inverse, counts = pc.unique_consecutive(
        x, return_inverse=True, return_counts=True, dim=1
    )
    assert values.tolist() == [[1, 2], [0, 5]]
    assert inverse.tolist() == [0, 0, 1]
    assert counts.tolist() == [2, 1]


def test_errors() -> None:
    with pytest.raises(IndexError, match=r"unique: `dim` must be in \[-2, 1\].*\(2, 3\).*2"):
        pc.unique(pc.zeros(2, 3), dim=2)
    with pytest.raises(TypeError, match="unique_consecutive: `input` must be a Tensor, got list"):
        pc.unique_consecutive([1, 2])  # type: ignore[arg-type]
    with pytest.raises(pc.DTypeError, match=r"sort.*complex64"):
        pc.unique(pc.zeros(2, dtype=pc.complex64))
