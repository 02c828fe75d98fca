"""Test data of recurrent/lstm: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.recurrent.lstm import lstm_backward, lstm_forward, lstm_sequence


def logistic(x):
    return 1 / (1 + np.exp(-x))


def run_sequences(step, gates, state, sizes, reverse):
    """Run each sequence by itself; return the outputs' rows and the last states."""
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int)
    result = np.zeros((len(gates), state[0].shape[1]))
    last = [np.zeros(each.shape) for each in state]
    for row in range(len(state[0])):
        now = [each[row].astype("float64") for each in state]
        own = [at for at, n in enumerate(sizes) if n > row]
        for at in reversed(own) if reverse else own:
            now = step(gates[starts[at] + row].astype("float64"), now)
            result[starts[at] + row] = now[0]
        for target, value in zip(last, now, strict=True):
            target[row] = value
    return [each.astype(gates.dtype) for each in (result, *last)]


@lstm_sequence.reference
def _(gates, hx, cx, weight, sizes, reverse=False):
    def step(x, state):
        i, f, g, o = np.split(x + weight.astype("float64") @ state[0], 4)
        c = logistic(f) * state[1] + logistic(i) * np.tanh(g)
        return [logistic(o) * np.tanh(c), c]

    return tuple(run_sequences(step, gates, [hx, cx], sizes, reverse))


RUNS = (
    (3, [2, 2, 2], False),
    (3, [2, 2, 2], True),
    (2, [3, 3, 2, 1], False),
    (2, [3, 3, 2, 1], True),
    (5, [1], False),
    (1, [4, 0], True),
)


LARGE = ((24, [19] * 3, False), (33, [40, 40, 23, 9, 9], True), (20, [30, 7], False))


def layers(s, parts, states):
    """Yield the operands before `sizes`, and the sizes."""
    for large, runs in ((False, RUNS), (True, LARGE)):
        for width, sizes, reverse in runs:
            rows, n = np.sum(sizes), sizes[0]
            state = [s.array(n, width) for _ in range(states)]
            weight = s.array(parts * width, width, low=-0.5, high=0.5)
            yield s.array(rows, parts * width), state, weight, sizes, reverse, large
    state = [s.strided(3, 2) for _ in range(states)]
    weight = s.backwards(parts * 2, 2)
    yield s.strided(5, parts * 2), state, weight, [3, 2], False, False
    dtype = "float64"
    state = [s.array(0, 2, dtype=dtype) for _ in range(states)]
    empty, weight = s.array(0, parts * 2, dtype=dtype), s.array(parts * 2, 2, dtype=dtype)
    yield empty, state, weight, [0, 0], False, False


def outputs_of(sample, large):
    return sample.loosely(16).without_gradient() if large else sample.loosely(8)


def _lstm_samples(s):
    for gates, (hx, cx), weight, sizes, reverse, large in layers(s, 4, 2):
        yield outputs_of(s(gates, hx, cx, weight, sizes, reverse), large)


@lstm_backward.samples
def _(s):
    # the results of the forward pass depend on the operands here
    for gates, (hx, cx), weight, sizes, reverse, _ in layers(s, 4, 2):
        result, _, _, cells, activated = lstm_forward(gates, hx, cx, weight, sizes, reverse)
        dtype = str(gates.dtype)
        grads = [s.array(*each.shape, dtype=dtype) for each in (result, hx, cx)]
        operands = [*grads, gates, hx, cx, weight, result, cells, activated]
        yield s(*operands, sizes, reverse).loosely(32).without_gradient()


for each in (lstm_sequence, lstm_forward):
    each.samples(_lstm_samples)


for each in (lstm_sequence, lstm_forward):
    each.error(
        "ShapeError",
        lambda s: s(s.array(4, 8), s.array(2, 3), s.array(2, 3), s.array(8, 2), [2, 2], False),
        contains=["gates", "hx", "weight", "(4, 8)", "(2, 3)"],
    )
    each.error(
        "ShapeError",
        lambda s: s(s.array(4, 8), s.array(2, 2), s.array(3, 2), s.array(8, 2), [2, 2], False),
        contains=["cx", "(2, 2)", "(3, 2)"],
    )
    for sizes in ([1, 2, 1], [2, 1], [], [2, -1, 3], [3, 1]):
        each.error(
            "ValueError",
            lambda s, sizes=sizes: s(
                s.array(4, 8), s.array(2, 2), s.array(2, 2), s.array(8, 2), sizes, False
            ),
            contains=["sizes"],
        )
    each.error(
        "DTypeError",
        lambda s: s(
            s.array(4, 8),
            s.array(2, 2, dtype="float64"),
            s.array(2, 2),
            s.array(8, 2),
            [2, 2],
            False,
        ),
        contains=["hx", "float32", "float64"],
    )


lstm_backward.error(
    "ShapeError",
    lambda s: s(
        *[s.array(2, 2)] * 3,
        s.array(2, 8),
        *[s.array(2, 2)] * 2,
        s.array(8, 2),
        *[s.array(2, 2)] * 2,
        s.array(2, 2),
        [2],
        False,
    ),
    contains=["activated", "(2, 8)", "(2, 2)"],
)
