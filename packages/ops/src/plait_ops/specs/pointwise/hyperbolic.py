"""Inverse hyperbolic functions, angles in degrees, sinc."""

import numpy as np

from plait_ops.calls import (
    cos,
    div,
    eq,
    masked_fill,
    mul,
    ne,
    rsqrt,
    square,
    where,
)
from plait_ops.spec import Pointwise
from plait_ops.words import conjugate

PI = 3.141592653589793
DEGREE = 0.017453292519943295
RADIAN = 57.29577951308232


def _unary(name, text, reference, at, value, domain=(-3.0, 3.0), dtypes="any"):
    operator = Pointwise(
        f"{name}(Tensor self) -> Tensor",
        doc=f"""
    {text}

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([{at}])).tolist()
    [{value}]
    """,
        promote="float",
        reference=reference,
        domain=domain,
        dtypes=dtypes,
    )
    special = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-30, 1e30, -1e30, 1.5]

    @operator.samples
    def _(s):
        for dtype in ("float32", "float64"):
            yield s(np.array(special, dtype)).without_gradient()
        yield s(s.array(500, low=domain[0], high=domain[1]))

    return operator


asinh = _unary("asinh", "The number whose hyperbolic sine is `self`.", np.arcsinh, 0.0, 0.0)
acosh = _unary(
    "acosh",
    "The number from 0 on whose hyperbolic cosine is `self`; nan below 1.",
    np.arccosh,
    1.0,
    0.0,
    (1.2, 9.0),
)
atanh = _unary(
    "atanh",
    "The number whose hyperbolic tangent is `self`; infinite at -1 and 1, nan outside.",
    np.arctanh,
    0.0,
    0.0,
    (-0.9, 0.9),
)
sinc = _unary("sinc", "``sin(pi * self) / (pi * self)``, 1 at 0.", np.sinc, 0.0, 1.0)
deg2rad = _unary(
    "deg2rad",
    "An angle in degrees, in radians: ``self * pi / 180``.",
    np.deg2rad,
    0.0,
    0.0,
    dtypes="all",
)
rad2deg = _unary(
    "rad2deg",
    "An angle in radians, in degrees: ``self * 180 / pi``.",
    np.rad2deg,
    0.0,
    0.0,
    dtypes="all",
)


@asinh.vjp("self")
def _(g, self):
    return g * conjugate(rsqrt(square(self) + 1.0))


@acosh.vjp("self")
def _(g, self):
    return g * conjugate(rsqrt(self - 1.0) * rsqrt(self + 1.0))


@atanh.vjp("self")
def _(g, self):
    return g / conjugate(1.0 - square(self))


@sinc.vjp("self")
def _(g, self, result):
    # at 0 the first terms of its series, for the derivatives of the derivative
    away = masked_fill(self, eq(self, 0.0), 1.0)
    slope = div(cos(mul(self, PI)) - result, away)
    series = self * (square(self) * (PI**4 / 30.0) - PI**2 / 3.0)
    return g * conjugate(where(ne(self, 0.0), slope, series))


@deg2rad.vjp("self")
def _(g):
    return g * DEGREE


@rad2deg.vjp("self")
def _(g):
    return g * RADIAN
