"""Products with weights of 16 and 8 bits: sizes on both sides of every limit, layouts, rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator

linear, linear_int8 = operator("linear"), operator("linear_int8")
RNG = np.random.default_rng(30)
EPS = {pc.bfloat16: 2.0**-8, pc.float16: 2.0**-11}
each_half = pytest.mark.parametrize("dtype", list(EPS), ids=["bfloat16", "float16"])
ROWS = [1, 2, 3, 4, 5, 7, 16, 17, 97, 200]
SIZES = [(1, 1), (5, 3), (33, 70), (130, 769), (16, 2100), (0, 4), (7, 0), (257, 512)]


def draw(*shape: int) -> pc.Tensor:
    return pc.from_numpy(RNG.standard_normal(shape).astype("float32"))


def wide(x: pc.Tensor) -> Any:
    return x.to(pc.float64).numpy()


@each_half
@pytest.mark.parametrize("m", ROWS)
def test_halves_are_rounded_once(dtype: pc.dtype, m: int) -> None:
    for n, k in SIZES:
        x, w, b = (draw(*shape).to(dtype) for shape in ((m, k), (n, k), (n,)))
        for bias in (None, b):
            want = wide(x) @ wide(w).T + (0 if bias is None else wide(b))
            turned = w.t().contiguous().t()
            for got in (linear(x, w, bias), linear(x.t().contiguous().t(), turned, bias)):
                assert got.dtype is dtype and tuple(got.shape) == (m, n)
                error = np.abs(wide(got) - want) - np.abs(want) * EPS[dtype]
                assert error.max(initial=0) < 2e-6 * (k + 1) ** 0.5 * 8


@each_half
@pytest.mark.parametrize("m", [1, 3, 6, 40])
def test_special_values_of_halves(dtype: pc.dtype, m: int) -> None:
    x = pc.zeros(m, 20).to(dtype)
    x[:, 3] = 1.0
    w = pc.zeros(24, 20)
    special = [np.inf, -np.inf, np.nan, -0.0, 6e-8, -3e-6, 6e-5, 65504.0]
    w[:8, 3] = pc.tensor(special)
    w = w.to(dtype)
    got, want = wide(linear(x, w)), np.broadcast_to(wide(w[:, 3]), (m, 24))
    np.testing.assert_array_equal(got, want)


@each_half
def test_other_shapes_of_rows(dtype: pc.dtype) -> None:
    w, b = draw(40, 64).to(dtype), draw(40).to(dtype)
    x = draw(3, 64, 5).to(dtype).transpose(1, 2)
    want = linear(x.reshape(15, 64), w, b).reshape(3, 5, 40)
    assert pc.equal(linear(x, w, b), want)
    one = linear(x[0, 0], w, b)
    assert tuple(one.shape) == (40,)
    row = draw(1, 64).to(dtype)
    assert pc.equal(linear(row.expand(9, 64), w), linear(row, w).expand(9, 40))


@each_half
def test_rows_do_not_depend_on_others_in_the_mode_for_it(dtype: pc.dtype) -> None:
    x, w = draw(50, 300).to(dtype), draw(70, 300).to(dtype)
    pc.set_batch_invariant(True)
    try:
        whole = linear(x, w)
        for m in (1, 3, 20):
            assert pc.equal(linear(x[:m], w), whole[:m])
    finally:
        pc.set_batch_invariant(False)


@each_half
@pytest.mark.parametrize("m", [1, 5, 120])
def test_bits_do_not_depend_on_threads(dtype: pc.dtype, m: int, by_threads: Any) -> None:
    x, w = draw(m, 700).to(dtype), draw(900, 700).to(dtype)
    result = by_threads(lambda: linear(x, w))
    assert pc.equal(result[0], result[1]) and pc.equal(result[0], result[2])


@each_half
@pytest.mark.parametrize("m", [1, 2, 17, 130, 600])
def test_products_of_halves(dtype: pc.dtype, m: int) -> None:
    for n, k in [*SIZES, (1, 50), (64, 384), (65, 385)]:
        a, b, row = (draw(*shape).to(dtype) for shape in ((m, k), (k, n), (n,)))
        turned, gaps = b.t().contiguous().t(), draw(k, 2 * n).to(dtype)
        gaps[:, ::2] = b
        for right in (b, turned, gaps[:, ::2]):
            calls = ((a @ right, 0), (pc.addmm(row, a, right), wide(row)))
            for got, added in calls:
                assert got.dtype is dtype and tuple(got.shape) == (m, n)
                want = wide(a) @ wide(b) + added
                error = np.abs(wide(got) - want) - np.abs(want) * EPS[dtype]
                assert error.max(initial=0) < 2e-6 * (k + 1) ** 0.5 * 8
        vector = b.t() @ a[0]
        np.testing.assert_allclose(wide(vector), wide(b).T @ wide(a[0]), 2 * EPS[dtype], 1e-3)


@each_half
def test_other_terms_and_factors_of_addmm(dtype: pc.dtype) -> None:
    x, a, b = draw(5, 7).to(dtype), draw(5, 40).to(dtype), draw(40, 7).to(dtype)
    for term in (x, x[:, :1], x[0], x[0, 0]):
        got = pc.addmm(term, a, b, beta=0.5, alpha=2)
        want = 0.5 * wide(term) + 2 * (wide(a) @ wide(b))
        np.testing.assert_allclose(wide(got), want, 2 * EPS[dtype], 1e-4)
        plain = wide(pc.addmm(term, a, b))
        np.testing.assert_allclose(plain, wide(term) + wide(a) @ wide(b), 2 * EPS[dtype], 1e-4)


@each_half
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("n", [5, 100])
def test_special_values_in_rows_and_columns(dtype: pc.dtype, turned: bool, n: int) -> None:
    special = [np.inf, -np.inf, np.nan, -0.0, 6e-8, -3e-6, 6e-5, 65504.0]
    b = pc.zeros(20, n)
    b[3, : len(special)] = pc.tensor(special)[: min(n, 8)]
    b = b.to(dtype)
    a = pc.zeros(6, 20)
    a[:, 3] = 1.0
    got = wide(a.to(dtype) @ (b.t().contiguous().t() if turned else b))
    np.testing.assert_array_equal(got, np.broadcast_to(wide(b[3]), (6, n)))


def int8(*shape: int) -> pc.Tensor:
    return pc.from_numpy(RNG.integers(-128, 128, shape).astype("int8"))


def scales(n: int) -> pc.Tensor:
    return pc.from_numpy(RNG.random(n).astype("float32") / 100 + 0.01)


def in_integers(x: Any, w: Any, scale: Any, bias: Any) -> Any:
    """Return what `linear_int8` computes with `activations`, in IEEE float32 operations."""
    steps = np.abs(x).max(1, keepdims=True, initial=0) / np.float32(127)
    q = np.clip(np.rint(x / np.where(steps > 0, steps, 1)), -127, 127).astype("int64")
    result = (q @ w.astype("int64").T).astype("float32") * (steps * scale)
    return result if bias is None else result + bias


@pytest.mark.parametrize("m", ROWS)
def test_int8_weights(m: int) -> None:
    for n, k in SIZES:
        x, w, scale, b = draw(m, k), int8(n, k), scales(n), draw(n)
        for bias in (None, b):
            got = linear_int8(x, w, scale, bias)
            want = wide(x) @ wide(w).T * wide(scale) + (0 if bias is None else wide(b))
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=3e-5 * (k + 1) ** 0.5)
            turned = linear_int8(x.t().contiguous().t(), w.t().contiguous().t(), scale, bias)
            assert pc.equal(turned, got)


@pytest.mark.parametrize("m", ROWS)
def test_quantised_activations_have_the_same_bits_everywhere(m: int) -> None:
    for n, k in SIZES:
        x, w, scale, b = draw(m, k), int8(n, k), scales(n), draw(n)
        for bias in (None, b):
            got = linear_int8(x, w, scale, bias, activations=True)
            want = in_integers(*(None if t is None else t.numpy() for t in (x, w, scale, bias)))
            np.testing.assert_array_equal(got.numpy(), want)
            turned = linear_int8(x, w.t().contiguous().t(), scale, bias, activations=True)
            assert pc.equal(turned, got)


@pytest.mark.parametrize("m", [1, 40])
def test_the_largest_sums(m: int) -> None:
    k = 131072
    x = pc.ones(m, k)
    for weight in (-128, 127):
        w = pc.full((2, k), weight, dtype=pc.int8)
        got = linear_int8(x, w, pc.ones(2), activations=True)
        step = np.float32(1) / np.float32(127)
        assert (got.numpy() == np.float32(127 * weight * k) * step).all()


@pytest.mark.parametrize("m", [1, 3, 40])
def test_rows_that_cannot_be_quantised(m: int) -> None:
    w, scale, bias = int8(20, 33), scales(20), draw(20)
    x = draw(m, 33)
    x[0, 5] = float("nan")
    assert np.isnan(linear_int8(x, w, scale, activations=True)[0].numpy()).all()
    x[0, 5] = float("-inf")
    assert np.isnan(linear_int8(x, w, scale, activations=True)[0].numpy()).all()
    x[0] = 0.0
    assert pc.equal(linear_int8(x, w, scale, bias, activations=True)[0], bias)
    x[0] = 1e-45  # the step would be 0
    assert pc.equal(linear_int8(x, w, scale, bias, activations=True)[0], bias)
    x[0] = 3.4e38
    assert np.isfinite(linear_int8(x, w, scale, bias, activations=True)[0].numpy()).sum() >= 0


@pytest.mark.parametrize("activations", [False, True])
@pytest.mark.parametrize("m", [1, 5, 120])
def test_bits_of_int8_do_not_depend_on_threads(m: int, activations: bool, by_threads: Any) -> None:
    x, w, scale = draw(m, 700), int8(900, 700), scales(900)
    result = by_threads(lambda: linear_int8(x, w, scale, activations=activations))
    assert pc.equal(result[0], result[1]) and pc.equal(result[0], result[2])


@each_half
@pytest.mark.parametrize("activations", [False, True])
@pytest.mark.parametrize("m", [1, 5, 40])
def test_halves_with_int8_weights(dtype: pc.dtype, activations: bool, m: int) -> None:
    x, w, scale, bias = draw(m, 70).to(dtype), int8(50, 70), scales(50), draw(50).to(dtype)
    got = linear_int8(x, w, scale, bias, activations=activations)
    float32 = linear_int8(x.to(pc.float32), w, scale, bias.to(pc.float32), activations=activations)
    assert got.dtype is dtype
    assert pc.equal(got, float32.to(dtype))


def test_gradients_beside_weights_of_int8() -> None:
    pytest.importorskip("plait_autograd")
    x, scale, bias = (pc.rand(*shape).requires_grad_() for shape in ((3, 4), (5,), (5,)))
    weight = pc.randint(-9, 9, (5, 4)).to(pc.int8)
    y = linear_int8(x, weight, scale, bias)
    grads = pc.rand(3, 5)
    y.backward(grads)
    want = [each.detach().requires_grad_() for each in (x, scale, bias)]
    (((want[0] @ weight.float().t()) * want[1]) + want[2]).backward(grads)
    for one, other in zip((x, scale, bias), want, strict=True):
        assert pc.allclose(one.grad, other.grad, rtol=1e-5)
    with pytest.raises(NotImplementedError, match=r"linear_int8: `activations` must be False"):
        linear_int8(x, weight, scale, activations=True).sum().backward()
