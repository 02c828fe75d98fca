"""Test data of pointwise/error_functions: references in NumPy, sample calls, errors."""

import math

import numpy as np

from plait_ops.specs.pointwise.error_functions import (
    SQRT_PI,
    entr,
    erf,
    erfc,
    erfcx,
    erfinv,
    log_ndtr,
    ndtr,
    ndtri,
)


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


def _special(operator, reference, wide=None):
    operator.reference(np.vectorize(reference, otypes=["float64"]))
    low, high = wide or operator.domain
    operator.samples(lambda s: iter([s(s.array(60, dtype="float64", low=low, high=high))]))


_special(erfinv, _erfinv)
_special(erfcx, lambda x: _scaled_erfc(x), wide=(-4.0, 50.0))
_special(ndtr, _ndtr, wide=(-9.0, 9.0))
_special(ndtri, _ndtri, (0.001, 0.999))
_special(log_ndtr, _log_ndtr, wide=(-30.0, 3.0))

_special(
    entr, lambda x: -x * math.log(x) if x > 0 else 0.0 if x == 0 else x if x != x else -math.inf
)


_SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-30, 80.0, -80.0, 1e30]

erf.reference(np.vectorize(math.erf, otypes=["float64"]))
erfc.reference(np.vectorize(math.erfc, otypes=["float64"]))


for each in (erf, erfc):
    each.samples(
        lambda s: iter(
            [s(np.array(_SPECIAL, dtype)).without_gradient() for dtype in ("float32", "float64")]
            + [s(s.array(1000, high=9.0, low=0.0))]
        )
    )

log_ndtr.special_values = False  # the reference is for finite numbers
