"""`gelu` and its derivatives."""

import math

from plait_ops import calls as op
from plait_ops.spec import Composite, Pointwise
from plait_ops.words import check

DENSITY_AT_0 = 1.0 / math.sqrt(2.0 * math.pi)
GELU_SCALE = math.sqrt(2.0 / math.pi)
GELU_CUBE = 0.044715
HALF_SQRT = math.sqrt(0.5)


gelu_erf = Pointwise(
    "gelu_erf(Tensor self) -> Tensor",
    doc="`gelu` computed with the error function.",
    dtypes="floating",
    scalar="gelu",
    internal=True,
    libm="wide",
    zero_preserving=True,
)
gelu_tanh = Pointwise(
    "gelu_tanh(Tensor self) -> Tensor",
    doc='`gelu` with `approximate` "tanh".',
    dtypes="floating",
    internal=True,
    libm="wide",
    zero_preserving=True,
)
gelu_erf_backward = Pointwise(
    "gelu_erf_backward(Tensor grad, Tensor self) -> Tensor",
    doc="The derivative of `gelu_erf`: ``grad * (P(self) + self * p(self))``, P the normal distribution and p its density.",
    dtypes="floating",
    internal=True,
    widens=True,
    libm="wide",
)
gelu_tanh_backward = Pointwise(
    "gelu_tanh_backward(Tensor grad, Tensor self) -> Tensor",
    doc="The derivative of `gelu_tanh`.",
    dtypes="floating",
    internal=True,
    widens=True,
    libm="wide",
)
gelu = Composite(
    'gelu(Tensor self, *, str approximate="none") -> Tensor',
    doc="""
    ``self * P(self)`` with the normal distribution function ``P(x) = (1 + erf(x / sqrt(2))) / 2`` (Hendrycks and Gimpel
    2016). With `approximate` "tanh" it is ``self / 2 * (1 + tanh(sqrt(2 / pi) * (self + 0.044715 * self ** 3)))``.

    Shape: the result has the shape of `self`.
    Dtypes: floating-point dtypes.
    Raises: ValueError for another `approximate`, DTypeError for other dtypes.

    >>> import plait_core as pc, plait_nn.functional as F
    >>> F.gelu(pc.tensor([0.0, 100.0])).tolist()
    [0.0, 100.0]
    """,
    inplace=True,
    dtypes="floating",
    variants="",
    zero_preserving=True,
)
gelu.shard("elements")


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


@gelu_erf.vjp("self")
@gelu_erf_backward.vjp("grad")
def _(g, self):
    return gelu_erf_backward(g, self)


@gelu_erf_backward.vjp("self")
def _(g, grad, self):
    square = self * self
    return g * grad * (op.exp(square * -0.5) * DENSITY_AT_0 * (2.0 - square))


@gelu_tanh.vjp("self")
@gelu_tanh_backward.vjp("grad")
def _(g, self):
    return gelu_tanh_backward(g, self)


@gelu_tanh_backward.vjp("self")
def _(g, grad, self):
    square = self * self
    inside = (square * GELU_CUBE + 1.0) * self * GELU_SCALE
    t = op.tanh(inside)
    bell = (
        op.sigmoid(inside * 2.0) * op.sigmoid(inside * -2.0) * 4.0
    )  # 1 - t * t, exact where it is small
    slope = (square * (3.0 * GELU_CUBE) + 1.0) * GELU_SCALE
    bend = self * (6.0 * GELU_CUBE * GELU_SCALE)
    return g * grad * bell * (slope + self * (bend - t * slope * slope * 2.0) * 0.5)


@gelu_erf.decompose
def _(self):
    return self * 0.5 * (op.erf(self * HALF_SQRT) + 1.0)


@gelu_tanh.decompose
def _(self):
    inside = (self + self * self * self * GELU_CUBE) * GELU_SCALE
    return self * 0.5 * (op.tanh(inside) + 1.0)


@gelu_erf_backward.decompose
def _(grad, self):
    below = (op.erf(self * HALF_SQRT) + 1.0) * 0.5
    return grad * (below + self * DENSITY_AT_0 * op.exp(self * -0.5 * self))


@gelu_tanh_backward.decompose
def _(grad, self):
    square = self * self
    t = op.tanh((self + square * self * GELU_CUBE) * GELU_SCALE)
    slope = (square * (3.0 * GELU_CUBE) + 1.0) * GELU_SCALE
    return grad * ((t + 1.0) * 0.5 + self * 0.5 * (1.0 - t * t) * slope)
