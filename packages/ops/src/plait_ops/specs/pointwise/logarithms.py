"""Powers of two, sums of exponentials, log-odds, mantissa and exponent."""

import numpy as np

from plait_ops.calls import (
    clamp,
    eq,
    isfinite,
    logical_and,
    logical_not,
    masked_fill,
    mul,
    ones_like,
    pow,
    sigmoid,
    sub,
    zeros_like,
)
from plait_ops.spec import Composite, Pointwise
from plait_ops.words import (
    check,
    complex128,
    conjugate,
    default_dtype,
    float64,
    int32,
    is_complex,
    is_floating,
    is_tensor,
    part,
    require_common,
    to_dtype,
)

LOG_2 = 0.6931471805599453
NONFINITE = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-30, 80.0, -80.0, 1e30]

exp2 = Pointwise(
    "exp2(Tensor self) -> Tensor",
    doc="""
    ``2 ** self``.

    >>> import plait_core as pc
    >>> pc.exp2(pc.tensor([0.0, 3.0])).tolist()
    [1.0, 8.0]
    """,
    promote="float",
    reference=np.exp2,
    dtypes="any",
)


@exp2.vjp("self")
def _(g, result):
    return g * conjugate(result * LOG_2)


@exp2.samples
def _(s):
    for dtype in ("float32", "float64"):
        yield s(
            np.array([*NONFINITE, 127.5, 128.0, -126.0, -149.0, 1023.5], dtype)
        ).without_gradient()
    yield s(s.array(1000, low=-140.0, high=120.0))


def _log_sum(name, text, reference, value, dtypes="floating"):
    operator = Pointwise(
        f"{name}(Tensor self, Tensor other) -> Tensor",
        doc=f"""
    {text} Nothing overflows on the way.

    >>> import plait_core as pc
    >>> round(pc.{name}(pc.tensor([1000.0]), pc.tensor([1000.0])).item(), 2)
    {value}
    """,
        dtypes=dtypes,
        reference=reference,
    )

    @operator.samples
    def _(s):
        values = np.array(NONFINITE, "float32")
        yield s(values[:, None], values).without_gradient()
        yield s(s.array(200, low=-90.0, high=90.0), s.array(200, low=-90.0, high=90.0))

    return operator


def _logaddexp(a, b):
    if a.dtype.kind != "c":
        return np.logaddexp(a, b)
    high, low = np.where(a.real >= b.real, a, b), np.where(a.real >= b.real, b, a)
    return high + np.log1p(np.exp(low - high))


logaddexp = _log_sum(
    "logaddexp", "``log(exp(self) + exp(other))``.", _logaddexp, 1000.69, "inexact"
)
logaddexp2 = _log_sum("logaddexp2", "``log2(2 ** self + 2 ** other)``.", np.logaddexp2, 1001.0)


@logaddexp.vjp("self")
def _(g, self, other):
    return g * conjugate(sigmoid(sub(self, other)))


@logaddexp.vjp("other")
def _(g, self, other):
    return g * conjugate(sigmoid(sub(other, self)))


@logaddexp2.vjp("self")
def _(g, self, other):
    return g * sigmoid(sub(self, other) * LOG_2)


@logaddexp2.vjp("other")
def _(g, self, other):
    return g * sigmoid(sub(other, self) * LOG_2)


def _xlog(function):
    def reference(a, b):
        return np.where(np.isnan(b), np.nan, np.where(a == 0, 0, a * function(b)))

    return reference


def _times_log(name, text, function, example):
    public = name if name == "xlogy" else f"special.{name[8:]}"
    operator = Pointwise(
        f"{name}(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
        doc=f"""
    {text}, which is 0 where `self` is 0 unless `other` is nan.

    >>> import plait_core as pc
    >>> pc.{public}(pc.tensor([0.0, 2.0]), {example}).tolist()
    [0.0, 0.0]
    """,
        promote="float",
        domain=(0.2, 3.0),
        reference=_xlog(function),
        method=name == "xlogy",
        inplace=name == "xlogy",
    )

    @operator.samples
    def _(s):
        values = np.array([0.0, 1.0, -0.0, np.inf, np.nan, -2.0], "float32")
        yield s(values[:, None], values).without_gradient()

    return operator


