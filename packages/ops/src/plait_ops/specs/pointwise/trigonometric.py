"""Trigonometric and hyperbolic functions; angles are in radians."""

import numpy as np

from plait_ops.calls import rsqrt, square
from plait_ops.spec import Pointwise
from plait_ops.words import conjugate


def _unary(name, text, reference, domain=(-3.0, 3.0), at=0.0, value=0.0):
    return Pointwise(
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
        dtypes="any",
    )


sin = _unary("sin", "The sine.", np.sin)
cos = _unary("cos", "The cosine.", np.cos, value=1.0)
tan = _unary("tan", "The tangent.", np.tan, (-1.2, 1.2))
asin = _unary(
    "asin",
    "The angle from -pi/2 to pi/2 whose sine is `self`; nan outside [-1, 1].",
    np.arcsin,
    (-0.9, 0.9),
)
acos = _unary(
    "acos",
    "The angle from 0 to pi whose cosine is `self`; nan outside [-1, 1].",
    np.arccos,
    (-0.9, 0.9),
    1.0,
)
atan = _unary("atan", "The angle from -pi/2 to pi/2 whose tangent is `self`.", np.arctan)
sinh = _unary("sinh", "The hyperbolic sine.", np.sinh)
cosh = _unary("cosh", "The hyperbolic cosine.", np.cosh, value=1.0)


@sin.vjp("self")
def _(g, self):
    return g * conjugate(cos(self))


@cos.vjp("self")
def _(g, self):
    return -g * conjugate(sin(self))


@tan.vjp("self")
def _(g, result):
    return g * conjugate(square(result) + 1.0)


@asin.vjp("self")
def _(g, self):
    return g * conjugate(rsqrt(1.0 - square(self)))


@acos.vjp("self")
def _(g, self):
    return -g * conjugate(rsqrt(1.0 - square(self)))


@atan.vjp("self")
def _(g, self):
    return g / conjugate(square(self) + 1.0)


@sinh.vjp("self")
def _(g, self):
    return g * conjugate(cosh(self))


@cosh.vjp("self")
def _(g, self):
    return g * conjugate(sinh(self))


for each in (sin, cos, tan, asin, acos, atan, sinh, cosh):
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
