"""Hyperbolic functions and their inverses."""

import math

import numpy as np

from plait_ops.calls import conj, mul, rsqrt, square
from plait_ops.spec import Pointwise
from plait_ops.unary import float_function
from plait_ops.words import conjugate, is_complex

asinh = float_function("asinh", "The number whose hyperbolic sine is `self`.", np.arcsinh, 0.0, 0.0)
acosh = float_function(
    "acosh",
    "The number from 0 on whose hyperbolic cosine is `self`; nan below 1.",
    np.arccosh,
    1.0,
    0.0,
    (1.2, 9.0),
)
atanh = float_function(
    "atanh",
    "The number whose hyperbolic tangent is `self`; infinite at -1 and 1, nan outside.",
    np.arctanh,
    0.0,
    0.0,
    (-0.9, 0.9),
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


WIDE = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-30, 1e30, -1e30, 1.5]
for each in (asinh, acosh, atanh):
    each.samples(
        lambda s, domain=each.domain: iter(
            [s(np.array(WIDE, dtype)).without_gradient() for dtype in ("float32", "float64")]
            + [s(s.array(500, low=domain[0], high=domain[1]))]
        )
    )


_SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-30, 80.0, -80.0, 1e30]
tanh = float_function("tanh", "The hyperbolic tangent.", np.tanh, 0.0, 0.0)


tanh_backward = Pointwise(
    "tanh_backward(Tensor grad, Tensor result) -> Tensor",
    doc="``grad * (1 - result ** 2)``: the derivative of `tanh`.",
    dtypes="floating",
    internal=True,
    reference=lambda g, y: g * (1 - y * y),
)


@tanh.vjp("self")
def _(g, result):
    if is_complex(g.dtype):
        return g * conj(1.0 - result * result)
    return tanh_backward(g, result)


@tanh_backward.vjp("grad")
def _(g, result):
    return tanh_backward(g, result)


@tanh_backward.vjp("result")
def _(g, grad, result):
    return mul(g * grad * -2.0, result)


tanh.samples(
    lambda s: iter(
        [s(np.array(_SPECIAL, dtype)).without_gradient() for dtype in ("float32", "float64")]
        + [s(s.array(1000, high=9.0, low=0.0))]
    )
)
sinh = float_function("sinh", "The hyperbolic sine.", np.sinh, 0.0, 0.0)
cosh = float_function("cosh", "The hyperbolic cosine.", np.cosh, 0.0, 1.0)


@sinh.vjp("self")
def _(g, self):
    return g * conjugate(cosh(self))


@cosh.vjp("self")
def _(g, self):
    return g * conjugate(sinh(self))


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
