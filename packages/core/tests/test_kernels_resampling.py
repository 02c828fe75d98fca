"""Resampling: sizes around the blocks of the kernels, layouts, dtypes and any number of threads."""

from __future__ import annotations

import functools
import random
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator
from plait_ops import samples
from plait_ops.specs.vision.resampling import resample, resample_backward

DTYPES = {"uint8": 0.0, "float32": 1e-4, "float64": 1e-12, "float16": 2e-3, "complex64": 1e-4}


def numbers(rng: np.random.Generator, dtype: str, *shape: int) -> np.ndarray[Any, Any]:
    if dtype == "uint8":
        return rng.integers(0, 256, shape).astype("uint8")
    return rng.standard_normal(shape).astype(dtype)


def calls(seed: int) -> tuple[Any, ...]:
    """Return a shape, a dimension, and the arguments behind it."""
    draw = random.Random(seed)
    shape = [draw.choice([1, 2, 15, 16, 17, 33]), draw.randint(1, 40), draw.choice([1, 2, 3, 4])]
    if draw.random() < 0.3:
        shape = [draw.randint(1, 3), draw.randint(1, 20), draw.choice([15, 16, 17, 47, 48, 70])]
    if draw.random() < 0.2:
        shape[1] = draw.randint(300, 900)
    size = draw.choice([1, 2, 7, shape[1], 2 * shape[1], draw.randint(1, 90)])
    step = shape[1] / size * draw.choice([1, 1, 1, 1.07, 0.9])
    mode = draw.choice(["nearest", "nearest-exact", "linear", "linear", "cubic", "cubic"])
    options = (draw.random() < 0.4, draw.random() < 0.5 and size * step <= shape[1] + 1e-6)
    return shape, 1, size, step, mode, *options


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_are_those_of_the_matrix_of_weights(dtype: str, by_threads: Any) -> None:
    samples.load()
    for seed in range(120):
        shape, *rest = calls(seed)
        x = numbers(np.random.default_rng(seed), dtype, *shape)
        want = resample(x, *rest)
        compute = functools.partial(operator("resample"), pc.from_numpy(x), *rest)
        for got in (result.numpy() for result in by_threads(compute, (1, 3))):
            text = f"{shape} {rest}"
            assert got.dtype == x.dtype
            np.testing.assert_allclose(
                got.astype("complex128"), want, atol=DTYPES[dtype], rtol=DTYPES[dtype], err_msg=text
            )


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_the_derivative_is_the_transposed_matrix(dtype: str) -> None:
    samples.load()
    for seed in range(60):
        shape, dim, size, *rest = calls(seed)
        grad = numbers(np.random.default_rng(seed), dtype, shape[0], size, shape[2])
        got = operator("resample_backward")(pc.from_numpy(grad), dim, shape[1], *rest).numpy()
        want = resample_backward(grad, dim, shape[1], *rest)
        np.testing.assert_allclose(
            got, want, atol=10 * DTYPES[dtype], rtol=DTYPES[dtype], err_msg=f"{shape} {size} {rest}"
        )


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_has_the_bits_that_it_has_among_others(dtype: str) -> None:
    for seed in range(60):
        (_, n, inner), dim, size, *rest = calls(seed)
        x = pc.from_numpy(numbers(np.random.default_rng(seed), dtype, 19, n, inner))
        want = operator("resample")(x, dim, size, *rest).numpy()
        for rows in (1, 5, 9):
            got = operator("resample")(x[:rows].contiguous(), dim, size, *rest).numpy()
            assert np.array_equal(got, want[:rows]), f"{rows} rows, {n} {inner} {size} {rest}"


@pytest.mark.parametrize("dtype", DTYPES)
def test_channels_last_is_kept_with_the_same_values(dtype: str) -> None:
    for seed in range(40):
        shape, _, size, *rest = calls(seed)
        x = pc.from_numpy(numbers(np.random.default_rng(seed), dtype, 2, shape[2], 5, shape[1]))
        want = operator("resample")(x, 3, size, *rest)
        last = operator("resample")(x.contiguous(memory_format=pc.channels_last), 3, size, *rest)
        assert last.is_contiguous(memory_format=pc.channels_last) or x.shape[1] == 1
        assert np.array_equal(last.numpy(), want.numpy()), f"{shape} {size} {rest}"
        every_other = x.expand(2, *x.shape).transpose(0, 1)[:, 1]
        assert np.array_equal(
            operator("resample")(every_other, 3, size, *rest).numpy(), want.numpy()
        )


@pytest.mark.parametrize("shape", [(16, 32), (17, 33), (8, 15), (7, 100), (100, 7), (64, 64)])
def test_bytes_are_transposed(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).integers(0, 256, shape).astype("uint8")
    for result in (x, x[:, ::2], x[::3]):
        turned = pc.from_numpy(result).t().contiguous()
        assert np.array_equal(turned.numpy(), result.T)


def test_a_neighbour_that_is_not_finite_stays_outside() -> None:
    """Elements that a result does not read change nothing, not even by a weight of 0."""
    x = pc.zeros(1, 1, 40)
    x[..., 20] = float("inf")
    for mode, antialias in (("linear", False), ("cubic", False), ("linear", True), ("cubic", True)):
        result = operator("resample")(x, 2, 20, 2.0, mode, False, antialias)
        assert bool((result[..., :7] == 0).all()) and bool((result[..., 14:] == 0).all())
