"""Attention on the device."""

import numpy as np
import pytest
from on_both import check, random

import plait_core as pc
from plait_abi import operator

FLOATS = [pc.float32, pc.float64, pc.float16, pc.bfloat16]

FORWARD, BACKWARD = operator("attention_forward"), operator("attention_backward")
TOLERANCE = {pc.float32: 2e-5, pc.float64: 1e-11, pc.float16: 4e-3, pc.bfloat16: 3e-2}
# leading sizes, queries, keys, width of queries and of values
CASES = [
    ((2, 3), 5, 7, 4, 6),
    ((2,), 65, 130, 64, 64),
    ((1, 2), 70, 33, 80, 128),
    ((2,), 1, 200, 33, 17),
    ((), 64, 64, 16, 16),
    ((0,), 3, 4, 5, 6),
]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("mask", ["none", "bool", "added", "causal"])
@pytest.mark.parametrize("case", CASES)
def test_attention(case, mask, dtype):
    rng = np.random.default_rng(0)
    lead, queries, keys, width, wide = case
    query = random(rng, *lead, queries, width, dtype=dtype)
    if len(lead) == 2:
        query = random(rng, lead[0], queries, lead[1], width, dtype=dtype).transpose(1, 2)
    key, value = (random(rng, *lead, keys, n, dtype=dtype) for n in (width, wide))
    chosen = None
    if mask == "bool":
        allowed = rng.random((queries, keys)) > 0.3
        allowed[0] = False  # a row that attends to nothing
        chosen = pc.tensor(allowed)
    if mask == "added":
        chosen = random(rng, queries, 1, dtype=dtype)
    more = [chosen, mask == "causal", 0.3]
    check(FORWARD, query, key, value, *more)
    output, lse = FORWARD(query, key, value, *more)
    grad = random(rng, *lead, queries, wide, dtype=dtype)
    check(
        BACKWARD,
        *(grad, query, key, value, chosen, output, lse, *more[1:]),
        tolerance=TOLERANCE[dtype],
    )


@pytest.mark.parametrize("dtype", FLOATS[2:], ids=str)
def test_logarithms_of_sums_in_another_dtype(dtype):
    rng = np.random.default_rng(1)
    query, key, value, grad = (random(rng, 5, 3, dtype=dtype) for _ in range(4))
    output, lse = FORWARD(query, key, value, None, False, 0.3)
    arguments = grad, query, key, value, None, output, lse.to(dtype), False, 0.3
    check(BACKWARD, *arguments, tolerance=TOLERANCE[dtype])


# Kernels decline rows that are this wide, and other operators compute the derivatives.
WIDE = 130


@pytest.mark.parametrize("dtype", FLOATS[2:], ids=str)
@pytest.mark.parametrize("mask", ["none", "bool", "added", "causal"])
def test_halves_of_wide_rows(mask, dtype):
    """Each result is as in float32, but for its rounding."""
    rng = np.random.default_rng(2)
    query, key, value = (random(rng, 2, n, WIDE, dtype=dtype) for n in (9, 12, 12))
    chosen = None
    if mask == "bool":
        chosen = pc.tensor(rng.random((9, 12)) > 0.3)
    if mask == "added":
        chosen = random(rng, 9, 12, dtype=dtype)
    grad = random(rng, 2, 9, WIDE, dtype=dtype)
    more = mask == "causal", 0.2

    def run(device, to):
        q, k, v, m, g = (
            x if x is None else x.to(device).to(x.dtype if x.dtype == pc.bool else to)
            for x in (query, key, value, chosen, grad)
        )
        output, lse = FORWARD(q, k, v, m, *more)
        return output, lse, *BACKWARD(g, q, k, v, m, output, lse, *more)

    got, want = run("cuda", dtype), run("cpu", pc.float32)
    assert [x.dtype for x in got] == [dtype, pc.float32, dtype, dtype, dtype]
    eps = pc.finfo(dtype).eps
    for one, other in zip(got, want, strict=True):
        bound = eps * float(other.abs().max())
        np.testing.assert_allclose(one.float().cpu(), other, rtol=0, atol=bound)
