"""Bessel functions, Airy's function. Tests compare with integrals (DLMF 10.9.1, 10.32.1, 10.32.9, 9.5.8)."""

from plait_ops import calls as op
from plait_ops.spec import Pointwise
from plait_ops.unary import special_function

j0 = special_function(
    "special_bessel_j0",
    "The Bessel function of the first kind of order 0.",
    ("0.0", 1.0),
    libm="all",
)
j1 = special_function(
    "special_bessel_j1",
    "The Bessel function of the first kind of order 1.",
    ("1.0", 0.4401),
    libm="all",
    zero_preserving=True,
)
y0 = special_function(
    "special_bessel_y0",
    "The Bessel function of the second kind of order 0: -inf at 0, nan below.",
    ("1.0", 0.0883),
    (0.3, 3.0),
    libm="all",
)
y1 = special_function(
    "special_bessel_y1",
    "The Bessel function of the second kind of order 1: -inf at 0, nan below.",
    ("1.0", -0.7812),
    (0.3, 3.0),
    libm="all",
)
i0 = Pointwise(
    "i0(Tensor self) -> Tensor",
    doc="""
    The modified Bessel function of the first kind of order 0.

    >>> import plait_core as pc
    >>> round(pc.i0(pc.tensor([1.0])).item(), 4)
    1.2661
    """,
    promote="float",
    variants="function function_ method",
    libm="all",
)
i0e = special_function("special_i0e", "``exp(-abs(self)) * i0(self)``.", ("1.0", 0.4658))
i1 = special_function(
    "special_i1",
    "The modified Bessel function of the first kind of order 1.",
    ("1.0", 0.5652),
    libm="all",
    zero_preserving=True,
)
i1e = special_function(
    "special_i1e", "``exp(-abs(self)) * i1(self)``.", ("1.0", 0.2079), zero_preserving=True
)
k0 = special_function(
    "special_modified_bessel_k0",
    "The modified Bessel function of the second kind of order 0: inf at 0, nan below.",
    ("1.0", 0.421),
    (0.3, 3.0),
    libm="all",
)
k1 = special_function(
    "special_modified_bessel_k1",
    "The modified Bessel function of the second kind of order 1: inf at 0, nan below.",
    ("1.0", 0.6019),
    (0.3, 3.0),
    libm="all",
)
k0e = special_function(
    "special_scaled_modified_bessel_k0",
    "``exp(self) * modified_bessel_k0(self)``.",
    ("1.0", 1.1445),
    (0.3, 3.0),
    libm="all",
)
k1e = special_function(
    "special_scaled_modified_bessel_k1",
    "``exp(self) * modified_bessel_k1(self)``.",
    ("1.0", 1.6362),
    (0.3, 3.0),
    libm="all",
)
spherical_j0 = special_function(
    "special_spherical_bessel_j0", "``sin(self) / self``, 1 at 0.", ("0.0", 1.0), libm="all"
)
airy_ai = special_function(
    "special_airy_ai",
    "Airy's function Ai: the solution of ``y'' = self * y`` that decays. No derivative.",
    ("0.0", 0.355),
    libm="all",
)


@j0.vjp("self")
def _(g, self):
    return -g * j1(self)


@j1.vjp("self")
def _(g, self, result):
    away = op.masked_fill(self, op.eq(self, 0.0), 1.0)
    x2 = self * self  # at 0 the first terms of the series, for the derivatives of the derivative
    series = 0.5 - x2 * (3.0 / 16.0) + x2 * x2 * (5.0 / 384.0)
    slope = op.where(op.eq(self, 0.0), series, j0(self) - op.div(result, away))
    return g * slope


@y0.vjp("self")
def _(g, self):
    return -g * y1(self)


@y1.vjp("self")
def _(g, self, result):
    return g * (y0(self) - op.div(result, self))


@i0.vjp("self")
def _(g, self):
    return g * i1(self)


@i0e.vjp("self")
def _(g, self, result):
    return g * (i1e(self) - op.mul(op.sign(self), result))


@i1.vjp("self")
def _(g, self, result):
    away = op.masked_fill(self, op.eq(self, 0.0), 1.0)
    x2 = self * self
    series = 0.5 + x2 * (3.0 / 16.0) + x2 * x2 * (5.0 / 384.0)
    return g * op.where(op.eq(self, 0.0), series, i0(self) - op.div(result, away))


@i1e.vjp("self")
def _(g, self, result):
    away = op.masked_fill(self, op.eq(self, 0.0), 1.0)
    slope = i0e(self) - op.mul(result, op.sign(self)) - op.div(result, away)
    return g * op.where(op.eq(self, 0.0), 0.5, slope)


@k0.vjp("self")
def _(g, self):
    return -g * k1(self)


@k1.vjp("self")
def _(g, self, result):
    return -g * (k0(self) + op.div(result, self))


@k0e.vjp("self")
def _(g, self, result):
    return g * (result - k1e(self))


@k1e.vjp("self")
def _(g, self, result):
    return g * (result - k0e(self) - op.div(result, self))
