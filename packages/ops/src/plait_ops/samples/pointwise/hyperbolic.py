"""Test data of pointwise/hyperbolic: references in NumPy, sample calls, errors."""

import math

import numpy as np

from plait_ops.specs.pointwise.hyperbolic import (
    acosh,
    asinh,
    atanh,
    cosh,
    sinh,
    tanh,
    tanh_backward,
)

asinh.reference(np.arcsinh)
acosh.reference(np.arccosh)
atanh.reference(np.arctanh)


WIDE = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-30, 1e30, -1e30, 1.5]
for each in (asinh, acosh, atanh):
    each.samples(
        lambda s, domain=each.domain: iter(
            [s(np.array(WIDE, dtype)).without_gradient() for dtype in ("float32", "float64")]
            + [s(s.array(500, low=domain[0], high=domain[1]))]
        )
    )


_SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-30, 80.0, -80.0, 1e30]

tanh.reference(np.tanh)
tanh_backward.reference(lambda g, y: g * (1 - y * y))


tanh.samples(
    lambda s: iter(
        [s(np.array(_SPECIAL, dtype)).without_gradient() for dtype in ("float32", "float64")]
        + [s(s.array(1000, high=9.0, low=0.0))]
    )
)

sinh.reference(np.sinh)
cosh.reference(np.cosh)


for each in (sinh, cosh):
    each.samples(
        lambda s: iter(
            [
                s(
                    np.array([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 100.0], "float32")
                ).without_gradient(),
                s(s.array(500, low=-0.9, high=0.9)),
            ]
        )
    )
