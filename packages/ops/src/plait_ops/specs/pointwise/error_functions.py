"""The error function, its inverse, the normal distribution's cumulative function, entropy."""

import math

import numpy as np

from plait_ops.calls import exp, log, mul, square
from plait_ops.calls import exp as exp_
from plait_ops.spec import Pointwise
from plait_ops.unary import float_function

SQRT_PI = math.sqrt(math.pi)
SQRT_2_PI = math.sqrt(2 * math.pi)
DENSITY = 1 / SQRT_2_PI


def _erfcx(x):
    """Laplace's continued fraction (DLMF 7.9.1)."""
    below = x
    for k in range(400, 0, -1):
        below = x + k / 2 / below
    return 1 / (SQRT_PI * below)


def _scaled_erfc(x):
    return math.exp(x * x) * math.erfc(x) if x < 2 else _erfcx(x)


def _bisect(function, low, high):
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < 0 else (low, middle)
    return (low + high) / 2


def _erfinv(x):
    if not abs(x) < 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    return _bisect(lambda y: math.erf(y) - x, -6.0, 6.0)


def _ndtr(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))


def _ndtri(p):
    if not 0 < p < 1:
        return -math.inf if p == 0 else math.inf if p == 1 else math.nan
    return _bisect(lambda y: _ndtr(y) - p, -39.0, 9.0)


def _log_ndtr(x):
    if x < -1:
        return math.log(_scaled_erfc(-x / math.sqrt(2)) / 2) - x * x / 2
    return math.log1p(-0.5 * math.erfc(x / math.sqrt(2)))


def _special(name, text, reference, at, domain=(-3.0, 3.0), wide=None, **options):
    public = f"special.{name[8:]}" if name.startswith("special_") else name
    operator = Pointwise(
        f"{name}(Tensor self) -> Tensor",
        doc=f"""
    {text}

    >>> import plait_core as pc
    >>> round(pc.{public}(pc.tensor([{at[0]}])).item(), 4)
    {at[1]}
    """,
        promote="float",
        reference=np.vectorize(reference, otypes=["float64"]),
        domain=domain,
        method="." not in public,
        inplace="." not in public,
    )
    low, high = wide or domain
    operator.samples(lambda s: iter([s(s.array(60, dtype="float64", low=low, high=high))]))
    return operator


erfinv = _special(
    "erfinv",
    "The number whose `erf` is `self`: infinite at -1 and 1, nan outside.",
    _erfinv,
    ("0.5", 0.4769),
    (-0.9, 0.9),
)
erfcx = _special(
    "special_erfcx",
    "``exp(self ** 2) * erfc(self)``, without overflow for large `self`.",
    lambda x: _scaled_erfc(x),
    ("0.0", 1.0),
    wide=(-4.0, 50.0),
)
ndtr = _special(
    "special_ndtr",
    "The normal distribution's cumulative function: ``(1 + erf(self / sqrt(2))) / 2``.",
    _ndtr,
    ("0.0", 0.5),
    wide=(-9.0, 9.0),
)
ndtri = _special(
    "special_ndtri",
    "The number whose `ndtr` is `self`: infinite at 0 and 1, nan outside.",
    _ndtri,
    ("0.5", 0.0),
    (0.1, 0.9),
    (0.001, 0.999),
)
log_ndtr = _special(
    "special_log_ndtr",
    "``log(ndtr(self))``, exact far below 0.",
    _log_ndtr,
    ("0.0", -0.6931),
    wide=(-30.0, 3.0),
)
entr = _special(
    "special_entr",
    "``-self * log(self)``: 0 at 0, -inf below.",
    lambda x: -x * math.log(x) if x > 0 else 0.0 if x == 0 else x if x != x else -math.inf,
    ("1.0", -0.0),
    (0.2, 3.0),
)


@erfinv.vjp("self")
def _(g, result):
    return g * exp(square(result)) * (SQRT_PI / 2.0)


@erfcx.vjp("self")
def _(g, self, result):
    return g * (mul(self, result) * 2.0 - 2.0 / SQRT_PI)


@ndtr.vjp("self")
def _(g, self):
    return g * exp(square(self) * -0.5) * DENSITY


@ndtri.vjp("self")
def _(g, result):
    return g * exp(square(result) * 0.5) * SQRT_2_PI


@log_ndtr.vjp("self")
def _(g, self, result):
    return g * exp(square(self) * -0.5 - result) * DENSITY


@entr.vjp("self")
def _(g, self):
    return -g * (log(self) + 1.0)


TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)


_SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-30, 80.0, -80.0, 1e30]
erf = float_function(
    "erf",
    "The error function: ``2 / sqrt(pi)`` times the integral of ``exp(-t ** 2)`` from 0 to `self`.",
    np.vectorize(math.erf, otypes=["float64"]),
    0.0,
    0.0,
    dtypes="all",
)
erfc = float_function(
    "erfc",
    "``1 - erf(self)``, exact where that is small.",
    np.vectorize(math.erfc, otypes=["float64"]),
    0.0,
    1.0,
    dtypes="all",
)


@erf.vjp("self")
def _(g, self):
    return g * (exp_(-(self * self)) * TWO_OVER_SQRT_PI)


@erfc.vjp("self")
def _(g, self):
    return g * (exp_(-(self * self)) * -TWO_OVER_SQRT_PI)


for each in (erf, erfc):
    each.samples(
        lambda s: iter(
            [s(np.array(_SPECIAL, dtype)).without_gradient() for dtype in ("float32", "float64")]
            + [s(s.array(1000, high=9.0, low=0.0))]
        )
    )

log_ndtr.extremes = False  # the reference is for finite numbers
