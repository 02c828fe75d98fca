"""Max pooling of many shapes against NumPy: vectors and single windows, numbers and places."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator
from plait_ops.samples.pooling.pooling import _max_pool

RNG = np.random.default_rng(4)
SHAPES = [(5, 7), (8, 8), (17, 23), (6, 64), (3, 600)]
KERNELS = [(2, 2), (3, 3), (1, 1), (3, 2), (2, 5)]
STRIDES = [(1, 1), (2, 2), (3, 3), (2, 1), (1, 2)]
with_indices = operator("max_pool2d_with_indices")
numbered = operator("native_max_pool2d")
numbered_backward = operator("native_max_pool2d_backward")
backward = operator("max_pool2d_backward")


def cases() -> Any:
    for kernel, stride, padded, dilated in itertools.product(KERNELS, STRIDES, (0, 1), (1, 2)):
        padding = tuple(min(padded, k // 2) for k in kernel)
        yield kernel, stride, padding, (dilated, dilated)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", SHAPES, ids=str)
def test_max_pooling(size: tuple[int, int], dtype: Any) -> None:
    for kernel, stride, padding, dilation in cases():
        if any(
            n + 2 * p < d * (k - 1) + 1
            for n, k, p, d in zip(size, kernel, padding, dilation, strict=True)
        ):
            continue
        x = np.round(RNG.standard_normal((2, 3, *size)) * 2).astype(dtype)  # with equal elements
        x[0, 0, 0, 0] = np.nan
        x[0, 1] = -np.inf
        options = (kernel, stride, padding, dilation)
        want, where = _max_pool(x, *options)
        t = pc.from_numpy(x)
        np.testing.assert_array_equal(pc.max_pool2d(t, *options).numpy(), want)
        result, indices = with_indices(t, *options)
        np.testing.assert_array_equal(result.numpy(), want)
        np.testing.assert_array_equal(indices.numpy(), where)
        result, numbers = numbered(t, *options)
        np.testing.assert_array_equal(result.numpy(), want)
        g = pc.from_numpy(RNG.standard_normal(want.shape).astype(dtype))
        by_index = backward(g, indices, x.shape).numpy()
        by_number = numbered_backward(g, numbers, x.shape, *options).numpy()
        np.testing.assert_array_equal(by_number, by_index)  # the same sums in the same order


def test_layouts_and_integers() -> None:
    x = RNG.standard_normal((2, 20, 21, 3)).astype(np.float32)
    turned = pc.from_numpy(x).permute(0, 3, 1, 2)
    want, _ = _max_pool(np.ascontiguousarray(x.transpose(0, 3, 1, 2)), (3, 3), (2, 2), (1, 1))
    np.testing.assert_array_equal(pc.max_pool2d(turned, 3, 2, 1).numpy(), want)
    whole = (10 * x[:, :, :, 0]).astype(np.int32)
    want, _ = _max_pool(whole, (2, 3), (2, 2))
    np.testing.assert_array_equal(pc.max_pool2d(pc.from_numpy(whole), (2, 3), 2).numpy(), want)


def test_windows_of_more_elements_than_a_byte_counts() -> None:
    x = pc.from_numpy(RNG.standard_normal((1, 2, 40, 41)).astype(np.float32))
    want, where = _max_pool(x.numpy(), (16, 17), (3, 2))
    np.testing.assert_array_equal(pc.max_pool2d(x, (16, 17), (3, 2)).numpy(), want)
    np.testing.assert_array_equal(with_indices(x, (16, 17), (3, 2))[1].numpy(), where)


def test_numbers_outside_of_the_window_are_passed_by() -> None:
    g = pc.ones(1, 1, 2, 2)
    numbers = pc.full((1, 1, 2, 2), 200, dtype=pc.uint8)
    result = numbered_backward(g, numbers, (1, 1, 4, 4), 2, 2, 0, 1)
    assert not result.numpy().any()
