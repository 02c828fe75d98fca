"""Gathering, scattering, scans and searches large enough that threads share them, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plait_core as pc

RNG = np.random.default_rng(0)
WIDE = RNG.random((300, 400)).astype("float32")
LAYOUTS: dict[str, Any] = {
    "dense": lambda x: x,
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "backwards": lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
}


def same(got: Any, want: Any, tolerance: float = 0.0) -> None:
    np.testing.assert_allclose(got.numpy(), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dim", [0, 1])
def test_gather_and_scatter(layout: str, dim: int) -> None:
    x = LAYOUTS[layout](WIDE)
    index = RNG.integers(-x.shape[dim], x.shape[dim], (300, 400))
    indices = LAYOUTS[layout](index)
    t, at = pc.from_numpy(x), pc.from_numpy(indices)
    same(pc.gather(t, dim, at), np.take_along_axis(x, index, dim))
    order = np.argsort(RNG.random((300, 400)), dim)
    want = np.zeros_like(WIDE)
    np.put_along_axis(want, order, x, dim)
    same(pc.zeros(300, 400).scatter(dim, pc.tensor(order), t), want)
    where: list[Any] = list(np.indices(index.shape))
    where[dim] = index
    total = np.zeros(WIDE.shape)
    np.add.at(total, tuple(where), x)
    same(pc.zeros(300, 400).scatter_add(dim, at, t), total, 1e-4)
    most = np.zeros_like(WIDE)
    np.maximum.at(most, tuple(where), x)
    same(pc.zeros(300, 400).scatter_reduce(dim, at, t, "amax"), most)
    count = np.zeros(WIDE.shape)
    np.add.at(count, tuple(where), 1)
    mean = pc.zeros(300, 400).scatter_reduce(dim, at, t, "mean", include_self=False)
    same(mean, total / np.maximum(count, 1), 1e-4)


@pytest.mark.parametrize("width", [1, 3, 16, 40])
@pytest.mark.parametrize("depth", [1, 4])
def test_scatter_by_columns_has_the_same_bits_with_any_number_of_threads(
    width: int, depth: int
) -> None:
    """Threads share strips of columns; several values for one index are added in order."""
    shape = (20_000, width, depth)
    x = RNG.random(shape).astype("float32")
    index = RNG.integers(0, 500, shape)
    want = np.zeros((500, width, depth))
    where: list[Any] = list(np.indices(shape))
    where[0] = index
    np.add.at(want, tuple(where), x)
    results = []
    before = pc.get_num_threads()
    for threads in (1, 2, 5):
        pc.set_num_threads(threads)
        base = pc.zeros(500, width, depth)
        results.append(base.scatter_add(0, pc.tensor(index), pc.tensor(x)).numpy())
    pc.set_num_threads(before)
    np.testing.assert_allclose(results[0], want, rtol=1e-4)
    assert all(np.array_equal(results[0], other) for other in results)


def test_gather_and_scatter_along_one_long_line() -> None:
    x = RNG.integers(0, 1000, 200_000)
    index = RNG.integers(0, 200_000, 200_000)
    same(pc.gather(pc.tensor(x), 0, pc.tensor(index)), x[index])
    total = np.zeros(200_000, int)
    np.add.at(total, index, x)
    same(pc.zeros(200_000, dtype=pc.int64).scatter_add(0, pc.tensor(index), pc.tensor(x)), total)
    order = RNG.permutation(200_000)
    want = np.zeros(200_000, int)
    want[order] = x
    same(pc.zeros(200_000, dtype=pc.int64).scatter(0, pc.tensor(order), pc.tensor(x)), want)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("shape", [(70_000, 3), (3, 4, 40), (2, 3000), (1, 70_000), (5, 1)])
def test_gather_along_rows(shape: tuple[int, ...], dtype: str) -> None:
    x = RNG.integers(0, 100, shape).astype(dtype)
    for view in (x, x[::-1], np.broadcast_to(x[:1], shape), np.ascontiguousarray(x.T).T):
        t = pc.from_numpy(view)
        for rows in {1, shape[0]}:
            index = RNG.integers(-shape[-1], shape[-1], (rows, *shape[1:-1], shape[-1] + 1))
            want = np.take_along_axis(view[:rows], index, -1)
            same(pc.gather(t, -1, pc.from_numpy(index)), want)


@pytest.mark.parametrize("place", [0, 1023, 1024, 2999, 5999])
@pytest.mark.parametrize("wrong", [7, -8])
def test_gather_names_an_index_out_of_range_in_a_row(place: int, wrong: int) -> None:
    index = pc.zeros(2, 3000, dtype=pc.int64)
    index.view(-1)[place] = wrong
    with pytest.raises(IndexError, match=rf"`index` must be in \[-7, 7\); got {wrong}"):
        pc.gather(pc.zeros(2, 7), 1, index)


@pytest.mark.parametrize("n", [32767, 32768, 50_001, 200_000])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int16"])
def test_running_sums_of_long_lines(n: int, dtype: str) -> None:
    x = (RNG.random(n) * 10 - 3).astype(dtype)
    want = np.cumsum(x, dtype="float64" if dtype.startswith("f") else "int64")
    same(pc.tensor(x).cumsum(0), want, {"float32": 1e-4, "float64": 1e-11}.get(dtype, 0.0))
    both = pc.tensor(np.stack([x, x])).cumsum(1)  # a row is what it is alone
    np.testing.assert_array_equal(both[1].numpy(), pc.tensor(x).cumsum(0).numpy())
    in_place = pc.tensor(x).cumsum(0)
    assert pc.equal(pc.tensor(x).to(in_place.dtype).cumsum_(0), in_place)


def test_running_products_and_columns() -> None:
    x = 1 + (RNG.random(100_000) - 0.5) / 100
    same(pc.tensor(x).cumprod(0), np.cumprod(x), 1e-10)
    for dim in (0, 1):
        same(pc.tensor(WIDE).cumsum(dim), np.cumsum(WIDE, dim, dtype="float64"), 1e-4)
        same(pc.tensor(WIDE.T[::-1]).cumsum(dim), np.cumsum(WIDE.T[::-1], dim, "float64"), 1e-4)
    wide = RNG.random((3, 5000))
    same(pc.tensor(wide).cumsum(0), np.cumsum(wide, 0), 1e-12)


def test_running_extremes() -> None:
    for dim in (0, 1):
        values, indices = pc.tensor(WIDE).cummax(dim)
        same(values, np.maximum.accumulate(WIDE, dim))
        same(pc.gather(pc.tensor(WIDE), dim, indices), np.maximum.accumulate(WIDE, dim))
        same(pc.tensor(WIDE).cummin(dim)[0], np.minimum.accumulate(WIDE, dim))


@pytest.mark.parametrize("scale", [1, 30, 1000])
def test_logarithms_of_running_sums(scale: float) -> None:
    drawn = RNG.standard_normal((4, 1000)) * scale
    for x in (drawn, np.sort(drawn, 1), np.sort(drawn, 1)[:, ::-1], drawn - 1e4):
        want = np.logaddexp.accumulate(x, 1)
        same(pc.tensor(x).logcumsumexp(1), want, 1e-9)
        same(pc.tensor(np.ascontiguousarray(x.T)).logcumsumexp(0), want.T, 1e-9)
        single = pc.tensor(x.astype("float32")).logcumsumexp(1)
        want = np.logaddexp.accumulate(x.astype("float32").astype("float64"), 1)
        np.testing.assert_allclose(single.numpy(), want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("n", [1, 2, 7, 100, 1000])
def test_searches(n: int, right: bool) -> None:
    side: Any = "right" if right else "left"
    line = np.sort(RNG.integers(0, n, n))
    expected = RNG.integers(-2, n + 2, 50_003)
    got = pc.searchsorted(pc.tensor(line), pc.tensor(expected), right=right)
    same(got, np.searchsorted(line, expected, side))
    few = pc.searchsorted(pc.tensor(line), pc.tensor(expected[:3]), right=right)
    same(few, np.searchsorted(line, expected[:3], side))
    lines = np.sort(RNG.random((5, n)).astype("float32"), 1)
    many = RNG.random((5, 77)).astype("float32")
    want = np.stack([np.searchsorted(a, b, side) for a, b in zip(lines, many, strict=True)])
    same(pc.searchsorted(pc.tensor(lines), pc.tensor(many), right=right), want)


def test_ranks_of_long_lines() -> None:
    x = RNG.permutation(100_001).astype("float32")
    order = np.argsort(x)
    for k in (1, 50_000, 100_001):
        value, position = pc.tensor(x).kthvalue(k)
        assert (value.item(), position.item()) == (k - 1, order[k - 1])
    assert pc.tensor(x).median().item() == 50_000
    counts = RNG.integers(0, 50, 100_000)
    values, number = pc.unique(pc.tensor(counts), return_counts=True)
    want = np.unique(counts, return_counts=True)
    same(values, want[0])
    same(number, want[1])
    same(pc.bincount(pc.tensor(counts)), np.bincount(counts))
    assert pc.tensor(counts).mode()[0].item() == np.bincount(counts).argmax()


def test_the_last_of_several_is_kept() -> None:
    index = RNG.integers(0, 300, (300, 400))
    want = np.zeros_like(WIDE)
    for row in range(300):  # in order
        want[index[row], np.arange(400)] = WIDE[row]
    same(pc.zeros(300, 400).scatter(0, pc.tensor(index), pc.tensor(WIDE)), want)


def test_the_first_index_out_of_range_is_named_among_many() -> None:
    index = pc.zeros(300_000, dtype=pc.int64)
    index[120_000], index[290_000] = 7, -9
    with pytest.raises(IndexError, match=r"`index` must be in \[-5, 5\); got 7"):
        pc.gather(pc.zeros(5), 0, index)
