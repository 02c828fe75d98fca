"""LSTM and GRU on the device."""

import numpy as np
import pytest
from on_both import check, random

import plait_core as pc
from plait_abi import operator

CASES = [([3, 3, 3], 5), ([4, 2, 1], 33), ([1], 4), ([6] * 5, 64)]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("dtype", [pc.float32, pc.float64], ids=str)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("sizes", "width"), CASES)
def test_lstm(rng, sizes, width, reverse, dtype):
    def rows(*shape):
        return random(rng, *shape, dtype=dtype)

    n, first = sum(sizes), (sizes[0], width)
    gates, h, c, weight = rows(n, 4 * width), rows(*first), rows(*first), rows(4 * width, width) / 5
    forward = operator("lstm_forward")
    check(forward, gates, h, c, weight, sizes, reverse)
    output, _, _, cells, activated = forward(gates, h, c, weight, sizes, reverse)
    grads = rows(n, width), rows(*first), rows(*first)
    kept = output, cells, activated
    backward = operator("lstm_backward")
    check(backward, *grads, gates, h, c, weight, *kept, sizes, reverse, tolerance=2e-4)


@pytest.mark.parametrize("dtype", [pc.float32, pc.float64], ids=str)
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("sizes", "width"), CASES)
def test_gru(rng, sizes, width, reverse, has_bias, dtype):
    def rows(*shape):
        return random(rng, *shape, dtype=dtype)

    n, first = sum(sizes), (sizes[0], width)
    gates, h, weight = rows(n, 3 * width), rows(*first), rows(width, 3 * width).t() / 5
    bias = rows(3 * width) if has_bias else None
    forward = operator("gru_forward")
    check(forward, gates, h, weight, bias, sizes, reverse)
    output, _, activated = forward(gates, h, weight, bias, sizes, reverse)
    grads, kept = (rows(n, width), rows(*first)), (output, activated)
    backward = operator("gru_backward")
    check(backward, *grads, gates, h, weight, bias, *kept, sizes, reverse, tolerance=2e-4)
