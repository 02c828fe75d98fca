"""Bessel functions, Airy's function. Tests compare with integrals (DLMF 10.9.1, 10.32.1, 10.32.9, 9.5.8)."""

import math

import numpy as np

from plait_ops.calls import div, eq, masked_fill, mul, where
from plait_ops.calls import sign as sign_
from plait_ops.spec import Pointwise

_ANGLES = (np.arange(400) + 0.5) * (math.pi / 400)
_STEPS = np.arange(0, 40, 1 / 16)


def _j(n, x):
    """(1/pi) integral of cos(n a - x sin a), by the midpoint rule, which is exact for periodic functions."""
    return float(np.mean(np.cos(n * _ANGLES - x * np.sin(_ANGLES))))


def _i(n, x):
    return float(np.mean(np.exp(x * np.cos(_ANGLES)) * np.cos(n * _ANGLES)))


def _scaled_k(n, x):
    """exp(x) K_n(x): the integral of exp(-x (cosh t - 1)) cosh(n t), by the trapezoidal rule."""
    if not x > 0:
        return math.inf if x == 0 else math.nan
    with np.errstate(over="ignore"):
        values = np.exp(-x * (np.cosh(_STEPS) - 1)) * np.cosh(n * _STEPS)
    values = np.where(np.isfinite(values), values, 0)
    return float((np.sum(values) - values[0] / 2) / 16)


def _y0(x):
    """Neumann's series (DLMF 10.8.3 with 10.23.1)."""
    if not x > 0:
        return -math.inf if x == 0 else math.nan
    tail = sum((-1) ** k * _j(2 * k, x) / k for k in range(1, 40))
    return 2 / math.pi * (math.log(x / 2) + 0.5772156649015329) * _j(0, x) - 4 / math.pi * tail


def _y1(x):
    """Minus the derivative of that series."""
    if not x > 0:
        return -math.inf if x == 0 else math.nan
    tail = sum((-1) ** k * (_j(2 * k - 1, x) - _j(2 * k + 1, x)) / (2 * k) for k in range(1, 40))
    scale = math.log(x / 2) + 0.5772156649015329
    slope = 2 / math.pi * (_j(0, x) / x - scale * _j(1, x)) - 4 / math.pi * tail
    return -slope


def _airy(x):
    """The Maclaurin series, for moderate x."""
    f, g, sum_f, sum_g = 1.0, x, 1.0, x
    for k in range(1, 40):
        f *= x**3 / ((3 * k - 1) * (3 * k))
        g *= x**3 / ((3 * k) * (3 * k + 1))
        sum_f, sum_g = sum_f + f, sum_g + g
    return 0.3550280538878172 * sum_f - 0.2588194037928068 * sum_g


def _special(name, text, reference, at, domain=(-3.0, 3.0), high=None):
    public = name.removeprefix("special_")
    operator = Pointwise(
        f"{name}(Tensor self) -> Tensor",
        doc=f"""
    {text}

    >>> import plait_core as pc
    >>> round(pc.special.{public}(pc.tensor([{at[0]}])).item(), 4)
    {at[1]}
    """,
        promote="float",
        reference=np.vectorize(reference, otypes=["float64"]),
        domain=domain,
        inplace=False,
        method=False,
    )
    operator.extremes = False  # the reference is for finite numbers
    operator.samples(
        lambda s: iter([s(s.array(60, dtype="float64", low=domain[0], high=high or domain[1]))])
    )
    return operator


