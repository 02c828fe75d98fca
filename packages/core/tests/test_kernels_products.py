"""Matrix products give the bits of one sum by whichever kernel, and take odd operands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator

DTYPES = ["float32", "float64"]
DEPTHS = [1, 3, 8, 17, 192, 193, 384, 385, 1000, 3333]  # around the blocks of both dtypes
WIDTHS = [1, 2, 7, 8, 13, 16, 33, 100, 515]
HEIGHTS = [1, 2, 3, 4, 5, 8, 9, 24]
linear = operator("linear")


def draw(*shape: int, dtype: str = "float32") -> Any:
    return pc.from_numpy(np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype))


def dense(x: Any) -> Any:
    """The same elements in C order, in memory of their own."""
    return pc.from_numpy(x.numpy().copy(order="C"))


def layouts(x: Any) -> Iterator[tuple[str, Any]]:
    """Copies of a matrix with different strides and alignments."""
    array = x.numpy()
    rows, columns = array.shape
    yield "rows", dense(x)
    yield "columns", dense(x.T).T
    wide = np.full((rows, 2 * columns + 3), np.nan, array.dtype)
    wide[:, 1 : 1 + 2 * columns : 2] = array
    yield "strided", pc.from_numpy(wide[:, 1 : 1 + 2 * columns : 2])
    yield "backwards", pc.from_numpy(array[::-1].copy()[::-1])


def rows_of(a: Any, b: Any) -> Iterator[tuple[str, Any]]:
    """``a @ b`` in many layouts and by each operator."""
    for left, x in layouts(a):
        for right, y in layouts(b):
            yield f"{left}, {right}", x @ y
            yield f"{left}, {right}, transposed", (y.T @ x.T).T
    x, y = dense(a), dense(b)
    yield "linear", linear(x, dense(b.T))
    yield "batch", pc.bmm(x.expand(5, *x.shape), y.expand(5, *y.shape))[4]
    yield "addmm", pc.addmm(pc.zeros(1, dtype=a.dtype), x, y, beta=0)
    if b.shape[1] == 1:
        yield "mv", pc.mv(x, y[:, 0])[:, None]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", DEPTHS)
def test_bits_depend_on_the_depth_alone(k: int, dtype: str) -> None:
    """Products of a single row, of few and of many rows, in every layout."""
    for n in WIDTHS:
        a, b = draw(max(HEIGHTS), k, dtype=dtype), draw(k, n, dtype=dtype)
        expected = pc.cat([a] * 4) @ b  # tiles
        exact = a.numpy().astype(np.longdouble) @ b.numpy().astype(np.longdouble)
        bound = 60 * np.finfo(dtype).eps * k**0.5
        np.testing.assert_allclose(expected[: len(a)].numpy(), exact, rtol=0, atol=bound)
        for m in HEIGHTS:
            for name, result in rows_of(a[:m], b):
                assert pc.equal(result, expected[:m]), (name, m, n)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [*DEPTHS, 16384, 16385, 50_001])
def test_dot_of_all_layouts_has_the_same_bits(k: int, dtype: str) -> None:
    """The sum over runs of 16,384 elements is that of the copies, and that of more threads."""
    a, b = draw(k, 2, dtype=dtype), draw(2, k, dtype=dtype)
    x, y = a[:, 1], b[1]
    expected = pc.dot(dense(x), dense(y))
    exact = x.numpy().astype(np.longdouble) @ y.numpy().astype(np.longdouble)
    bound = 10 * np.finfo(dtype).eps * k**0.5
    np.testing.assert_allclose(expected.item(), float(exact), rtol=0, atol=bound)
    for left in (x, dense(x)):
        for right in (y, dense(y)):
            assert pc.equal(pc.dot(left, right), expected)
    threads = pc.get_num_threads()
    try:
        for width in (1, 2, 3):
            pc.set_num_threads(width)
            assert pc.equal(pc.dot(x, y), expected)
    finally:
        pc.set_num_threads(threads)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m", [*range(1, 10), 24])
def test_each_product_of_a_batch_has_the_bits_of_one(m: int, dtype: str) -> None:
    def turned(x: Any) -> Any:
        return x.transpose(1, 2).contiguous().transpose(1, 2)

    def with_gaps(x: Any) -> Any:
        return pc.cat([x, x], 2)[..., : x.shape[2]]

    for k in (1, 2, 5, 8, 16, 400):
        for n in (*range(1, 10), 15, 16, 17, 33):
            a, b = draw(7, m, k, dtype=dtype), draw(7, k, n, dtype=dtype)
            expected = pc.stack([x @ y for x, y in zip(a, b, strict=True)])
            for x in (a, turned(a), with_gaps(a)):
                for y in (b, turned(b), with_gaps(b)):
                    assert pc.equal(pc.bmm(x, y), expected), (k, n, x.stride(), y.stride())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m", [1, 2, 4, 5, 9])
def test_a_bias_is_added_to_the_bits_of_the_product(m: int, dtype: str) -> None:
    for k in (1, 7, 16, 400):
        for n in (1, 3, 4, 7, 8, 13, 16, 40):
            x, w, bias = draw(m, k, dtype=dtype), draw(n, k, dtype=dtype), draw(n, dtype=dtype)
            expected = x @ w.T + bias if k < 192 else linear(pc.cat([x] * 9), w, bias)[:m]
            assert pc.equal(linear(x, w, bias), expected), (k, n)
            assert pc.equal(linear(x, w, pc.stack([bias, bias], 1)[:, 0]), expected), (k, n)


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_with_a_term_and_factors(dtype: str) -> None:
    for k, n in ((17, 13), (385, 100), (1000, 515), (768, 1)):
        a, b, bias = draw(24, k, dtype=dtype), draw(n, k, dtype=dtype), draw(n, dtype=dtype)
        plain = linear(a, b, bias)
        scaled = pc.addmm(bias, a, b.T, beta=0.5, alpha=3)
        for m in HEIGHTS:
            assert pc.equal(linear(a[:m], b, bias), plain[:m]), (m, k, n)
            for _, right in layouts(b.T):
                result = pc.addmm(bias, a[:m], right, beta=0.5, alpha=3)
                assert pc.equal(result, scaled[:m]), (m, k, n)


@pytest.mark.parametrize("m", [1, 3, 8, 9, 200])
def test_bits_do_not_depend_on_threads(m: int, by_threads: Any) -> None:
    sizes = ((768, 3072), (3072, 768), (30_000, 40), (40, 30_000), (512, 512))
    for k, n in sizes:
        a, b = draw(m, k), draw(n, k)
        results = by_threads(lambda: (a @ b.T, a @ dense(b.T), b @ a.T), (1, 2, 3))  # noqa: B023
        for result in results[1:]:
            assert all(pc.equal(x, y) for x, y in zip(result, results[0], strict=True)), (k, n)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m", [0, 1, 4, 9, 60])
def test_empty_operands(m: int, dtype: str) -> None:
    for n in (0, 1, 5, 70):
        x, y = draw(m, 0, dtype=dtype), draw(0, n, dtype=dtype)
        assert pc.equal(x @ y, pc.zeros(m, n, dtype=x.dtype))
        self = draw(m, n, dtype=dtype)
        assert pc.equal(pc.addmm(self, x, y, beta=2), self * 2)
        bias = draw(n, dtype=dtype)
        assert pc.equal(linear(x, y.T, bias), bias.expand(m, n))
        assert (draw(m, 7, dtype=dtype) @ draw(7, n, dtype=dtype)).shape == (m, n)


@pytest.mark.parametrize("m", [1, 2, 5, 8, 9, 40])
def test_nan_and_infinity_stay_in_their_rows_and_columns(m: int) -> None:
    a, b = draw(m, 400).numpy(), draw(400, 37).numpy()
    want = a @ b
    for value in (np.nan, np.inf):
        for i, j in ((0, 0), (m - 1, 36), (m // 2, 17)):
            x, y = a.copy(), b.copy()
            x[i, 399] = y[398, j] = value
            for _, left in layouts(pc.from_numpy(x)):
                for _, right in layouts(pc.from_numpy(y)):
                    result = (left @ right).numpy()
                    bad = np.zeros(result.shape, bool)
                    bad[i] = bad[:, j] = True
                    assert not np.isfinite(result[bad]).any()
                    np.testing.assert_allclose(result[~bad], want[~bad], rtol=0, atol=1e-3)


@pytest.mark.parametrize("m", [1, 3, 8, 40])
def test_nan_in_terms_with_the_factor_zero(m: int) -> None:
    a, b = draw(m, 50), draw(50, 40)
    bad = pc.full((m, 40), float("nan"))
    assert pc.equal(pc.addmm(bad, a, b, beta=0), a @ b)
    assert pc.equal(pc.addmm(bad, a, b, beta=0, alpha=2), (a @ b) * 2)


@pytest.mark.parametrize("m", [1, 2, 7, 30])
def test_rows_far_apart_and_rows_repeated(m: int) -> None:
    """Distances of rows that are multiples of a page, and of zero."""
    far = pc.zeros(40, 4096)
    far[:, :300] = draw(40, 300)
    a = draw(m, 300)
    np.testing.assert_array_equal((a @ far[:, :300].T).numpy(), (a @ dense(far[:, :300]).T).numpy())
    np.testing.assert_array_equal((far[:, :300] @ a.T).numpy(), (a @ far[:, :300].T).numpy().T)
    row = draw(1, 300)
    same = a @ row.expand(50, 300).T
    for j in range(50):
        assert pc.equal(same[:, j : j + 1], a @ row.T)


@pytest.mark.parametrize("n", [1, 3, 8, 33, 100])
def test_a_product_with_itself(n: int) -> None:
    """Both operands, and the term, are the same memory."""
    x = draw(n, n)
    other = dense(x)
    assert pc.equal(x @ x, x @ other)
    assert pc.equal(x @ x.T, x @ other.T)
    assert pc.equal(pc.addmm(x, x, x), pc.addmm(other, x, dense(x)))
    result = pc.empty(n, n)
    assert pc.equal(pc.mm(x, x, out=result), x @ other)
    with_itself = dense(x)
    pc.mm(with_itself, with_itself, out=with_itself)
    assert pc.equal(with_itself, x @ x)
    with_itself = dense(x)
    with_itself.addmm_(with_itself, with_itself.T)
    assert pc.equal(with_itself, pc.addmm(x, x, x.T))


def test_denormal_and_huge_elements() -> None:
    for m in (1, 4, 8, 20):
        tiny = pc.full((m, 700), 1e-40)
        assert float((tiny @ pc.ones(700, 20))[0, 0]) == pytest.approx(7e-38, rel=1e-3)
        large = pc.full((m, 2), 3e38)
        assert pc.equal(large @ pc.ones(2, 20), pc.full((m, 20), float("inf")))


@pytest.mark.parametrize("k", [1, 2, 4, 7, 8, 9])
def test_large_results_of_few_products_have_the_bits_of_small_ones(k: int) -> None:
    """A result that leaves the caches is stored past them, by a loop of its own."""
    m, n, rows, columns = 1031, 4103, 24, 300
    a, b = pc.randn(k, m).T, pc.randn(k, n)
    whole = a @ b
    assert pc.equal(whole[:rows, :columns], a[:rows] @ b[:, :columns])
    assert pc.equal(whole[-rows:, -columns:], a[-rows:] @ b[:, -columns:])
    b[0, 5] = float("nan")
    assert int((a @ b).isnan().sum().item()) == m


@pytest.mark.parametrize("dtype", DTYPES)
def test_long_sums_that_are_packed_in_parts_have_the_bits_of_few_rows(dtype: str) -> None:
    """Gradients of weights are such products: both operands lie by columns."""
    m, n, k = 200, 260, 9000
    a, b = draw(k, m, dtype=dtype).T, draw(k, n, dtype=dtype)
    whole = a @ b
    assert pc.equal(whole[:4], a[:4] @ b)
    assert pc.equal(whole[:, -4:], a @ b[:, -4:])
    term = draw(m, n, dtype=dtype)
    assert pc.equal(pc.addmm(term, a, b)[-2:], pc.addmm(term[-2:], a[-2:], b))
