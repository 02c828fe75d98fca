"""Test data of pointwise/powers: references in NumPy, sample calls, errors."""

import math

import numpy as np

from plait_ops.specs.pointwise.powers import float_power, pow_, reciprocal, rsqrt, sqrt, square

_SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-30, 80.0, -80.0, 1e30]

sqrt.reference(np.sqrt)
rsqrt.reference(lambda x: 1 / np.sqrt(x))
reciprocal.reference(lambda x: 1 / x)
square.reference(lambda x: x * x)


for each in (sqrt, rsqrt, reciprocal, square):
    each.samples(
        lambda s: iter(
            [s(np.array(_SPECIAL, dtype)).without_gradient() for dtype in ("float32", "float64")]
            + [s(s.array(1000, high=9.0, low=0.0))]
        )
    )


def _power(a, b):
    if a.dtype.kind in "fc":
        return np.power(a, b)
    with_sign = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0))
    return np.where(b < 0, with_sign, np.power(a, np.where(b < 0, 0, b).astype(a.dtype)))


pow_.reference(_power)


@pow_.samples
def _(s):
    yield s(s.array(8), 2)
    yield s(s.array(8), 0)
    yield s(s.array(8, low=0.5), -1.5)
    yield s(2, s.array(4))
    yield s(s.array(8, dtype="int64"), s.array(8, dtype="int64"))


pow_.error(
    "TypeError", lambda s: s(1, 2.0), contains=[pow_.schema.base, "self", "Tensor", "number"]
)
pow_.error("TypeError", lambda s: s(s.array(2), "x"), contains=[pow_.schema.base])


float_power.reference(
    lambda self, exponent: np.power(
        np.asarray(self, "float64"), np.asarray(exponent, "float64"), dtype="float64"
    )
)


@float_power.samples
def _(s):
    yield s(s.array(3, 4, low=0.2), s.array(4, low=0.2))
    yield s(s.array(3, dtype="int64", low=1), 2)
    yield s(2, s.array(3, dtype="int32", low=0))
    yield s(s.array(3, low=0.2), -1.5)


float_power.error("TypeError", lambda s: s(2, 3), contains=["`self` or `exponent`", "numbers"])
float_power.error("ShapeError", lambda s: s(s.array(2, 3), s.array(4)), contains=["(2, 3)", "(4,)"])
