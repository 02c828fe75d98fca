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


@pytest.mark.parametrize("dtype", [pc.float16, pc.bfloat16], ids=str)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_halves(rng, name, reverse, dtype):
    """Each result is as in float32, but for its rounding."""
    sizes, width = [4, 4, 3, 2, 2, 1], 33
    parts = 4 if name == "lstm" else 3

    def rows(*shape):
        return random(rng, *shape, dtype=dtype)

    n, first = sum(sizes), (sizes[0], width)
    states = [rows(*first) for _ in range(parts - 2)]
    weight = (rows(parts * width, width).float() / 5).to(dtype)
    operands = [rows(n, parts * width), *states, weight]
    if name == "gru":
        operands.append(rows(parts * width))
    grads = [rows(n, width), *(rows(*first) for _ in states)]

    def run(device, to):
        inputs = [x.to(device).to(to) for x in operands]
        forward = operator(f"{name}_forward")(*inputs, sizes, reverse)
        kept = forward[:1] + forward[1 + len(states) :]
        back = operator(f"{name}_backward")
        incoming = [x.to(device).to(to) for x in grads]
        return *forward, *back(*incoming, *inputs, *kept, sizes, reverse)

    eps = pc.finfo(dtype).eps
    for one, other in zip(run("cuda", dtype), run("cpu", pc.float32), strict=True):
        assert one.dtype == dtype
        bound = eps * float(other.abs().max())
        np.testing.assert_allclose(one.float().cpu(), other, rtol=0, atol=bound)
