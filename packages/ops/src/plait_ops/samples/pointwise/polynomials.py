"""Test data of pointwise/polynomials: references in NumPy, sample calls, errors."""

import math

import numpy as np

from plait_ops.specs.pointwise.polynomials import (
    chebyshev_t,
    chebyshev_u,
    chebyshev_v,
    chebyshev_w,
    hermite_polynomial_h,
    hermite_polynomial_he,
    laguerre_polynomial_l,
    legendre_polynomial_p,
    shifted_chebyshev_t,
    shifted_chebyshev_u,
    shifted_chebyshev_v,
    shifted_chebyshev_w,
)


def _recurrence(first, step):
    """Values by p_0 = 1, p_1 = first(x), p_(k + 1) = step(k, x, p_k, p_(k - 1))."""

    def value(x, n):
        if n <= -1:
            return 0.0
        before, here = 1.0, first(x)
        if n < 1:
            return before
        for k in range(1, math.floor(n)):
            before, here = here, step(k, x, here, before)
        return here

    return value


def _polynomial(operator, first, step, shift=False):
    operator.reference(
        np.vectorize(
            lambda x, n: value(2.0 * x - 1.0 if shift else float(x), n), otypes=["float64"]
        )
    )
    value = _recurrence(first, step)

    operator.special_values = False  # no degree is infinite

    @operator.samples
    def _(s):
        yield s(s.array(40, 1, dtype="float64", low=-1.0, high=1.0), np.arange(12))
        yield s(s.array(3, dtype="float64", low=-0.9, high=0.9), 60)
        yield s(s.array(3), -1)


def _chebyshev(k, x, here, before):
    return 2 * x * here - before


_polynomial(chebyshev_t, lambda x: x, _chebyshev)
_polynomial(shifted_chebyshev_t, lambda x: x, _chebyshev, shift=True)
_polynomial(chebyshev_u, lambda x: 2 * x, _chebyshev)
_polynomial(shifted_chebyshev_u, lambda x: 2 * x, _chebyshev, shift=True)
_polynomial(chebyshev_v, lambda x: 2 * x - 1, _chebyshev)
_polynomial(shifted_chebyshev_v, lambda x: 2 * x - 1, _chebyshev, shift=True)
_polynomial(chebyshev_w, lambda x: 2 * x + 1, _chebyshev)
_polynomial(shifted_chebyshev_w, lambda x: 2 * x + 1, _chebyshev, shift=True)
_polynomial(hermite_polynomial_h, lambda x: 2 * x, lambda k, x, p, q: 2 * (x * p - k * q))
_polynomial(hermite_polynomial_he, lambda x: x, lambda k, x, p, q: x * p - k * q)

_polynomial(
    laguerre_polynomial_l,
    lambda x: 1 - x,
    lambda k, x, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1),
)

_polynomial(
    legendre_polynomial_p, lambda x: x, lambda k, x, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1)
)
