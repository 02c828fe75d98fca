"""Sorting, selection and what is found: large sizes, ties, nan, every dimension."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plait_core as pc

RNG = np.random.default_rng(7)
DTYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]


def draw(shape: tuple[int, ...], dtype: str) -> Any:
    """Numbers with ties; floats with nan, both zeros and both infinities."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        x = RNG.standard_normal(shape).round(2).astype(dtype)
        flat = x.reshape(-1)
        for i, value in enumerate((np.nan, -0.0, 0.0, np.inf, -np.inf)):
            flat[i::37] = value
        return x
    if dtype == "bool":
        return RNG.random(shape) < 0.5
    info = np.iinfo(dtype)
    x = RNG.integers(info.min, info.max, shape, dtype, endpoint=True)
    x[..., ::3] = x[..., :1]
    return x


def order(x: Any, dim: int, descending: bool) -> Any:
    """Indices of a stable sort in which nan is the largest."""
    if not descending:
        return np.argsort(x, dim, kind="stable")
    backwards = np.argsort(np.flip(x, dim), dim, kind="stable")
    return x.shape[dim] - 1 - np.flip(backwards, dim)


@pytest.mark.parametrize("dtype", [*DTYPES, "float32", "float64"])
@pytest.mark.parametrize("shape", [(10,), (3000,), (40, 25), (7, 130, 5)])
@pytest.mark.parametrize("descending", [False, True])
def test_sort(dtype: str, shape: tuple[int, ...], descending: bool) -> None:
    base = draw(shape, dtype)
    for x in (base, base[::-1], np.asfortranarray(base)):
        for dim in range(x.ndim):
            want = order(x, dim, descending)
            values, indices = pc.sort(pc.from_numpy(x), dim, descending)
            np.testing.assert_array_equal(indices.numpy(), want)
            np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, want, dim))


def test_large_sorts() -> None:
    x = draw((200_000,), "float32")
    np.testing.assert_array_equal(pc.argsort(pc.from_numpy(x)).numpy(), order(x, 0, False))
    y = draw((500, 300), "int64")
    np.testing.assert_array_equal(pc.sort(pc.from_numpy(y), 1)[1].numpy(), order(y, 1, False))


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
@pytest.mark.parametrize("k", [0, 1, 3, 10, 64, 65, 400])
@pytest.mark.parametrize("largest", [False, True])
def test_topk(dtype: str, k: int, largest: bool) -> None:
    x = draw((20, 400), dtype)
    want = order(x, 1, largest)[:, :k]
    values, indices = pc.topk(pc.from_numpy(x), k, 1, largest)
    np.testing.assert_array_equal(indices.numpy(), want)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, want, 1))
    _, indices = pc.topk(pc.from_numpy(x.T), k, 0, largest)
    np.testing.assert_array_equal(indices.numpy(), want.T)


@pytest.mark.parametrize("dtype", ["bool", "float32", "int64", "uint8"])
@pytest.mark.parametrize("shape", [(1000,), (3, 700), (20, 1, 30), (0, 4)])
def test_nonzero(dtype: str, shape: tuple[int, ...]) -> None:
    x = (RNG.random(shape) * (RNG.random(shape) < 0.3) * 9).astype(dtype)
    for view in (x, x[::-1], x[..., ::2]):
        want = np.stack(np.nonzero(view), 1)
        np.testing.assert_array_equal(pc.nonzero(pc.from_numpy(view)).numpy(), want)
    np.testing.assert_array_equal(pc.from_numpy(x)[pc.from_numpy(x != 0)].numpy(), x[x != 0])


def test_flips() -> None:
    for dtype in ("uint8", "int16", "float32", "float64", "complex128"):
        x = (RNG.standard_normal((60, 70)) * 9).astype(dtype)
        for dims in ((0,), (1,), (0, 1)):
            np.testing.assert_array_equal(pc.flip(pc.from_numpy(x), dims).numpy(), np.flip(x, dims))


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_scatter_and_gather(dim: int) -> None:
    x = RNG.standard_normal((20, 30, 40)).astype(np.float32)
    shape = [15, 25, 35]
    shape[dim] = 50
    at = RNG.integers(-x.shape[dim], x.shape[dim], shape)
    rows = np.indices(shape)
    rows[dim] = at
    source = RNG.standard_normal(shape).astype(np.float32)
    t, ti, ts = pc.from_numpy(x), pc.from_numpy(at), pc.from_numpy(source)
    np.testing.assert_array_equal(pc.gather(t, dim, ti).numpy(), x[tuple(rows)])
    want = x.copy()
    np.add.at(want, tuple(rows), source)
    np.testing.assert_allclose(pc.scatter_add(t, dim, ti, ts).numpy(), want, atol=1e-5)
    written = pc.scatter(t, dim, ti, ts).numpy()
    want = x.copy()
    for index in np.ndindex(*shape):  # in order: of several the last is kept
        target = tuple(axis[index] for axis in rows)
        want[target] = source[index]
    np.testing.assert_array_equal(written, want)
    np.testing.assert_array_equal(t.numpy(), x)


@pytest.mark.parametrize("n", [1, 7, 16, 64, 79, 80, 81, 300])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64", "uint8"])
def test_sorting_short_and_long_lines_is_stable(n: int, dtype: str) -> None:
    x = np.random.default_rng(n).integers(-5 if dtype != "uint8" else 0, 5, (6, n)).astype(dtype)
    values, indices = pc.from_numpy(x).sort(1)
    assert indices.numpy().tolist() == np.argsort(x, 1, kind="stable").tolist()
    assert values.numpy().tolist() == np.sort(x, 1).tolist()
    values, indices = pc.from_numpy(x).sort(1, descending=True)
    mirrored = np.argsort(-x.astype("float64"), 1, kind="stable")
    assert indices.numpy().tolist() == mirrored.tolist()


@pytest.mark.parametrize("n", [31, 32, 33, 1024, 1061])
def test_extremes_find_nan_wherever_it_is(n: int) -> None:
    for at in {0, 7, 8, 31, n // 2, n - 1} & set(range(n)):
        x = np.arange(2 * n, dtype="float32").reshape(2, n)
        x[1, at] = np.nan
        for name, want in (("amax", n - 1.0), ("amin", 0.0)):
            first, second = getattr(pc.from_numpy(x), name)(1).tolist()
            assert first == want
            assert np.isnan(second)
