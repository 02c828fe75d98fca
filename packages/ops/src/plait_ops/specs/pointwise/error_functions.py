"""The error function, its inverse, the normal distribution's cumulative function, entropy."""

import math

from plait_ops.calls import exp, log, mul, square
from plait_ops.calls import exp as exp_
from plait_ops.spec import Pointwise
from plait_ops.unary import float_function

SQRT_PI = math.sqrt(math.pi)
SQRT_2_PI = math.sqrt(2 * math.pi)
DENSITY = 1 / SQRT_2_PI


def _special(name, text, at, domain=(-3.0, 3.0), variants="function"):
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
        domain=domain,
        inplace="method" in variants,
        variants=variants,
    )
    return operator


erfinv = _special(
    "erfinv",
    "The number whose `erf` is `self`: infinite at -1 and 1, nan outside.",
    ("0.5", 0.4769),
    (-0.9, 0.9),
    variants="function method",
)
erfcx = _special(
    "special_erfcx",
    "``exp(self ** 2) * erfc(self)``, without overflow for large `self`.",
    ("0.0", 1.0),
)
ndtr = _special(
    "special_ndtr",
    "The normal distribution's cumulative function: ``(1 + erf(self / sqrt(2))) / 2``.",
    ("0.0", 0.5),
)
ndtri = _special(
    "special_ndtri",
    "The number whose `ndtr` is `self`: infinite at 0 and 1, nan outside.",
    ("0.5", 0.0),
    (0.1, 0.9),
)
log_ndtr = _special(
    "special_log_ndtr",
    "``log(ndtr(self))``, exact far below 0.",
    ("0.0", -0.6931),
)
entr = _special(
    "special_entr",
    "``-self * log(self)``: 0 at 0, -inf below.",
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
erf = float_function(
    "erf",
    "The error function: ``2 / sqrt(pi)`` times the integral of ``exp(-t ** 2)`` from 0 to `self`.",
    0.0,
    0.0,
    dtypes="all",
    variants="function function_ method",
)
erfc = float_function(
    "erfc",
    "``1 - erf(self)``, exact where that is small.",
    0.0,
    1.0,
    dtypes="all",
    variants="function function_ method",
)


@erf.vjp("self")
def _(g, self):
    return g * (exp_(-(self * self)) * TWO_OVER_SQRT_PI)


@erfc.vjp("self")
def _(g, self):
    return g * (exp_(-(self * self)) * -TWO_OVER_SQRT_PI)