j0 = _special(
    "special_bessel_j0",
    "The Bessel function of the first kind of order 0.",
    lambda x: _j(0, x),
    ("0.0", 1.0),
    high=30.0,
)
j1 = _special(
    "special_bessel_j1",
    "The Bessel function of the first kind of order 1.",
    lambda x: _j(1, x),
    ("1.0", 0.4401),
    high=30.0,
)
y0 = _special(
    "special_bessel_y0",
    "The Bessel function of the second kind of order 0: -inf at 0, nan below.",
    _y0,
    ("1.0", 0.0883),
    (0.3, 3.0),
    20.0,
)
y1 = _special(
    "special_bessel_y1",
    "The Bessel function of the second kind of order 1: -inf at 0, nan below.",
    _y1,
    ("1.0", -0.7812),
    (0.3, 3.0),
    20.0,
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
    reference=np.vectorize(lambda x: _i(0, x), otypes=["float64"]),
)
i0.extremes = False  # the reference is for finite numbers
i0.samples(lambda s: iter([s(s.array(60, dtype="float64", low=-30.0, high=30.0))]))
i0e = _special(
    "special_i0e",
    "``exp(-abs(self)) * i0(self)``.",
    lambda x: math.exp(-abs(x)) * _i(0, x),
    ("1.0", 0.4658),
    high=30.0,
)
i1 = _special(
    "special_i1",
    "The modified Bessel function of the first kind of order 1.",
    lambda x: _i(1, x),
    ("1.0", 0.5652),
    high=30.0,
)
i1e = _special(
    "special_i1e",
    "``exp(-abs(self)) * i1(self)``.",
    lambda x: math.exp(-abs(x)) * _i(1, x),
    ("1.0", 0.2079),
    high=30.0,
)
k0 = _special(
    "special_modified_bessel_k0",
    "The modified Bessel function of the second kind of order 0: inf at 0, nan below.",
    lambda x: math.exp(-x) * _scaled_k(0, x),
    ("1.0", 0.421),
    (0.3, 3.0),
    20.0,
)
k1 = _special(
    "special_modified_bessel_k1",
    "The modified Bessel function of the second kind of order 1: inf at 0, nan below.",
    lambda x: math.exp(-x) * _scaled_k(1, x),
    ("1.0", 0.6019),
    (0.3, 3.0),
    20.0,
)
k0e = _special(
    "special_scaled_modified_bessel_k0",
    "``exp(self) * modified_bessel_k0(self)``.",
    lambda x: _scaled_k(0, x),
    ("1.0", 1.1445),
    (0.3, 3.0),
    50.0,
)
k1e = _special(
    "special_scaled_modified_bessel_k1",
    "``exp(self) * modified_bessel_k1(self)``.",
    lambda x: _scaled_k(1, x),
    ("1.0", 1.6362),
    (0.3, 3.0),
    50.0,
)
spherical_j0 = _special(
    "special_spherical_bessel_j0",
    "``sin(self) / self``, 1 at 0.",
    lambda x: np.sinc(x / math.pi),
    ("0.0", 1.0),
    high=30.0,
)
airy_ai = _special(
    "special_airy_ai",
    "Airy's function Ai: the solution of ``y'' = self * y`` that decays. No derivative.",
    _airy,
    ("0.0", 0.355),
)


@j0.vjp("self")
def _(g, self):
    return -g * j1(self)


@j1.vjp("self")
def _(g, self, result):
    away = masked_fill(self, eq(self, 0.0), 1.0)
    x2 = self * self  # at 0 the first terms of the series, for the derivatives of the derivative
    series = 0.5 - x2 * (3.0 / 16.0) + x2 * x2 * (5.0 / 384.0)
    slope = where(eq(self, 0.0), series, j0(self) - div(result, away))
    return g * slope


@y0.vjp("self")
def _(g, self):
    return -g * y1(self)


@y1.vjp("self")
def _(g, self, result):
    return g * (y0(self) - div(result, self))


@i0.vjp("self")
def _(g, self):
    return g * i1(self)


@i0e.vjp("self")
def _(g, self, result):
    return g * (i1e(self) - mul(sign_(self), result))


@i1.vjp("self")
def _(g, self, result):
    away = masked_fill(self, eq(self, 0.0), 1.0)
    x2 = self * self
    series = 0.5 + x2 * (3.0 / 16.0) + x2 * x2 * (5.0 / 384.0)
    return g * where(eq(self, 0.0), series, i0(self) - div(result, away))


@i1e.vjp("self")
def _(g, self, result):
    away = masked_fill(self, eq(self, 0.0), 1.0)
    slope = i0e(self) - mul(result, sign_(self)) - div(result, away)
    return g * where(eq(self, 0.0), 0.5, slope)


@k0.vjp("self")
def _(g, self):
    return -g * k1(self)


@k1.vjp("self")
def _(g, self, result):
    return -g * (k0(self) + div(result, self))


@k0e.vjp("self")
def _(g, self, result):
    return g * (result - k1e(self))


@k1e.vjp("self")
def _(g, self, result):
    return g * (result - k0e(self) - div(result, self))
