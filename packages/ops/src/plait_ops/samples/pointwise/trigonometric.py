"""Test data of pointwise/trigonometric: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.pointwise.trigonometric import (
    acos,
    asin,
    atan,
    atan2,
    cos,
    deg2rad,
    hypot,
    rad2deg,
    sin,
    sinc,
    tan,
)

sin.reference(np.sin)
cos.reference(np.cos)
tan.reference(np.tan)
asin.reference(np.arcsin)
acos.reference(np.arccos)
atan.reference(np.arctan)


for each in (sin, cos, tan, asin, acos, atan):
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


WIDE = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-30, 1e30, -1e30, 1.5]

sinc.reference(np.sinc)
deg2rad.reference(np.deg2rad)
rad2deg.reference(np.rad2deg)


for each in (sinc, deg2rad, rad2deg):
    each.samples(
        lambda s, domain=each.domain: iter(
            [s(np.array(WIDE, dtype)).without_gradient() for dtype in ("float32", "float64")]
            + [s(s.array(500, low=domain[0], high=domain[1]))]
        )
    )
atan2.reference(np.arctan2)
hypot.reference(np.hypot)
