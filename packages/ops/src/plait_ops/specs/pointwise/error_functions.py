"""The error function, its inverse, the normal distribution's cumulative function, entropy."""

import math

from plait_ops import calls as op
from plait_ops.unary import float_function, special_function

SQRT_PI = math.sqrt(math.pi)
SQRT_2_PI = math.sqrt(2 * math.pi)
DENSITY = 1 / SQRT_2_PI
INF = float("inf")


erfinv = special_function(
    "erfinv",
    "The number whose `erf` is `self`: infinite at -1 and 1, nan outside.",
    ("0.5", 0.4769),
    (-0.9, 0.9),
    variants="function method",
    libm="all",
    zero_preserving=True,
)
erfcx = special_function(
    "special_erfcx",
    "``exp(self ** 2) * erfc(self)``, without overflow for large `self`.",
    ("0.0", 1.0),
    libm="all",
)
ndtr = special_function(
    "special_ndtr",
    "The normal distribution's cumulative function: ``(1 + erf(self / sqrt(2))) / 2``.",
    ("0.0", 0.5),
    libm="all",
)
ndtri = special_function(
    "special_ndtri",
    "The number whose `ndtr` is `self`: infinite at 0 and 1, nan outside.",
    ("0.5", 0.0),
    (0.1, 0.9),
    libm="all",
)
log_ndtr = special_function(
    "special_log_ndtr", "``log(ndtr(self))``, exact far below 0.", ("0.0", -0.6931), libm="all"
)
entr = special_function(
    "special_entr",
    "``-self * log(self)``: 0 at 0, -inf below.",
    ("1.0", -0.0),
    (0.2, 3.0),
    libm="wide",
    zero_preserving=True,
)


@erfinv.vjp("self")
def _(g, self):
    return g * op.exp(op.square(erfinv(self))) * (SQRT_PI / 2.0)


@erfcx.vjp("self")
def _(g, self, result):
    return g * (op.mul(self, result) * 2.0 - 2.0 / SQRT_PI)


@ndtr.vjp("self")
def _(g, self):
    return g * op.exp(op.square(self) * -0.5) * DENSITY


@ndtri.vjp("self")
def _(g, result):
    return g * op.exp(op.square(result) * 0.5) * SQRT_2_PI


@log_ndtr.vjp("self")
def _(g, self, result):
    # far below 0 the difference has no digits left: there Laplace's continued fraction
    far = op.lt(self, -30.0)
    x = op.masked_fill(-self, op.logical_not(far), 30.0)
    tail = x + 1.0 / (x + 2.0 / (x + 3.0 / (x + 4.0 / (x + 5.0 / x))))
    return g * op.where(far, tail, op.exp(op.square(self) * -0.5 - result) * DENSITY)


@entr.vjp("self")
def _(g, self):
    return -g * (op.log(self) + 1.0)


@entr.decompose
def _(self):
    below = op.where(op.ne(self, self), self, -INF)
    none = op.where(op.eq(self, 0), 0.0, below)
    return op.where(op.gt(self, 0), -self * op.log(self), none)


TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)
erf = float_function(
    "erf",
    "The error function: ``2 / sqrt(pi)`` times the integral of ``exp(-t ** 2)`` from 0 to `self`.",
    0.0,
    0.0,
    dtypes="all",
    variants="function function_ method",
    widens=True,
    libm="wide",
    zero_preserving=True,
)
erfc = float_function(
    "erfc",
    "``1 - erf(self)``, exact where that is small.",
    0.0,
    1.0,
    dtypes="all",
    variants="function function_ method",
    widens=True,
    libm="all",
)


@erf.vjp("self")
def _(g, self):
    return g * (op.exp(-(self * self)) * TWO_OVER_SQRT_PI)


@erfc.vjp("self")
def _(g, self):
    return g * (op.exp(-(self * self)) * -TWO_OVER_SQRT_PI)
