"""`gelu` and its derivatives."""

import math

import numpy as np

from plait_ops.calls import exp
from plait_ops.calls import tanh as tanh_
from plait_ops.spec import Composite, Pointwise
from plait_ops.specs.pointwise.activations import SPECIAL
from plait_ops.words import check

SQRT_HALF = math.sqrt(0.5)
DENSITY_AT_0 = 1.0 / math.sqrt(2.0 * math.pi)
GELU_SCALE = math.sqrt(2.0 / math.pi)
GELU_CUBE = 0.044715

_erf = np.vectorize(math.erf, otypes=["float64"])


def _gelu(x):
    return 0.5 * x * (1 + _erf(x * SQRT_HALF))


def _gelu_backward(g, x):
    return g * (0.5 * (1 + _erf(x * SQRT_HALF)) + x * DENSITY_AT_0 * np.exp(-0.5 * x * x))


def _gelu_tanh_backward(g, x):
    t = np.tanh(GELU_SCALE * (x + GELU_CUBE * x**3))
    slope = GELU_SCALE * (1 + 3 * GELU_CUBE * x * x)
    return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope)


gelu_erf = Pointwise(
    "gelu_erf(Tensor self) -> Tensor",
    doc="`gelu` by its definition.",
    dtypes="floating",
    scalar="gelu",
    internal=True,
    reference=_gelu,
)
gelu_tanh = Pointwise(
    "gelu_tanh(Tensor self) -> Tensor",
    doc='`gelu` with `approximate` "tanh".',
    dtypes="floating",
    internal=True,
    reference=lambda x: 0.5 * x * (1 + np.tanh(GELU_SCALE * (x + GELU_CUBE * x**3))),
)
gelu_erf_backward = Pointwise(
    "gelu_erf_backward(Tensor grad, Tensor self) -> Tensor",
    doc="The derivative of `gelu_erf`: ``grad * (P(self) + self * p(self))``, P the normal distribution and p its density.",
    dtypes="floating",
    internal=True,
    reference=_gelu_backward,
)
gelu_tanh_backward = Pointwise(
    "gelu_tanh_backward(Tensor grad, Tensor self) -> Tensor",
    doc="The derivative of `gelu_tanh`.",
    dtypes="floating",
    internal=True,
    reference=_gelu_tanh_backward,
)
gelu = Composite(
    'gelu(Tensor self, *, str approximate="none") -> Tensor',
    doc="""
    ``self * P(self)`` with the normal distribution function ``P(x) = (1 + erf(x / sqrt(2))) / 2`` (Hendrycks and Gimpel 2016).
    `approximate` "tanh" computes ``self / 2 * (1 + tanh(sqrt(2 / pi) * (self + 0.044715 * self ** 3)))``.

    Shape: the result has the shape of `self`.
    Dtypes: floating-point dtypes.
    Raises: ValueError for another `approximate`, DTypeError for other dtypes.

    >>> import plait_core as pc
    >>> pc.gelu(pc.tensor([0.0, 100.0])).tolist()
    [0.0, 100.0]
    """,
    out=True,
    inplace=True,
    dtypes="floating",
)


@gelu.decompose
def _(self, approximate):
    if approximate == "tanh":
        return gelu_tanh(self)
    check(
        approximate == "none",
        f'`approximate` must be "none" or "tanh"; got "{approximate}"',
        "ValueError",
    )
    return gelu_erf(self)


gelu.reference(
    lambda self, approximate="none": (gelu_tanh if approximate == "tanh" else gelu_erf)(self)
)


@gelu_erf.vjp("self")
def _(g, self):
    return gelu_erf_backward(g, self)


@gelu_erf_backward.vjp("grad")
def _(g, self):
    return gelu_erf_backward(g, self)


@gelu_erf_backward.vjp("self")
def _(g, grad, self):
    square = self * self
    return g * grad * (exp(square * -0.5) * DENSITY_AT_0 * (2.0 - square))


@gelu_tanh.vjp("self")
def _(g, self):
    return gelu_tanh_backward(g, self)


@gelu_tanh_backward.vjp("grad")
def _(g, self):
    return gelu_tanh_backward(g, self)


@gelu_tanh_backward.vjp("self")
def _(g, grad, self):
    square = self * self
    t = tanh_((square * GELU_CUBE + 1.0) * self * GELU_SCALE)
    slope = (square * (3.0 * GELU_CUBE) + 1.0) * GELU_SCALE
    bend = self * (6.0 * GELU_CUBE * GELU_SCALE)
    return g * grad * (1.0 - t * t) * (slope + self * (bend - t * slope * slope * 2.0) * 0.5)


@gelu.samples
def _(s):
    yield s(s.array(3, 4))
    yield s(s.array(3, 4), approximate="tanh")
    yield s(s.array(2, 3, dtype="float64", low=-8.0, high=8.0), approximate="none")


for each in (gelu_erf, gelu_tanh):
    each.samples(
        lambda s: iter(
            [
                s(np.array(SPECIAL, "float32")).without_gradient(),
                s(s.array(200, low=-9.0, high=9.0)),
            ]
        )
    )
gelu.error(
    "ValueError",
    lambda s: s(s.array(2), approximate="sin"),
    contains=["gelu", "approximate", "sin"],
)
gelu.error("DTypeError", lambda s: s(s.array(2, dtype="int64")), contains=["self", "int64"])
