"""Test data of pointwise/gelu: references in NumPy, sample calls, errors."""

import math

import numpy as np

from plait_ops.samples.pointwise.activations import SPECIAL
from plait_ops.specs.pointwise.gelu import (
    DENSITY_AT_0,
    GELU_CUBE,
    GELU_SCALE,
    gelu,
    gelu_erf,
    gelu_erf_backward,
    gelu_tanh,
    gelu_tanh_backward,
)

SQRT_HALF = math.sqrt(0.5)

_erf = np.vectorize(math.erf, otypes=["float64"])


def _gelu(x):
    return 0.5 * x * (1 + _erf(x * SQRT_HALF))


def _gelu_backward(g, x):
    return g * (0.5 * (1 + _erf(x * SQRT_HALF)) + x * DENSITY_AT_0 * np.exp(-0.5 * x * x))


def _gelu_tanh_backward(g, x):
    t = np.tanh(GELU_SCALE * (x + GELU_CUBE * x**3))
    slope = GELU_SCALE * (1 + 3 * GELU_CUBE * x * x)
    return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope)


gelu_erf.reference(_gelu)
gelu_tanh.reference(lambda x: 0.5 * x * (1 + np.tanh(GELU_SCALE * (x + GELU_CUBE * x**3))))
gelu_erf_backward.reference(_gelu_backward)
gelu_tanh_backward.reference(_gelu_tanh_backward)


gelu.reference(
    lambda self, approximate="none": (gelu_tanh if approximate == "tanh" else gelu_erf)(self)
)


@gelu.samples
def _(s):
    yield s(s.array(3, 4))
    yield s(s.array(3, 4), approximate="tanh")
    yield s(s.array(2, 3, dtype="float64", low=-8.0, high=8.0), approximate="none")


for each in (gelu_erf, gelu_tanh):
    each.samples(
        lambda s: iter(
            [
                s(np.array(SPECIAL, "float32")).without_gradient(),
                s(s.array(200, low=-9.0, high=9.0)),
            ]
        )
    )
gelu.error(
    "ValueError",
    lambda s: s(s.array(2), approximate="sin"),
    contains=["gelu", "approximate", "sin"],
)
gelu.error("DTypeError", lambda s: s(s.array(2, dtype="int64")), contains=["self", "int64"])
