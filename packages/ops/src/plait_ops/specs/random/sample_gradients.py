"""Gamma and Dirichlet samples that can be differentiated: how they move with their parameters."""

import math

import numpy as np

from plait_ops.calls import add, clamp_min, exp, log, sum, zeros_like
from plait_ops.calls import digamma as digamma_
from plait_ops.calls import lgamma as lgamma_
from plait_ops.spec import Operator, Pointwise
from plait_ops.specs.pointwise.gamma import _digamma, _gammainc, gammainc, gammaincc
from plait_ops.specs.random.sampling import standard_gamma
from plait_ops.words import check, dense_strides, float64, require, result_as, to_dtype

_each = np.vectorize


def _gamma_gradient(a, x):
    """Difference of five places for the derivative of P(a, x)."""
    a, x, h = float(a), float(x), 1e-3
    at = [_gammainc(a + k * h, x) for k in (-2, -1, 1, 2)]
    slope = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h)
    return -slope / math.exp((a - 1) * math.log(x) - x - math.lgamma(a))


def _beta_gradient(x, a, b):
    """The power series of the incomplete beta function (DLMF 8.17.7), differentiated by terms."""
    x, a, b = float(x), float(a), float(b)
    n = np.arange(2000)
    factors = np.concatenate([[1.0], (n[1:] - b) / n[1:] * x])
    terms = np.cumprod(factors)
    log_factor = math.log(x) - _digamma(a) + _digamma(a + b)
    slope = float(np.sum(terms / (a + n))) * log_factor - float(np.sum(terms / (a + n) ** 2))
    return -slope * x * (1 - x) ** (1 - b) / (1 - x)


gamma_sample_grad = Pointwise(
    "gamma_sample_grad(Tensor self, Tensor output) -> Tensor",
    doc="""
    How samples `output` of the gamma distribution move with its shape `self` while their cumulative probability
    ``F = gammainc(self, output)`` stays: ``-(dF / dself) / density`` (Figurnov, Mohamed and Mnih 2018, "Implicit
    reparameterization gradients"). It has a derivative for `output` alone.

    >>> import plait_core as pc
    >>> round(pc.gamma_sample_grad(pc.tensor([2.0]), pc.tensor([1.5])).item(), 4)
    0.895
    """,
    dtypes="floating",
    internal=True,
    domain=(1.2, 6.0),
    reference=_each(_gamma_gradient, otypes=["float64"]),
)
beta_sample_grad = Pointwise(
    "beta_sample_grad(Tensor x, Tensor alpha, Tensor beta) -> Tensor",
    doc="""
    How samples `x` of the beta distribution move with `alpha` while their cumulative probability stays, divided by
    ``1 - x``: by that factor the other shares of a Dirichlet sample shrink.

    >>> import plait_core as pc
    >>> round(pc.beta_sample_grad(pc.tensor([0.25]), pc.tensor([1.0]), pc.tensor([1.0])).item(), 4)
    0.4621
    """,
    dtypes="floating",
    internal=True,
    domain=(0.15, 0.85),
    reference=_each(_beta_gradient, otypes=["float64"]),
)

dirichlet_sample = Operator(
    "dirichlet_sample(Tensor self, *, Generator? generator=None) -> Tensor",
    doc="""
    Shares drawn from the Dirichlet distribution with the concentrations in the last dimension of `self`: gamma samples
    divided by their sum. The gradient is that of the marginal beta distributions, which has the least variance.

    Dtypes: floating; the result has the same. Raises: ShapeError if `self` is 0-d.

    >>> import plait_core as pc
    >>> shares = pc.dirichlet_sample(pc.tensor([1.0, 2.0, 3.0]))
    >>> bool((shares.sum() - 1).abs() < 1e-6)
    True
    """,
    random=True,
    dtypes="floating",
    internal=True,
    method=False,
)


@dirichlet_sample.shape
def _(self):
    require("self", self.dtype, "floating")
    check(self.ndim > 0, f"`self` must have a dimension of concentrations; got shape {self.shape}")
    return result_as(self.shape, self.dtype, dense_strides(self))


@gamma_sample_grad.vjp("output")
def _(g, self, output, result):
    # of -F_a / p, with F_ax = p_a and log p = (a - 1) log x - x - lgamma(a)
    return g * (digamma_(self) - log(output) - result * ((self - 1.0) / output - 1.0))


@standard_gamma.vjp("self")
def _(g, self, result):
    return g * gamma_sample_grad(self, result)


@gammainc.vjp("self")
def _(g, self, other):
    x = add(zeros_like(self), other)
    density = exp((self - 1.0) * log(x) - x - lgamma_(self))
    return -(g * gamma_sample_grad(add(zeros_like(x), self), x) * density)


@gammaincc.vjp("self")
def _(g, self, other):
    x = add(zeros_like(self), other)
    density = exp((self - 1.0) * log(x) - x - lgamma_(self))
    return g * gamma_sample_grad(add(zeros_like(x), self), x) * density


@dirichlet_sample.decompose
def _(self, generator):
    # In float64, whose gamma samples of small shapes underflow later, and never to 0 shares.
    made = standard_gamma(to_dtype(self, float64), generator=generator)
    shares = made / clamp_min(sum(made, [-1], True), 1e-300)
    least = 2.3e-308 if self.dtype == float64 else 1.2e-38
    return to_dtype(clamp_min(shares, least), self.dtype)


@dirichlet_sample.vjp("self")
def _(g, self, result):
    # The rest of a concentration is a difference: in float64, where it may be small beside it.
    wide = to_dtype(self, float64)
    rest = to_dtype(sum(wide, [-1], True) - wide, self.dtype)
    moved = beta_sample_grad(result, self, rest)
    return moved * (g - sum(result * g, [-1], True))


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
