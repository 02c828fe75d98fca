"""Test data of pointwise/exponential: references in NumPy, sample calls, errors."""

import math

import numpy as np

from plait_ops.samples.pointwise_samples import NONFINITE
from plait_ops.specs.pointwise.exponential import exp, exp2, expm1

exp.reference(np.exp)
expm1.reference(np.expm1)


_SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-30, 80.0, -80.0, 1e30]


for each in (exp, expm1):
    each.samples(
        lambda s: iter(
            [s(np.array(_SPECIAL, dtype)).without_gradient() for dtype in ("float32", "float64")]
            + [s(s.array(1000, high=9.0, low=0.0))]
        )
    )
_LARGE = [*NONFINITE, 80.0, -80.0, 1e30]

exp2.reference(np.exp2)


@exp2.samples
def _(s):
    for dtype in ("float32", "float64"):
        yield s(np.array([*_LARGE, 127.5, 128.0, -126.0, -149.0, 1023.5], dtype)).without_gradient()
    yield s(s.array(1000, low=-140.0, high=120.0))
