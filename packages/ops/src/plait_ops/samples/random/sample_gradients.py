"""Test data of random/sample_gradients: references in NumPy, sample calls, errors."""

import math

import numpy as np

from plait_ops.samples.pointwise.gamma import digamma_number, gammainc_number
from plait_ops.specs.random.sample_gradients import (
    beta_sample_grad,
    dirichlet_sample,
    gamma_sample_grad,
)

_each = np.vectorize


def _gamma_gradient(a, x):
    """The derivative of P(a, x) by a five-point difference."""
    a, x, h = float(a), float(x), 1e-3
    at = [gammainc_number(a + k * h, x) for k in (-2, -1, 1, 2)]
    slope = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h)
    return -slope / math.exp((a - 1) * math.log(x) - x - math.lgamma(a))


def _beta_gradient(x, a, b):
    """The power series of the incomplete beta function (DLMF 8.17.7), differentiated by terms."""
    x, a, b = float(x), float(a), float(b)
    n = np.arange(2000)
    factors = np.concatenate([[1.0], (n[1:] - b) / n[1:] * x])
    terms = np.cumprod(factors)
    log_factor = math.log(x) - digamma_number(a) + digamma_number(a + b)
    slope = float(np.sum(terms / (a + n))) * log_factor - float(np.sum(terms / (a + n) ** 2))
    return -slope * x * (1 - x) ** (1 - b) / (1 - x)


gamma_sample_grad.reference(_each(_gamma_gradient, otypes=["float64"]))
beta_sample_grad.reference(_each(_beta_gradient, otypes=["float64"]))
dirichlet_sample.reference(lambda self: np.zeros(self.shape, self.dtype))
dirichlet_sample.samples(
    lambda s: iter(
        [
            s(s.array(3, 4, low=0.1)),
            s(s.strided(3, 4, low=0.1, high=30.0)),
            s(s.array(2, 0, 3, low=0.1)),
            s(s.array(1, dtype="float64", low=0.1)),
        ]
    )
)
dirichlet_sample.error("ShapeError", lambda s: s(s.array()), contains=["dirichlet_sample", "()"])
dirichlet_sample.error(
    "DTypeError",
    lambda s: s(s.array(2, dtype="int64")),
    contains=["dirichlet_sample", "self", "int64"],
)
