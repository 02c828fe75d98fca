"""Kernels that work channel by channel: batch norm and what follows it, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator

RNG = np.random.default_rng(3)
# runs shorter than a vector, of a vector and some, of several segments; one image; one channel
SHAPES = [
    (9, 5),
    (3, 4, 1, 1),
    (4, 3, 2, 2),
    (5, 6, 7, 7),
    (2, 3, 14, 14),
    (3, 2, 31, 33),
    (2, 2, 46, 45),
    (1, 3, 8),
    (6, 1, 5, 5, 5),
    (40, 70),
    (300, 37),
    (9, 20, 3),
    (1030, 131),
    (140, 50, 5),
    (2, 5, 661, 651),  # results past the caches
]
TOLERANCES: dict[Any, float] = {np.float32: 2e-5, np.float64: 1e-12}
NUMBERS = (-0.5, 1.5, 0.125)
KINDS = ("relu", "hardtanh", "leaky_relu", "silu", "hardswish")
forward = operator("native_batch_norm")
joined = operator("native_batch_norm_activation")
with_sum = operator("native_batch_norm_add_activation")
backward = operator("batch_norm_backward")
joined_backward = operator("batch_norm_activation_backward")
with_sum_backward = operator("batch_norm_add_activation_backward")


def draw(dtype: Any, *shape: int) -> Any:
    return RNG.standard_normal(shape).astype(dtype)


def wide(values: Any, ndim: int) -> Any:
    return values.reshape(1, -1, *[1] * (ndim - 2))


def normalise(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    axes = tuple(i for i in range(x.ndim) if i != 1)
    mean, var = x.mean(axes), x.var(axes)
    normal = (x - wide(mean, x.ndim)) / np.sqrt(wide(var, x.ndim) + eps)
    return normal * wide(weight, x.ndim) + wide(bias, x.ndim), mean, var, normal


def unary(kind: str, x: Any) -> Any:
    parameters = {"hardtanh": NUMBERS[:2], "leaky_relu": NUMBERS[2:]}.get(kind, ())
    return operator(kind)(x, *parameters)


def unary_backward(kind: str, g: Any, x: Any) -> Any:
    parameters = {"hardtanh": NUMBERS[:2], "leaky_relu": NUMBERS[2:]}.get(kind, ())
    return operator(f"{kind}_backward")(g, x, *parameters)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_batch_norm(shape: tuple[int, ...], dtype: Any) -> None:
    x, g, w, b = (draw(dtype, *s) for s in (shape, shape, shape[1:2], shape[1:2]))
    x = x * 3 + 10
    exact = [each.astype(np.float64) for each in (x, g, w, b)]
    want, mean, var, normal = normalise(exact[0], exact[2], exact[3], 1e-5)
    at = TOLERANCES[dtype]
    got = forward(*map(pc.from_numpy, (x, w, b)), 1e-5)
    for one, other in zip(got, (want, mean, var), strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=at, atol=10 * at)
    axes = tuple(i for i in range(x.ndim) if i != 1)
    scaled = exact[1] * wide(exact[2], x.ndim)
    centred = scaled - scaled.mean(axes, keepdims=True)
    centred -= normal * (scaled * normal).mean(axes, keepdims=True)
    gx = centred / np.sqrt(wide(var, x.ndim) + 1e-5)
    back = backward(pc.from_numpy(g), pc.from_numpy(x), *got[1:], pc.from_numpy(w), 1e-5)
    sums = (exact[1] * normal).sum(axes), exact[1].sum(axes)
    for one, other in zip(back, (gx, *sums), strict=True):
        size = max(1.0, float(np.abs(other).max()))
        np.testing.assert_allclose(one.numpy(), other, atol=100 * at * size)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_with_an_activation_as_one_after_the_other(kind: str, dtype: Any) -> None:
    for shape in SHAPES if kind in ("relu", "silu") else SHAPES[:-1]:
        x, g, r = (pc.from_numpy(draw(dtype, *shape)) for _ in range(3))
        w, b = (pc.from_numpy(draw(dtype, shape[1])) for _ in range(2))
        at = 1e-6 if dtype == np.float32 else 1e-14
        plain, mean, var = forward(x, w, b, 1e-5)
        result = joined(x, w, b, 1e-5, kind, *NUMBERS)
        for one, other in zip(result, (unary(kind, plain), mean, var), strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=at, atol=at)
        back = joined_backward(g, x, mean, var, w, b, 1e-5, kind, *NUMBERS)
        difference = backward(unary_backward(kind, g, plain), x, mean, var, w, 1e-5)
        for one, other in zip(back, difference, strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=100 * at, atol=100 * at)
        if kind not in ("relu", "hardtanh", "leaky_relu"):
            continue
        result = with_sum(x, r, w, b, 1e-5, kind, *NUMBERS)
        want = unary(kind, plain + r)
        np.testing.assert_allclose(result[0].numpy(), want.numpy(), rtol=at, atol=at)
        back = with_sum_backward(g, want, x, mean, var, w, 1e-5, kind, *NUMBERS)
        passed = unary_backward(kind, g, want)
        difference = (*backward(passed, x, mean, var, w, 1e-5), passed)
        for one, other in zip(back, difference, strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=100 * at, atol=100 * at)


@pytest.mark.parametrize("far", [1e3, 1e5])
def test_statistics_far_from_zero(far: float) -> None:
    x = (RNG.standard_normal((4, 3, 40, 41)) + far).astype(np.float32)
    x[0, 0] = 0  # an image that is far from the others
    x[0, 1, 0, 0] = -50 * far
    _, mean, var = forward(pc.from_numpy(x), None, None, 1e-5)
    exact = x.astype(np.float64)
    np.testing.assert_allclose(mean.numpy(), exact.mean((0, 2, 3)), rtol=1e-6)
    np.testing.assert_allclose(var.numpy(), exact.var((0, 2, 3)), rtol=1e-4)


def test_values_whose_squares_overflow() -> None:
    x = draw(np.float32, 3, 2, 9, 9) * np.float32(1e25)
    x[0, 1, 0, 0] = np.inf
    _, mean, var = forward(pc.from_numpy(x), None, None, 1e-5)
    assert np.isinf(var.numpy()[0]) and np.isnan(var.numpy()[1]) and np.isfinite(mean.numpy()[0])
    wide = x.astype(np.float64)[:, :1] * 1e150
    _, _, var = forward(pc.from_numpy(np.ascontiguousarray(wide[:, :, :4])), None, None, 1e-5)
    assert not np.isnan(var.numpy()).any()


def test_nan_goes_through_the_activation() -> None:
    x = draw(np.float32, 3, 2, 9, 9)
    x[0, 1, 0, 0] = np.nan
    result, _, _ = joined(pc.from_numpy(x), None, None, 1e-5, "relu", *NUMBERS)
    assert np.isnan(result.numpy()[:, 1]).all() and not np.isnan(result.numpy()[:, 0]).any()


@pytest.mark.parametrize("shape", [(16, 40, 7, 7), (4, 6, 57, 56)], ids=str)
def test_bits_do_not_depend_on_threads(shape: tuple[int, ...], by_threads: Any) -> None:
    x, g = pc.from_numpy(draw(np.float32, *shape)), pc.from_numpy(draw(np.float32, *shape))

    def bits() -> tuple[bytes, ...]:
        result, mean, var = joined(x, None, None, 1e-5, "relu", *NUMBERS)
        back = joined_backward(g, x, mean, var, None, None, 1e-5, "relu", *NUMBERS)
        return tuple(each.numpy().tobytes() for each in (result, *back))

    assert len(set(by_threads(bits, (1, 2, 3)))) == 1
