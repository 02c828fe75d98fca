"""Index vectors with runs of consecutive indices, which kernels move as slices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plait_core as pc

RNG = np.random.default_rng(3)
SHAPES = [(5, 40), (3, 40, 5), (40, 7), (300, 40, 2), (2, 20000)]


def vectors(n: int) -> list[Any]:
    """Indices: all, reflected, rolled, repeated, negative, none, at random."""
    whole = np.arange(n)
    return [
        whole,
        np.pad(whole, (3, 2), mode="reflect"),
        np.roll(whole, 7),
        np.concatenate([whole[5:15], whole[:12], whole[5:15]]),
        whole - n,
        whole[:0],
        RNG.integers(-n, n, 2 * n),
    ]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["bool", "float16", "float32", "complex128"])
def test_index_select(shape: tuple[int, ...], dtype: str) -> None:
    x = (RNG.standard_normal(shape) * 50).astype(dtype)
    dim = 0 if shape[0] == 40 else 1
    for index in vectors(shape[dim]):
        got = pc.from_numpy(x).index_select(dim, pc.from_numpy(index))
        np.testing.assert_array_equal(got.numpy(), x.take(index, dim))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["uint8", "float32", "complex64"])
def test_index_add(shape: tuple[int, ...], dtype: str) -> None:
    x = RNG.integers(0, 9, shape).astype(dtype)  # sums of whole numbers are exact
    dim = 0 if shape[0] == 40 else 1
    for index in vectors(shape[dim]):
        source = RNG.integers(0, 9, np.shape(x.take(index, dim))).astype(dtype)
        want = x.copy()
        np.add.at(want, (slice(None),) * dim + (index,), 2 * source)
        got = pc.from_numpy(x).index_add(dim, pc.from_numpy(index), pc.from_numpy(source), alpha=2)
        np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("bad", [-41, 40, 2**63 - 1, -(2**63)])
def test_an_index_out_of_range(bad: int) -> None:
    index = np.arange(40)
    index[17] = bad
    for view in (index, index.repeat(2)[::2]):
        with pytest.raises(IndexError, match=str(bad)):
            pc.ones(3, 40).index_select(1, pc.from_numpy(view))
        with pytest.raises(IndexError, match=str(bad)):
            pc.ones(3, 40).gather(1, pc.from_numpy(view).expand(3, 40))


@pytest.mark.parametrize("rows", [3, 2000])
def test_joined_rows(rows: int) -> None:
    for dtype in ("bool", "float32", "complex128"):
        for widths in ((1, 16, 2), (300, 0, 5), (7,), (9000, 1)):
            if rows * sum(widths) > 10**6:
                continue
            parts = [(RNG.standard_normal((rows, n)) * 50).astype(dtype) for n in widths]
            got = pc.cat([pc.from_numpy(part) for part in parts], 1).numpy()
            np.testing.assert_array_equal(got, np.concatenate(parts, 1))


@pytest.mark.parametrize("shape", [(5, 7), (7, 5), (2, 3, 4), (300, 200), (1, 9), (0, 3), (3, 0)])
def test_triangles(shape: tuple[int, ...]) -> None:
    x = RNG.standard_normal(shape).astype("float32")
    for array in (x, np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)):
        for diagonal in (-(2**63), -300, -8, -2, 0, 1, 5, 300, 2**63 - 1):
            k = max(min(diagonal, 1000), -1000)
            low, high = pc.from_numpy(array).tril(diagonal), pc.from_numpy(array).triu(diagonal)
            np.testing.assert_array_equal(low.numpy(), np.tril(array, k))
            np.testing.assert_array_equal(high.numpy(), np.triu(array, k))
