"""Test data of pointwise/logarithms: references in NumPy, sample calls, errors."""

import math

import numpy as np

from plait_ops.samples.pointwise_samples import NONFINITE
from plait_ops.specs.pointwise.logarithms import (
    inverse_sigmoid,
    log,
    log1p,
    log2,
    log10,
    log_odds,
    logaddexp,
    logaddexp2,
    xlog1py,
    xlogy,
)

_LARGE = [*NONFINITE, 80.0, -80.0, 1e30]


def _log_sum(operator, reference):
    operator.reference(reference)

    @operator.samples
    def _(s):
        values = np.array(_LARGE, "float32")
        yield s(values[:, None], values).without_gradient()
        yield s(s.array(200, low=-90.0, high=90.0), s.array(200, low=-90.0, high=90.0))


def _logaddexp(a, b):
    if a.dtype.kind != "c":
        return np.logaddexp(a, b)
    high, low = np.where(a.real >= b.real, a, b), np.where(a.real >= b.real, b, a)
    return high + np.log1p(np.exp(low - high))


_log_sum(logaddexp, _logaddexp)
_log_sum(logaddexp2, np.logaddexp2)


def _xlog(function):
    def reference(a, b):
        return np.where(np.isnan(b), np.nan, np.where(a == 0, 0, a * function(b)))

    return reference


def _times_log(operator, function):
    operator.reference(_xlog(function))

    @operator.samples
    def _(s):
        values = np.array([0.0, 1.0, -0.0, np.inf, np.nan, -2.0], "float32")
        yield s(values[:, None], values).without_gradient()


_times_log(xlogy, np.log)
_times_log(xlog1py, np.log1p)
log_odds.reference(lambda x: np.log(x / (1 - x)))


@inverse_sigmoid.reference
def _(self, eps=None):
    x = self.astype("float32") if self.dtype.kind in "biu" else self
    return log_odds(x if eps is None else np.clip(x, eps, 1 - eps))


@inverse_sigmoid.samples
def _(s):
    yield s(s.array(3, 4, low=0.1, high=0.9))
    yield s(s.strided(3, 4, low=0.1, high=0.9))
    yield s(np.array([0.0, 0.2, 1.0], "float64"), 0.1).without_gradient()
    yield s(np.array([0.0, 1.0, 2.0, np.nan], "float32")).without_gradient()
    yield s(np.array([0, 1]))
    yield s(s.array(low=0.1, high=0.9))


inverse_sigmoid.error("TypeError", lambda s: s("x"), contains=["logit", "self"])


_SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-30, 80.0, -80.0, 1e30]

log.reference(np.log)
log2.reference(np.log2)
log10.reference(np.log10)
log1p.reference(np.log1p)


for each in (log, log2, log10, log1p):
    each.samples(
        lambda s: iter(
            [s(np.array(_SPECIAL, dtype)).without_gradient() for dtype in ("float32", "float64")]
            + [s(s.array(1000, high=9.0, low=0.0))]
        )
    )
