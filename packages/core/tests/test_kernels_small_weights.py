"""Products with weights of 16 and 8 bits: sizes on both sides of every limit, layouts, rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator

linear = operator("linear")
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
            got = linear(x, w, bias)
            assert got.dtype is dtype and tuple(got.shape) == (m, n)
            want = wide(x) @ wide(w).T + (0 if bias is None else wide(b))
            error = np.abs(wide(got) - want) - np.abs(want) * EPS[dtype]
            assert error.max(initial=0) < 2e-6 * (k + 1) ** 0.5 * 8
            turned = linear(x.t().contiguous().t(), w.t().contiguous().t(), bias)
            assert pc.equal(turned, got)


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
def test_bits_do_not_depend_on_threads(dtype: pc.dtype, m: int) -> None:
    x, w = draw(m, 700).to(dtype), draw(900, 700).to(dtype)
    before = pc.get_num_threads()
    try:
        made = []
        for threads in (1, 2, 5):
            pc.set_num_threads(threads)
            made.append(linear(x, w))
    finally:
        pc.set_num_threads(before)
    assert pc.equal(made[0], made[1]) and pc.equal(made[0], made[2])


@each_half
def test_gradients_of_halves(dtype: pc.dtype) -> None:
    x, w = draw(4, 30).to(dtype).requires_grad_(), draw(6, 30).to(dtype).requires_grad_()
    linear(x, w).sum().backward()
    np.testing.assert_allclose(wide(x.grad), np.tile(wide(w.detach()).sum(0), (4, 1)), atol=0.1)
