"""Test data of pointwise/gamma: references in NumPy, sample calls, errors."""

import math

import numpy as np

from plait_ops.specs.pointwise.gamma import (
    LOG_PI,
    digamma,
    gammainc,
    gammaincc,
    lgamma,
    mvlgamma,
    polygamma,
    polygamma_elements,
    polygamma_n,
    zeta,
)

each = np.vectorize


def _zeta(s, q):
    """Sum the first 1000 terms and add the rest by Euler and Maclaurin's formula."""
    if not (s >= 1 and q > 0):
        return math.nan if s < 1 else math.inf
    if s == 1:
        return math.inf
    k = np.arange(1000) + float(q)
    last = q + 1000
    tail = last ** (1 - s) / (s - 1) + last**-s / 2 + s * last ** (-s - 1) / 12
    return float(np.sum(k**-s)) + tail


def _lgamma(x):
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


def digamma_number(x):
    """Shift the argument above 30, where two terms of the expansion are exact in float64."""
    if x == 0:
        return math.copysign(math.inf, -x)
    if x < 0:
        whole = x == math.floor(x)
        return math.nan if whole else digamma_number(1 - x) - math.pi / math.tan(math.pi * x)
    steps = 0.0
    while x < 30:
        steps, x = steps + 1 / x, x + 1
    z = 1 / (x * x)
    tail = z / 12 - z**2 / 120 + z**3 / 252 - z**4 / 240
    return math.log(x) - 0.5 / x - tail - steps


def _polygamma(x, n):
    return digamma_number(x) if n == 0 else (-1) ** (n + 1) * math.factorial(n) * _zeta(n + 1.0, x)


def gammainc_number(a, x):
    """Sum of x^k / (a + 1) ... (a + k), all terms positive."""
    if a < 0 or x < 0 or (a == 0 and x == 0):
        return math.nan
    if a == 0 or x == 0:
        return 1.0 if a == 0 else 0.0
    k = np.arange(1, 400)
    total = 1 + float(np.sum(np.exp(np.cumsum(np.log(x / (a + k))))))
    return total * math.exp(a * math.log(x) - x - math.lgamma(a + 1))


def _unary(operator, reference):
    operator.reference(each(reference, otypes=["float64"]))
    operator.samples(lambda s: iter([s(s.array(100, dtype="float64", low=0.3, high=40.0))]))


_unary(lgamma, _lgamma)
_unary(digamma, digamma_number)


@digamma.samples
def _(s):
    yield s(np.array([0.0, -0.0, 1.0, -1.0, np.nan, np.inf, 1e10, -2.5])).without_gradient()
    yield s(s.array(60, dtype="float64", low=-0.9, high=-0.1))
    yield s(s.array(60, dtype="float64", low=0.3, high=40.0))


polygamma_elements.reference(lambda x, n: each(_polygamma, otypes=["float64"])(x, n))
polygamma.reference(lambda self, n: polygamma_elements(self, n))
polygamma_n.reference(lambda n, self: polygamma_elements(self, n))
polygamma.samples(
    lambda s: iter(
        [s(s.array(3, 4, low=0.3), n) for n in (0, 1, 2, 5)]
        + [s(s.strided(3, 4, dtype="float64", low=0.3), 3), s(s.array(3, dtype="int64", low=1), 1)]
    )
)
polygamma_n.samples(lambda s: iter([s(n, s.array(3, low=0.3)) for n in (0, 1, 2)]))
polygamma.error("ValueError", lambda s: s(s.array(2), -1), contains=["polygamma", "n", "-1"])
polygamma_n.error("ValueError", lambda s: s(-1, s.array(2)), contains=["polygamma", "n", "-1"])


@mvlgamma.reference
def _(self, p):
    x = self.astype("float32") if self.dtype.kind in "biu" else self
    log_gamma = each(_lgamma, otypes=["float64"])
    total = p * (p - 1) / 4 * LOG_PI + sum(log_gamma(x - i / 2) for i in range(p))
    return np.asarray(total).astype(x.dtype)


mvlgamma.samples(
    lambda s: iter(
        [
            s(s.array(3, 4, low=2.0), 3),
            s(s.array(3, low=0.5), 1),
            s(s.strided(2, 3, dtype="float64", low=3.0, high=9.0), 4),
            s(s.array(3, dtype="int64", low=1), 2),
        ]
    )
)
mvlgamma.error("ValueError", lambda s: s(s.array(2), 0), contains=["mvlgamma", "p", "0"])


def _binary(operator, reference):
    operator.reference(each(reference, otypes=["float64"]))


_binary(zeta, _zeta)
_binary(gammainc, gammainc_number)
_binary(gammaincc, lambda a, x: 1 - gammainc_number(a, x))


polygamma_elements.special_values = False  # no order is infinite

zeta.special_values = False  # the reference is for finite numbers