xlogy = _times_log("xlogy", "``self * log(other)``", np.log, 1)
xlog1py = _times_log("special_xlog1py", "``self * log(1 + other)``", np.log1p, 0)


@xlogy.vjp("self")
def _(g, self, other):
    slope = xlogy(ones_like(self), other)
    return masked_fill(g * slope, logical_and(eq(self, 0.0), logical_not(isfinite(slope))), 0.0)


@xlogy.vjp("other")
def _(g, self, other):
    return mul(g, self) / other


@xlog1py.vjp("self")
def _(g, self, other):
    slope = xlog1py(ones_like(self), other)
    return masked_fill(g * slope, logical_and(eq(self, 0.0), logical_not(isfinite(slope))), 0.0)


@xlog1py.vjp("other")
def _(g, self, other):
    return mul(g, self) / (other + 1.0)


log_odds = Pointwise(
    "log_odds(Tensor self) -> Tensor",
    doc="``log(self / (1 - self))``: `logit` without bounds.",
    promote="float",
    internal=True,
    reference=lambda x: np.log(x / (1 - x)),
    domain=(0.1, 0.9),
)


@log_odds.vjp("self")
def _(g, self):
    return g / (self * (1.0 - self))


bounded = Composite(
    "logit(Tensor self, float? eps=None) -> Tensor",
    doc="""
    ``log(self / (1 - self))``, the inverse of `sigmoid`: infinite at 0 and 1, nan outside. With `eps`, `self` is first clamped
    to [eps, 1 - eps].

    Shape: that of `self`. Dtypes: floating; integers and bool become the default dtype.

    >>> import plait_core as pc
    >>> pc.logit(pc.tensor([0.5, 1.0])).tolist()
    [0.0, inf]
    """,
    inplace=True,
    out=True,
)


@bounded.decompose
def _(self, eps):
    if eps is None:
        return log_odds(self)
    return log_odds(clamp(self * 1.0, eps, 1.0 - eps))


@bounded.reference
def _(self, eps=None):
    x = self.astype("float32") if self.dtype.kind in "biu" else self
    return log_odds(x if eps is None else np.clip(x, eps, 1 - eps))


@bounded.samples
def _(s):
    yield s(s.array(3, 4, low=0.1, high=0.9))
    yield s(s.strided(3, 4, low=0.1, high=0.9))
    yield s(np.array([0.0, 0.2, 1.0], "float64"), 0.1).without_gradient()
    yield s(np.array([0.0, 1.0, 2.0, np.nan], "float32")).without_gradient()
    yield s(np.array([0, 1]))
    yield s(s.array(low=0.1, high=0.9))


bounded.error("TypeError", lambda s: s("x"), contains=["logit", "self"])


ldexp = Composite(
    "ldexp(Tensor self, Tensor other) -> Tensor",
    doc="""
    ``self * 2 ** other``, computed in float64.

    Shapes: both broadcast. Dtypes: the common one; the default dtype for two of integers.

    >>> import plait_core as pc
    >>> pc.ldexp(pc.tensor([1.5]), pc.tensor([2])).tolist()
    [6.0]
    """,
    inplace=True,
    out=True,
    dtypes="any",
)


@ldexp.decompose
def _(self, other):
    # in float64, where no power of a float32's exponent overflows
    power = exp2(other if is_complex(other.dtype) else to_dtype(other, float64))
    wide = mul(self if is_complex(self.dtype) else to_dtype(self, float64), power)
    made = require_common("self", self, "other", other)
    inexact = is_floating(made) or is_complex(made)
    return to_dtype(wide, made if inexact else default_dtype())


@ldexp.reference
def _(self, other):
    kinds = [x.dtype for x in (self, other) if x.dtype.kind == "f"]
    made = np.result_type(*kinds) if kinds else np.dtype("float32")
    return (self.astype("float64") * np.exp2(other.astype("float64"))).astype(made)


@ldexp.samples
def _(s):
    yield s(s.array(3, 4), s.array(4, dtype="int64"))
    yield s(s.array(3, dtype="int32"), s.array(3, dtype="int64"))
    yield s(s.strided(3, 4, dtype="float64"), s.array(3, 4))
    yield s(np.array([2.0**-100], "float32"), np.array([200]))
    yield s(np.array([1.0]), np.array([255]))
    yield s(s.array(0), s.array(1))


