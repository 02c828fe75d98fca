"""Padding: modes, layouts, dtypes, cut sizes, any number of threads, beside NumPy."""

from __future__ import annotations

import functools
import random
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator
from plait_ops import samples
from plait_ops.specs.joining.padding import pad_, pad_backward

MODES = ("constant", "reflect", "replicate", "circular")
DTYPES = ("bool", "int16", "float32", "float64", "complex64", "complex128")


def call(seed: int, mode: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return a shape, and the numbers at its borders."""
    draw = random.Random(seed)
    ndim = draw.randint(1, 5)
    shape = tuple(draw.choice([1, 2, 3, 4, 7, 18]) for _ in range(ndim))
    if draw.random() < 0.3:  # rows of several blocks, and of many threads
        shape = (*shape[:2], draw.choice([1000, 2049, 5000, 70_000]))
    pad: list[int] = []
    for n in reversed(shape[draw.randint(0, len(shape) - 1) :]):
        most = {"constant": 5, "replicate": 5, "reflect": min(n - 1, 40), "circular": min(n, 40)}
        pair = [draw.randint(0, most[mode]) if draw.random() < 0.7 else 0 for _ in range(2)]
        if draw.random() < 0.2:
            pair[draw.randint(0, 1)] = -draw.randint(0, n // 2)
            pair = [min(n - n // 2 - (mode == "reflect"), each) for each in pair]
        pad += pair
    return shape, tuple(pad)


def numbers(seed: int, dtype: str, *shape: int) -> np.ndarray[Any, Any]:
    x = np.random.default_rng(seed).integers(-100, 100, shape)
    return (x > 0) if dtype == "bool" else x.astype(dtype)


def layouts(x: np.ndarray[Any, Any]) -> list[Any]:
    """Return the tensor as it is, transposed in memory, reversed, and with gaps."""
    tensor = pc.from_numpy(x)
    dims = list(reversed(range(x.ndim)))
    wide = pc.zeros(*x.shape, 2, dtype=tensor.dtype)
    wide[..., 1] = tensor
    return [tensor, tensor.permute(dims).contiguous().permute(dims), tensor.flip(0), wide[..., 1]]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", MODES)
def test_results_are_those_of_numpy(mode: str, dtype: str, by_threads: Any) -> None:
    samples.load()
    for seed in range(40):
        shape, pad = call(seed, mode)
        x = numbers(seed, dtype, *shape)
        for tensor in layouts(x):
            want = pad_.run_reference(
                {"self": tensor.numpy(), "pad": pad, "mode": mode, "value": 1}
            )
            compute = functools.partial(operator("pad"), tensor, pad, mode, 1)
            for result in by_threads(compute, (1, 3)):
                np.testing.assert_array_equal(result.numpy(), want, err_msg=f"{shape} {pad}")


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("mode", MODES)
def test_the_derivative_adds_up_what_was_copied(mode: str, dtype: str, by_threads: Any) -> None:
    samples.load()
    for seed in range(40):
        shape, pad = call(seed, mode)
        padded = operator("pad")(pc.zeros(*shape), pad, mode)
        for grad in layouts(numbers(seed, dtype, *padded.shape)):
            values = {"grad": grad.numpy(), "input_size": shape, "pad": pad, "mode": mode}
            want = pad_backward.run_reference(values)
            compute = functools.partial(operator("pad_backward"), grad, shape, pad, mode)
            for result in by_threads(compute, (1, 3)):
                np.testing.assert_array_equal(result.numpy(), want, err_msg=f"{shape} {pad}")


@pytest.mark.parametrize("mode", MODES)
def test_memory_formats_are_pytorchs(mode: str) -> None:
    for shape, name in (((2, 3, 4, 5), "channels_last"), ((2, 3, 4, 5, 6), "channels_last_3d")):
        format_ = getattr(pc, name)
        x = pc.arange(float(np.prod(shape))).reshape(shape)
        pad = (1, 2, 0, 1)
        want = operator("pad")(x, pad, mode)
        got = operator("pad")(x.contiguous(memory_format=format_), pad, mode)
        assert got.is_contiguous(memory_format=format_) == (mode != "circular")
        assert got.is_contiguous() == (mode == "circular")
        np.testing.assert_array_equal(got.numpy(), want.numpy())
        grad = want.contiguous(memory_format=format_)
        results = [operator("pad_backward")(g, shape, pad, mode) for g in (grad, want)]
        assert results[0].is_contiguous(memory_format=format_) and results[1].is_contiguous()
        np.testing.assert_array_equal(results[0].numpy(), results[1].numpy())


def test_fill_values() -> None:
    for dtype, value in (("float16", float("nan")), ("int64", 2**62 + 1), ("uint8", 255)):
        x = pc.zeros(2, 3, dtype=getattr(pc, dtype))
        result = operator("pad")(x, (1, 0, 0, 1), "constant", value)
        np.testing.assert_array_equal(result[:, 0].numpy(), np.full(3, value, dtype))
        np.testing.assert_array_equal(result[2].numpy(), np.full(4, value, dtype))
        assert not result[:2, 1:].any()
