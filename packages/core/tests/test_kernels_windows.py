"""Windows added up where they came from: the derivative of `unfold`."""

from __future__ import annotations

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(7,), (4, 9), (3, 5, 8), (40, 60, 33), (0, 5)])
def test_unfold_backward(shape: tuple[int, ...], dtype: str) -> None:
    unfold_backward = operator("unfold_backward")
    for dim in range(len(shape)):
        for size, step in ((1, 1), (3, 1), (3, 2), (2, 4), (0, 1), (shape[dim], 1)):
            if size > shape[dim]:
                continue
            count = (shape[dim] - size) // step + 1
            windows = (*shape[:dim], count, *shape[dim + 1 :], size)
            grad = RNG.integers(-9, 9, windows).astype(dtype)  # sums of whole numbers are exact
            want = np.zeros(shape, dtype)
            for k in range(size):
                at = (slice(None),) * dim + (slice(k, k + (count - 1) * step + 1, step),)
                want[at] += grad[..., k]
            # the elements of windows last, first, and every other element of a larger tensor
            apart = np.zeros((*windows[:-1], 2 * size), dtype)
            apart[..., ::2] = grad
            first = np.moveaxis(np.ascontiguousarray(np.moveaxis(grad, -1, 0)), 0, -1)
            for layout in (grad, first, apart[..., ::2]):
                got = unfold_backward(pc.from_numpy(layout), shape, dim - len(shape), size, step)
                np.testing.assert_array_equal(got.numpy(), want)