ldexp.error("ShapeError", lambda s: s(s.array(2, 3), s.array(4)), contains=["(2, 3)", "(4,)"])


frexp_mantissa = Pointwise(
    "frexp_mantissa(Tensor self) -> Tensor",
    doc="The first result of `frexp`.",
    dtypes="floating",
    internal=True,
    reference=lambda x: np.frexp(x)[0],
)
frexp_exponent = Pointwise(
    "frexp_exponent(Tensor self) -> Tensor",
    doc="The second result of `frexp`, as a floating-point number.",
    dtypes="floating",
    internal=True,
    reference=lambda x: np.where(np.isfinite(x), np.frexp(x)[1], 0),
)


@frexp_mantissa.vjp("self")
def _(g, self):
    return g * exp2(-frexp_exponent(self))


@frexp_exponent.vjp("self")
def _(g):
    return zeros_like(g)


frexp = Composite(
    "frexp(Tensor self) -> (Tensor, Tensor)",
    doc="""
    Mantissa and exponent: ``self = mantissa * 2 ** exponent`` with mantissas of magnitude in [0.5, 1) and int32 exponents.
    0, infinity and nan are their own mantissas, with exponent 0.

    Shapes: those of `self`. Dtypes: floating; DTypeError for others.

    >>> import plait_core as pc
    >>> [t.tolist() for t in pc.frexp(pc.tensor([6.0]))]
    [[0.75], [3]]
    """,
    out=True,
    dtypes="floating",
)


@frexp.decompose
def _(self):
    mantissa = frexp_mantissa(self)
    return mantissa, to_dtype(frexp_exponent(self), int32)


@frexp.reference
def _(self):
    mantissa, exponent = np.frexp(self)
    return mantissa, np.where(np.isfinite(self), exponent, 0).astype("int32")


@frexp.samples
def _(s):
    yield s(s.array(3, 4, low=0.1))
    yield s(s.strided(3, 4, dtype="float64"))
    yield s(
        np.array([0.0, np.inf, -np.inf, np.nan, 1.0, -8.0, 1e-40], "float32")
    ).without_gradient()
    yield s(s.array(0))


frexp.error("DTypeError", lambda s: s(s.array(2, dtype="int64")), contains=["self", "int64"])


float_power = Composite(
    "float_power(Tensor|Scalar self, Tensor|Scalar exponent) -> Tensor",
    doc="""
    ``self ** exponent``, computed in float64.

    Shapes: both broadcast. Dtypes: float64.

    >>> import plait_core as pc
    >>> pc.float_power(pc.tensor([2.0, 3.0], dtype=pc.float64), 2).tolist()
    [4.0, 9.0]
    """,
    inplace=True,
    out=True,
)


@part
def _widest(dtype):
    return complex128 if is_complex(dtype) else float64


@float_power.decompose
def _(self, exponent):
    check(
        is_tensor(self) or is_tensor(exponent),
        "`self` or `exponent` must be a Tensor; got numbers only",
        "TypeError",
    )
    if not is_tensor(self):
        return pow(self, to_dtype(exponent, _widest(exponent.dtype)))
    base = to_dtype(self, _widest(self.dtype))
    if not is_tensor(exponent):
        return pow(base, exponent)
    return pow(base, to_dtype(exponent, _widest(exponent.dtype)))


float_power.reference(
    lambda self, exponent: np.power(
        np.asarray(self, "float64"), np.asarray(exponent, "float64"), dtype="float64"
    )
)


@float_power.samples
def _(s):
    yield s(s.array(3, 4, low=0.2), s.array(4, low=0.2))
    yield s(s.array(3, dtype="int64", low=1), 2)
    yield s(2, s.array(3, dtype="int32", low=0))
    yield s(s.array(3, low=0.2), -1.5)


float_power.error("TypeError", lambda s: s(2, 3), contains=["`self` or `exponent`", "numbers"])
float_power.error("ShapeError", lambda s: s(s.array(2, 3), s.array(4)), contains=["(2, 3)", "(4,)"])
