"""Exponentials, logarithms, powers and error functions."""

import math

import numpy as np

from plait_ops.calls import conj, mul
from plait_ops.calls import exp as exp_
from plait_ops.spec import Pointwise
from plait_ops.words import conjugate, is_complex


def _unary(name, text, reference, at, value, domain=(-3.0, 3.0), dtypes="any"):
    return Pointwise(
        f"{name}(Tensor self) -> Tensor",
        doc=f"""
    {text}

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([{at}])).tolist()
    [{value}]
    """,
        promote="float",
        reference=reference,
        domain=domain,
        dtypes=dtypes,
    )


exp = _unary("exp", "``e ** self``.", np.exp, 0.0, 1.0)
expm1 = _unary("expm1", "``e ** self - 1``, exact near 0.", np.expm1, 0.0, 0.0)
log = _unary("log", "The natural logarithm; -inf at 0, nan below.", np.log, 1.0, 0.0, (0.2, 3.0))
log2 = _unary(
    "log2", "The logarithm to base 2; -inf at 0, nan below.", np.log2, 8.0, 3.0, (0.2, 3.0)
)
log10 = _unary(
    "log10", "The logarithm to base 10; -inf at 0, nan below.", np.log10, 100.0, 2.0, (0.2, 3.0)
)
log1p = _unary(
    "log1p",
    "``log(1 + self)``, exact near 0; -inf at -1, nan below.",
    np.log1p,
    0.0,
    0.0,
    (-0.8, 3.0),
)
sqrt = _unary("sqrt", "The square root; nan below 0.", np.sqrt, 9.0, 3.0, (0.2, 3.0))
rsqrt = _unary(
    "rsqrt",
    "``1 / sqrt(self)``; inf at 0, nan below.",
    lambda x: 1 / np.sqrt(x),
    4.0,
    0.5,
    (0.2, 3.0),
)
reciprocal = _unary("reciprocal", "``1 / self``; inf at 0.", lambda x: 1 / x, 4.0, 0.25, (0.2, 3.0))
erf = _unary(
    "erf",
    "The error function: ``2 / sqrt(pi)`` times the integral of ``exp(-t ** 2)`` from 0 to `self`.",
    np.vectorize(math.erf, otypes=["float64"]),
    0.0,
    0.0,
    dtypes="all",
)
erfc = _unary(
    "erfc",
    "``1 - erf(self)``, exact where that is small.",
    np.vectorize(math.erfc, otypes=["float64"]),
    0.0,
    1.0,
    dtypes="all",
)
sigmoid = _unary(
    "sigmoid",
    "The logistic function ``1 / (1 + exp(-self))``.",
    lambda x: 1 / (1 + np.exp(-x)),
    0.0,
    0.5,
)
tanh = _unary("tanh", "The hyperbolic tangent.", np.tanh, 0.0, 0.0)
square = Pointwise(
    "square(Tensor self) -> Tensor",
    doc="""
    ``self * self``; bools count as integers.

    >>> import plait_core as pc
    >>> pc.square(pc.tensor([3, -2])).tolist()
    [9, 4]
    """,
    promote="number",
    dtypes="any",
    reference=lambda x: x * x,
)

TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)
LOG_2 = math.log(2.0)
LOG_10 = math.log(10.0)


@exp.vjp("self")
def _(g, result):
    return g * conjugate(result)


@expm1.vjp("self")
def _(g, result):
    return g * conjugate(result + 1.0)


@log.vjp("self")
def _(g, self):
    return g / conjugate(self)


@log2.vjp("self")
def _(g, self):
    return g / conjugate(self * LOG_2)


@log10.vjp("self")
def _(g, self):
    return g / conjugate(self * LOG_10)


@log1p.vjp("self")
def _(g, self):
    return g / conjugate(self + 1.0)


@sqrt.vjp("self")
def _(g, result):
    return g / conjugate(result * 2.0)


@rsqrt.vjp("self")
def _(g, result):
    return g * conjugate(result * result * result) * -0.5


@reciprocal.vjp("self")
def _(g, result):
    return -g * conjugate(result * result)


@erf.vjp("self")
def _(g, self):
    return g * (exp_(-(self * self)) * TWO_OVER_SQRT_PI)


@erfc.vjp("self")
def _(g, self):
    return g * (exp_(-(self * self)) * -TWO_OVER_SQRT_PI)


@square.vjp("self")
def _(g, self):
    return g * conjugate(self * 2.0)


sigmoid_backward = Pointwise(
    "sigmoid_backward(Tensor grad, Tensor result) -> Tensor",
    doc="``grad * result * (1 - result)``: the derivative of `sigmoid`.",
    dtypes="floating",
    internal=True,
    reference=lambda g, y: g * y * (1 - y),
)
tanh_backward = Pointwise(
    "tanh_backward(Tensor grad, Tensor result) -> Tensor",
    doc="``grad * (1 - result ** 2)``: the derivative of `tanh`.",
    dtypes="floating",
    internal=True,
    reference=lambda g, y: g * (1 - y * y),
)


@sigmoid.vjp("self")
def _(g, result):
    if is_complex(g.dtype):
        return g * conj(result * (1.0 - result))
    return sigmoid_backward(g, result)


@tanh.vjp("self")
def _(g, result):
    if is_complex(g.dtype):
        return g * conj(1.0 - result * result)
    return tanh_backward(g, result)


@sigmoid_backward.vjp("grad")
def _(g, result):
    return sigmoid_backward(g, result)


@sigmoid_backward.vjp("result")
def _(g, grad, result):
    return g * grad * (1.0 - 2.0 * result)


@tanh_backward.vjp("grad")
def _(g, result):
    return tanh_backward(g, result)


@tanh_backward.vjp("result")
def _(g, grad, result):
    return mul(g * grad * -2.0, result)


_SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-30, 80.0, -80.0, 1e30]


for each in (
    exp,
    expm1,
    log,
    log2,
    log10,
    log1p,
    sqrt,
    rsqrt,
    reciprocal,
    erf,
    erfc,
    sigmoid,
    tanh,
    square,
):
    each.samples(
        lambda s: iter(
            [s(np.array(_SPECIAL, dtype)).without_gradient() for dtype in ("float32", "float64")]
            + [s(s.array(1000, high=9.0, low=0.0))]
        )
    )
