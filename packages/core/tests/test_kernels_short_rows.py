"""Operators on tensors whose last dimension is short, or whose sums lie side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator

RNG = np.random.default_rng(11)
LENGTHS = [1, 2, 3, 7, 8, 16, 17, 40, 129]
ROWS = [1, 2, 5, 300]


def layouts(*shape: int) -> Iterator[Any]:
    """Arrays of this shape: dense, repeated along each dimension, cut out, turned, backwards."""
    x = RNG.standard_normal(shape).astype(np.float32)
    yield x
    for d in range(len(shape)):
        yield np.broadcast_to(x.take([0], d), shape)
    yield RNG.standard_normal([n + 3 for n in shape]).astype(np.float32)[
        tuple(slice(1, n + 1) for n in shape)
    ]
    yield np.ascontiguousarray(x.T).T
    yield x[..., ::-1]
    yield x[::-1]


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("length", LENGTHS)
def test_pointwise_operators(rows: int, length: int) -> None:
    for shape in ((rows, length), (2, rows, length), (3, 1, rows, length)):
        for a in layouts(*shape):
            for b in layouts(*shape):
                x, y = pc.from_numpy(a), pc.from_numpy(b)
                np.testing.assert_array_equal((x + y).numpy(), a + b)
                np.testing.assert_array_equal((x > y).numpy(), a > b)
                np.testing.assert_array_equal(pc.where(x > 0, x, y).numpy(), np.where(a > 0, a, b))


@pytest.mark.parametrize("length", LENGTHS)
def test_results_of_any_layout(length: int) -> None:
    for shape in ((300, length), (4, 5, length)):
        for into in layouts(*shape):
            if 0 in into.strides:
                continue
            a, b = next(layouts(*shape)), next(layouts(*shape))
            out = pc.from_numpy(into)
            pc.add(pc.from_numpy(a), pc.from_numpy(b[:1]), out=out)
            np.testing.assert_array_equal(out.numpy(), a + b[:1])
            out += pc.from_numpy(b[..., :1])
            np.testing.assert_array_equal(out.numpy(), a + b[:1] + b[..., :1])


def test_a_row_of_the_result_is_added_to_all() -> None:
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    t = pc.from_numpy(x.copy())
    t += t[1]
    np.testing.assert_array_equal(t.numpy(), x + x[1])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
@pytest.mark.parametrize("length", LENGTHS)
def test_reductions_of_short_rows(length: int, dtype: str) -> None:
    for shape in ((1, length), (700, length), (5, 7, length)):
        a = RNG.integers(0, 9, shape).astype(dtype)
        for x in (a, np.concatenate([a, a], -1)[..., :length], a[::-1]):
            t = pc.from_numpy(x)
            np.testing.assert_array_equal(t.sum(-1).numpy(), x.sum(-1))
            np.testing.assert_array_equal(t.amax(-1).numpy(), x.max(-1))
            np.testing.assert_array_equal(t.amin(-1).numpy(), x.min(-1))
            np.testing.assert_array_equal((t > 4).any(-1).numpy(), (x > 4).any(-1))
            expected = np.argsort(x, -1, kind="stable")
            np.testing.assert_array_equal(t.sort(-1)[1].numpy(), expected)
            middle = np.take_along_axis(expected, np.full((*shape[:-1], 1), (length - 1) // 2), -1)
            values, indices = t.median(-1)
            np.testing.assert_array_equal(indices.numpy(), middle[..., 0])
            np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, middle, -1)[..., 0])


@pytest.mark.parametrize("dtype", ["int64", "int32", "bool"])
@pytest.mark.parametrize("length", [4, 5, 7, 16, 30, 31, 32, 33])
def test_integer_reductions_of_short_rows(length: int, dtype: str) -> None:
    for rows in (1, 2, 3, 4, 6, 259, 1030):
        a = RNG.integers(-3, 4, (rows, length + 2)).astype(dtype)
        for x in (a[:, :length], np.ascontiguousarray(a[:, :length]), a[::-1, 1:-1]):
            t = pc.from_numpy(x)
            np.testing.assert_array_equal(t.sum(-1).numpy(), x.sum(-1))
            np.testing.assert_array_equal(t.prod(-1).numpy(), x.prod(-1))
            if dtype != "bool":
                np.testing.assert_array_equal(t.amax(-1).numpy(), x.max(-1))


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32", "int16", "float32", "float64"])
@pytest.mark.parametrize("length", [2, 15, 64, 80, 81, 300])
def test_ranks(length: int, dtype: str) -> None:
    limits = np.iinfo(dtype) if dtype[0] != "f" else np.finfo(dtype)
    ends = np.array([limits.min, limits.max, 0], dtype)
    for low, high in ((0, 5), (-500, 500), (-(2**14), 2**14), (2**13, 2**13 + 3)):
        a = RNG.integers(max(low, 0) if dtype[0] == "u" else low, high, (5, length)).astype(dtype)
        a[3, : min(length, 3)] = ends[: min(length, 3)]  # rows of all digits
        a[4] = a[4, 0]
        for x in (a, a[::-1], np.ascontiguousarray(a.T).T):
            order = np.argsort(x, -1, kind="stable")
            for k in sorted({1, 2, (length + 1) // 2, length}):
                values, indices = pc.from_numpy(x).kthvalue(k, -1)
                np.testing.assert_array_equal(indices.numpy(), order[:, k - 1])
                np.testing.assert_array_equal(values.numpy(), np.sort(x, -1)[:, k - 1])


@pytest.mark.parametrize("dtype", ["int64", "int32", "float32", "float64", "float16"])
@pytest.mark.parametrize("length", [1, 7, 8, 33, 512, 1024, 40_000])
def test_scans_of_lines(length: int, dtype: str) -> None:
    for rows in (1, 7, 8, 19):
        x = RNG.integers(-1, 2, (rows, length)).astype(dtype)
        wide = x.astype("int64" if dtype[0] == "i" else "float64").cumsum(-1)
        got = pc.from_numpy(x).cumsum(-1)
        np.testing.assert_array_equal(got.numpy(), wide.astype(got.numpy().dtype))
        ones = np.where(x == 0, 1, x).astype(dtype)
        product = pc.from_numpy(ones).cumprod(-1).numpy()
        np.testing.assert_array_equal(product, ones.astype("float64").cumprod(-1))


@pytest.mark.parametrize("place", [0, 2, 7, 8, 12, 39])
def test_nan_in_short_rows(place: int) -> None:
    for length in LENGTHS:
        if place < length:
            x = pc.ones(300, length)
            x[::2, place] = float("nan")
            nan = np.arange(300) % 2 == 0
            for result in (x.amax(-1), x.amin(-1), x.sum(-1), x.median(-1)[0]):
                np.testing.assert_array_equal(np.isnan(result.numpy()), nan)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int16", "uint8"])
@pytest.mark.parametrize("length", [1, 2, 3, 16, 31, 32, 40])
def test_places_of_extremes_in_short_rows(length: int, dtype: str) -> None:
    for shape in ((1, length), (127, length), (700, length), (5, 7, length)):
        for x in layouts(*shape):
            x = np.round(2 * x).astype(dtype)  # with equal elements
            views = [x, x[::-1], np.concatenate([x, x], -1)[..., :length]]
            for a in [*views, np.broadcast_to(x[:1], shape)]:
                t = pc.from_numpy(a)
                for (values, indices), numpy_places in (
                    (t.max(-1), a.argmax(-1)),
                    (t.min(-1), a.argmin(-1)),
                ):
                    np.testing.assert_array_equal(indices.numpy(), numpy_places)
                    wanted = np.take_along_axis(a, numpy_places[..., None], -1)[..., 0]
                    np.testing.assert_array_equal(values.numpy(), wanted)
                np.testing.assert_array_equal(t.argmax(-1).numpy(), a.argmax(-1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("length", [2, 16, 31, 40])
def test_places_of_nan_and_infinity_in_short_rows(length: int, dtype: str) -> None:
    x = RNG.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], (700, length)).astype(dtype)
    t = pc.from_numpy(x)
    np.testing.assert_array_equal(t.argmax(-1).numpy(), x.argmax(-1))
    np.testing.assert_array_equal(t.argmin(-1).numpy(), x.argmin(-1))
    np.testing.assert_array_equal(t.max(-1)[0].numpy(), x.max(-1))


def softmax_of(x: Any, dim: int) -> Any:
    e = np.exp(x - x.max(dim, keepdims=True))
    return e / e.sum(dim, keepdims=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 3, 20, 129, 1000])
@pytest.mark.parametrize("beside", [4, 7, 8, 9, 64, 257, 700])
def test_softmax_before_the_last_dimension(n: int, beside: int, dtype: str) -> None:
    x = (4 * RNG.standard_normal((3, n, beside))).astype(dtype)
    g = RNG.standard_normal(x.shape).astype(dtype)
    t, grad = pc.from_numpy(x), pc.from_numpy(g)
    exact, tolerance = softmax_of(x.astype(np.longdouble), 1), 40 * np.finfo(dtype).eps
    result, log = pc.softmax(t, 1), pc.log_softmax(t, 1)
    np.testing.assert_allclose(result.numpy(), exact, rtol=tolerance)
    np.testing.assert_allclose(log.numpy(), np.log(exact), rtol=tolerance, atol=tolerance)
    wide, scale = g.astype(np.longdouble), np.abs(g).sum(1, keepdims=True)
    for name, y, expected in (
        ("softmax_backward", result, (wide - (wide * exact).sum(1, keepdims=True)) * exact),
        ("log_softmax_backward", log, wide - exact * wide.sum(1, keepdims=True)),
    ):
        got = operator(name)(grad, y, 1).numpy()
        assert (np.abs(got - expected) <= tolerance * scale).all(), name


def test_infinities_in_softmax_before_the_last_dimension() -> None:
    x = pc.zeros(3, 5, 9)
    x[0, 1] = float("inf")
    x[1] = -float("inf")
    x[2, 3] = -float("inf")
    for f in (pc.softmax, pc.log_softmax):
        result, rows = f(x, 1), f(x.transpose(1, 2).contiguous(), 2).transpose(1, 2)
        np.testing.assert_allclose(result.numpy(), rows.numpy(), rtol=1e-6)
    assert result[:2].isnan().all() and not result[2].isnan().any()


@pytest.mark.parametrize("length", [*LENGTHS, 32, 256, 257])
def test_log_softmax_and_its_derivative(length: int) -> None:
    for a in layouts(300, length):
        x = a.astype(np.float64)
        want = x - x.max(-1, keepdims=True)
        want = want - np.log(np.exp(want).sum(-1, keepdims=True))
        y = pc.log_softmax(pc.from_numpy(a), -1)
        np.testing.assert_allclose(y.numpy(), want, rtol=1e-5, atol=1e-6)
        g = RNG.standard_normal(a.shape).astype(np.float32)
        got = operator("log_softmax_backward")(pc.from_numpy(g), y, -1).numpy()
        total = g.sum(-1, keepdims=True, dtype=np.float64)
        np.testing.assert_allclose(got, g - np.exp(want) * total, rtol=1e-4, atol=1e-5)
