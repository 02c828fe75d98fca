"""Logarithms, sums of exponentials in logarithms, log-odds."""

import math

from plait_ops import calls as op
from plait_ops.spec import Composite, Pointwise
from plait_ops.unary import float_function
from plait_ops.words import conjugate, is_complex, is_tensor, part

LOG_2 = 0.6931471805599453
LOG2_E = 1.4426950408889634
INF = float("inf")


def _log_sum(name, text, value, dtypes="floating"):
    operator = Pointwise(
        f"{name}(Tensor self, Tensor other) -> Tensor",
        doc=f"""
    {text} Intermediate results do not overflow.

    >>> import plait_core as pc
    >>> round(pc.{name}(pc.tensor([1000.0]), pc.tensor([1000.0])).item(), 2)
    {value}
    """,
        inplace=False,
        dtypes=dtypes,
        variants="function method",
        widens=True,
        libm="wide",
    )

    return operator


logaddexp = _log_sum("logaddexp", "``log(exp(self) + exp(other))``.", 1000.69, "inexact")
logaddexp2 = _log_sum("logaddexp2", "``log2(2 ** self + 2 ** other)``.", 1001.0)


@logaddexp.vjp("self")
def _(g, self, other):
    return g * conjugate(op.sigmoid(op.sub(self, other)))


@logaddexp.vjp("other")
def _(g, self, other):
    return g * conjugate(op.sigmoid(op.sub(other, self)))


@logaddexp2.vjp("self")
def _(g, self, other):
    return g * op.sigmoid(op.sub(self, other) * LOG_2)


@logaddexp2.vjp("other")
def _(g, self, other):
    return g * op.sigmoid(op.sub(other, self) * LOG_2)


@part
def _complex_log_sum(a, b):
    up = op.ge(op.real(a), op.real(b))
    high = op.where(up, a, b)
    low = op.where(up, b, a)
    none = op.eq(op.real(high), -INF)
    return op.where(none, high, high + op.log1p(op.exp(low - high)))


@logaddexp.decompose
def _(self, other):
    if is_complex(self.dtype):
        return _complex_log_sum(self, other)
    distance = op.abs(self - other)
    sum = op.where(op.gt(self, other), self, other) + op.log1p(op.exp(-distance))
    # the distance of two equal infinities is nan
    return op.where(op.ne(distance, distance), self + other, sum)


@logaddexp2.decompose
def _(self, other):
    distance = op.abs(self - other)
    above = op.log1p(op.exp2(-distance)) * LOG2_E
    sum = op.where(op.gt(self, other), self, other) + above
    return op.where(op.ne(distance, distance), self + other, sum)


def _times_log(name, text, example, variants="function"):
    public = name if name == "xlogy" else f"special.{name[8:]}"
    operator = Pointwise(
        f"{name}(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
        doc=f"""
    {text}, which is 0 where `self` is 0, unless `other` is nan.

    >>> import plait_core as pc
    >>> pc.{public}(pc.tensor([0.0, 2.0]), {example}).tolist()
    [0.0, 0.0]
    """,
        promote="float",
        domain=(0.2, 3.0),
        inplace="method" in variants,
        variants=variants,
        libm="wide",
    )

    return operator


xlogy = _times_log("xlogy", "``self * log(other)``", 1, variants="function function_ method")
xlog1py = _times_log("special_xlog1py", "``self * log(1 + other)``", 0)


@xlogy.vjp("self")
def _(g, self, other):
    slope = xlogy(op.ones_like(self), other)
    return op.masked_fill(
        g * slope, op.logical_and(op.eq(self, 0.0), op.logical_not(op.isfinite(slope))), 0.0
    )


@xlogy.vjp("other")
def _(g, self, other):
    return op.mul(g, self) / other


@xlog1py.vjp("self")
def _(g, self, other):
    slope = xlog1py(op.ones_like(self), other)
    return op.masked_fill(
        g * slope, op.logical_and(op.eq(self, 0.0), op.logical_not(op.isfinite(slope))), 0.0
    )


@xlog1py.vjp("other")
def _(g, self, other):
    return op.mul(g, self) / (other + 1.0)


@part
def _zero_at_zero(factor, argument, product):
    return op.where(op.ne(argument, argument), argument, op.where(op.eq(factor, 0), 0.0, product))


@xlogy.decompose
def _(self, other):
    if not is_tensor(self):
        factor = op.full_like(other, self)
        return _zero_at_zero(factor, other, factor * op.log(other))
    if not is_tensor(other):
        argument = op.full_like(self, other)
        return _zero_at_zero(self, argument, self * op.log(argument))
    return _zero_at_zero(self, other, self * op.log(other))


@xlog1py.decompose
def _(self, other):
    if not is_tensor(self):
        factor = op.full_like(other, self)
        return _zero_at_zero(factor, other, factor * op.log1p(other))
    if not is_tensor(other):
        argument = op.full_like(self, other)
        return _zero_at_zero(self, argument, self * op.log1p(argument))
    return _zero_at_zero(self, other, self * op.log1p(other))


log_odds = Pointwise(
    "log_odds(Tensor self) -> Tensor",
    doc="``log(self / (1 - self))``: `logit` without bounds.",
    promote="float",
    internal=True,
    domain=(0.1, 0.9),
    libm="wide",
)


@log_odds.decompose
def _(self):
    return op.log(self / (1.0 - self))


@log_odds.vjp("self")
def _(g, self):
    return g / (self * (1.0 - self))


inverse_sigmoid = Composite(
    "logit(Tensor self, float? eps=None) -> Tensor",
    doc="""
    ``log(self / (1 - self))``, the inverse of `sigmoid`: infinite at 0 and 1, nan outside. With `eps`, `self` is first clamped
    to [eps, 1 - eps].

    Args:
        eps: Elements are first clamped to [eps, 1 - eps]; None: they are not.

    Shape: that of `self`. Dtypes: floating-point dtypes; integers and bool give the default dtype.

    >>> import plait_core as pc
    >>> pc.logit(pc.tensor([0.5, 1.0])).tolist()
    [0.0, inf]
    """,
    inplace=True,
    variants="function function_ method",
)


@inverse_sigmoid.decompose
def _(self, eps):
    if eps is None:
        return log_odds(self)
    return log_odds(op.clamp_between(self * 1.0, eps, 1.0 - eps))


LOG_10 = math.log(10.0)
log = float_function(
    "log",
    "The natural logarithm; -inf at 0, nan below.",
    1.0,
    0.0,
    (0.2, 3.0),
    variants="function function_ method",
    libm="wide",
)
log2 = float_function(
    "log2",
    "The logarithm to base 2; -inf at 0, nan below.",
    8.0,
    3.0,
    (0.2, 3.0),
    variants="function function_ method",
    libm="wide",
)
log10 = float_function(
    "log10",
    "The logarithm to base 10; -inf at 0, nan below.",
    100.0,
    2.0,
    (0.2, 3.0),
    variants="function function_ method",
    libm="wide",
)
log1p = float_function(
    "log1p",
    "``log(1 + self)``, exact near 0; -inf at -1, nan below.",
    0.0,
    0.0,
    (-0.8, 3.0),
    variants="function function_ method",
    libm="wide",
    zero_preserving=True,
)


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
