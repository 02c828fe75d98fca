"""Test data of linalg/quantization: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.linalg.quantization import linear_int8


@linear_int8.reference
def _(input, weight, scale, bias=None, *, activations=False):
    added = np.float32(0) if bias is None else bias
    if not activations:
        product = input.astype("float64") @ weight.T.astype("float64")
        return (product * scale + added).astype(input.dtype)
    rows = input.astype("float32")
    steps = np.abs(rows).max(-1, keepdims=True, initial=0) / np.float32(127)
    used = (steps > 0) & np.isfinite(steps)
    q = np.clip(np.rint(np.where(used, rows, 0) / np.where(used, steps, 1)), -127, 127)
    sums = (q.astype("int64") @ weight.T.astype("int64")).astype("float32")
    return (sums * (steps * scale) + added).astype(input.dtype)


def _weights(s, m, k):
    return s.array(m, k, dtype="int8", low=-42.0, high=42.0), s.array(m, low=0.01, high=0.02)


@linear_int8.samples
def _(s):
    for activations in (False, True):
        for rows in ((3,), (2, 3), ()):
            weight, scale = _weights(s, 5, 4)
            yield s(
                s.array(*rows, 4), weight, scale, s.array(5), activations=activations
            ).without_gradient()
        for m, n, k in ((1, 33, 100), (7, 65, 130), (40, 20, 67), (0, 5, 4), (3, 5, 0)):
            weight, scale = _weights(s, n, k)
            call = s(s.array(m, k), weight, scale, activations=activations)
            yield call.without_gradient().loosely(8)
        weight, scale = _weights(s, 6, 8)
        strided = s(
            s.strided(3, 8),
            weight[:, ::2].repeat(2, 1),
            scale,
            s.strided(6),
            activations=activations,
        )
        yield strided.without_gradient()
        yield s(
            s.array(3, 8) * s.np.float32([[0], [1], [2]]), weight, scale, activations=activations
        ).without_gradient()


linear_int8.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), *_weights(s, 4, 2)),
    contains=["linear_int8", "input", "weight", "(2, 3)", "(4, 2)"],
)
linear_int8.error(
    "ShapeError",
    lambda s: s(s.array(), *_weights(s, 4, 2)),
    contains=["linear_int8", "input", "()"],
)
linear_int8.error(
    "ShapeError",
    lambda s: s(s.array(2), s.array(2, dtype="int8"), s.array(2)),
    contains=["linear_int8", "weight", "(2,)"],
)
linear_int8.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(4, 3, dtype="int8"), s.array(3)),
    contains=["linear_int8", "scale", "(4,)", "(3,)"],
)
linear_int8.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), *_weights(s, 4, 3), s.array(3)),
    contains=["linear_int8", "bias", "(4,)", "(3,)"],
)
linear_int8.error(
    "ShapeError",
    lambda s: s(s.array(131073), *_weights(s, 1, 131073), activations=True),
    contains=["linear_int8", "activations", "131072", "(1, 131073)"],
)
linear_int8.error(
    "DTypeError",
    lambda s: s(s.array(2, 3, dtype="float64"), *_weights(s, 4, 3)),
    contains=["linear_int8", "input", "float64"],
)
linear_int8.error(
    "DTypeError",
    lambda s: s(s.array(2, 3), s.array(4, 3), s.array(4)),
    contains=["linear_int8", "weight", "int8", "float32"],
)
linear_int8.error(
    "DTypeError",
    lambda s: s(s.array(2, 3), s.array(4, 3, dtype="int8"), s.array(4, dtype="float64")),
    contains=["linear_int8", "scale", "float64"],
)
linear_int8.error(
    "DTypeError",
    lambda s: s(s.array(2, 3), *_weights(s, 4, 3), s.array(4, dtype="float64")),
    contains=["linear_int8", "bias", "float32", "float64"],
)
