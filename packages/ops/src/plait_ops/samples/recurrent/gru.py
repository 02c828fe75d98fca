"""Test data of recurrent/gru: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.samples.recurrent.lstm import layers, logistic, outputs_of, run_sequences
from plait_ops.specs.recurrent.gru import gru_backward, gru_forward, gru_sequence


@gru_sequence.reference
def _(gates, hx, weight, bias, sizes, reverse=False):
    def step(x, state):
        u = weight.astype("float64") @ state[0] + (0 if bias is None else bias)
        (a, b, c), (d, e, f) = np.split(x, 3), np.split(u, 3)
        z = logistic(b + e)
        return [(1 - z) * np.tanh(c + logistic(a + d) * f) + z * state[0]]

    return tuple(run_sequences(step, gates, [hx], sizes, reverse))


def _gru_samples(s):
    for k, (gates, (hx,), weight, sizes, reverse, large) in enumerate(layers(s, 3, 1)):
        bias = s.array(len(weight), dtype=str(gates.dtype)) if k % 3 else None
        yield outputs_of(s(gates, hx, weight, bias, sizes, reverse), large)


@gru_backward.samples
def _(s):
    for k, (gates, (hx,), weight, sizes, reverse, _) in enumerate(layers(s, 3, 1)):
        bias = s.array(len(weight), dtype=str(gates.dtype)) if k % 3 else None
        result, _, activated = gru_forward(gates, hx, weight, bias, sizes, reverse)
        grads = [s.array(*each.shape, dtype=str(gates.dtype)) for each in (result, hx)]
        operands = [*grads, gates, hx, weight, bias, result, activated]
        yield s(*operands, sizes, reverse).loosely(32).without_gradient()


for each in (gru_sequence, gru_forward):
    each.samples(_gru_samples)


for each in (gru_sequence, gru_forward):
    each.error(
        "ShapeError",
        lambda s: s(s.array(4, 8), s.array(2, 2), s.array(6, 2), None, [2, 2], False),
        contains=["gates", "(4, 8)", "(6, 2)"],
    )
    each.error(
        "ShapeError",
        lambda s: s(s.array(4, 6), s.array(2, 2), s.array(6, 2), s.array(4), [2, 2], False),
        contains=["bias", "(6,)", "(4,)"],
    )


gru_backward.error(
    "ShapeError",
    lambda s: s(
        *[s.array(2, 2)] * 2,
        s.array(2, 6),
        s.array(2, 2),
        s.array(6, 2),
        None,
        s.array(2, 3),
        s.array(2, 8),
        [2],
        False,
    ),
    contains=["output", "(2, 2)", "(2, 3)"],
)
