"""Test data of pointwise/bessel: references in NumPy, sample calls, errors."""

import math

import numpy as np

from plait_ops.specs.pointwise.bessel import (
    airy_ai,
    i0,
    i0e,
    i1,
    i1e,
    j0,
    j1,
    k0,
    k0e,
    k1,
    k1e,
    spherical_j0,
    y0,
    y1,
)

_ANGLES = (np.arange(400) + 0.5) * (math.pi / 400)
_STEPS = np.arange(0, 40, 1 / 16)


def _j(n, x):
    """(1/pi) integral of cos(n a - x sin a), by the midpoint rule, which is exact for periodic
    functions.
    """
    return float(np.mean(np.cos(n * _ANGLES - x * np.sin(_ANGLES))))


def _i(n, x):
    with np.errstate(over="ignore"):
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
    """Minus the derivative of the series of `_y0`."""
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


def _special(operator, reference, high=None):
    operator.reference(np.vectorize(reference, otypes=["float64"]))
    operator.special_values = False  # the reference is for finite numbers
    operator.samples(
        lambda s: iter(
            [
                s(
                    s.array(
                        60, dtype="float64", low=operator.domain[0], high=high or operator.domain[1]
                    )
                )
            ]
        )
    )


_special(j0, lambda x: _j(0, x), high=30.0)
_special(j1, lambda x: _j(1, x), high=30.0)
_special(y0, _y0, 20.0)
_special(y1, _y1, 20.0)
i0.reference(np.vectorize(lambda x: _i(0, x), otypes=["float64"]))
i0.samples(lambda s: iter([s(s.array(60, dtype="float64", low=-30.0, high=30.0))]))
_special(i0e, lambda x: math.exp(-abs(x)) * _i(0, x), high=30.0)
_special(i1, lambda x: _i(1, x), high=30.0)
i1.special_values = True  # its reference knows them
_special(i1e, lambda x: math.exp(-abs(x)) * _i(1, x), high=30.0)
_special(k0, lambda x: math.exp(-x) * _scaled_k(0, x), 20.0)
_special(k1, lambda x: math.exp(-x) * _scaled_k(1, x), 20.0)
_special(k0e, lambda x: _scaled_k(0, x), 50.0)
_special(k1e, lambda x: _scaled_k(1, x), 50.0)
_special(spherical_j0, lambda x: np.sinc(x / math.pi), high=30.0)
_special(airy_ai, _airy)
