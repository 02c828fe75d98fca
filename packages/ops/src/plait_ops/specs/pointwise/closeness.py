"""Equality up to rounding."""

import numpy as np

from plait_ops.calls import abs as abs_
from plait_ops.calls import eq, isfinite, isnan, le, logical_and, logical_or
from plait_ops.spec import Composite
from plait_ops.words import check, float64, is_integral, to_dtype

isclose = Composite(
    "isclose(Tensor self, Tensor other, float rtol=1e-5, float atol=1e-8, bool equal_nan=False) -> Tensor",
    doc="""
    Whether ``abs(self - other) <= atol + rtol * abs(other)``, element by element. Infinities are close to
    themselves alone, nan is close to nothing, or to nan with `equal_nan`.

    Shapes: `self` and `other` broadcast. Dtypes: all dtypes; the result is bool.
    Raises: ShapeError if the shapes do not broadcast, ValueError for a negative tolerance.

    >>> import plait_core as pc
    >>> pc.isclose(pc.tensor([1.0, 2.0]), pc.tensor([1.0 + 1e-7, 2.1])).tolist()
    [True, False]
    """,
)


@isclose.decompose
def _(self, other, rtol, atol, equal_nan):
    check(rtol >= 0.0, f"`rtol` must not be negative; got {rtol}", "ValueError")
    check(atol >= 0.0, f"`atol` must not be negative; got {atol}", "ValueError")
    if rtol == 0.0 and atol == 0.0 and is_integral(self.dtype) and is_integral(other.dtype):
        return eq(self, other)
    x = to_dtype(self, float64) if is_integral(self.dtype) else self
    y = to_dtype(other, float64) if is_integral(other.dtype) else other
    apart = abs_(x - y)
    near = logical_and(isfinite(apart), le(apart, abs_(y) * rtol + atol))
    made = logical_or(near, eq(self, other))
    if equal_nan:
        return logical_or(made, logical_and(isnan(x), isnan(y)))
    return made


@isclose.reference
def _(self, other, rtol=1e-5, atol=1e-8, equal_nan=False):
    with np.errstate(all="ignore"):
        return np.asarray(np.isclose(self, other, rtol, atol, equal_nan))


@isclose.samples
def _(s):
    x = s.array(20)
    yield s(x, (x * (1 + s.array(20) * 1e-5)).astype("float32"), 1.5e-5, 0.0)
    yield s(x, (x + s.array(20) * 1e-3).astype("float32"), atol=1e-3, rtol=0.0)
    odd = np.array([np.nan, np.inf, -np.inf, np.inf, 0.0, 1.0], "float32")
    yield s(odd, odd[::-1])
    yield s(odd, odd, equal_nan=True)
    yield s(odd, odd, rtol=0.0, atol=0.0)
    yield s(s.array(2, 1, 3, dtype="int64"), s.array(4, 1, dtype="int64"), atol=2.0)
    yield s(s.array(5, dtype="bool"), s.array(5, dtype="bool"))
    yield s(s.array(5, dtype="uint8"), s.array(5, dtype="float64"), 0.5)
    yield s(s.array(5, dtype="float16"), s.array(5, dtype="float16"), 0.5)
    z = s.array(9, dtype="complex64")
    yield s(z, (z * (1 + s.array(9) * 1e-5)).astype("complex64"), 2e-5, 0.0)
    yield s(s.array(), s.array())
    yield s(s.array(0, 3), s.array(3))


isclose.error(
    "ShapeError", lambda s: s(s.array(2, 3), s.array(4)), contains=["broadcast", "(2, 3)", "(4,)"]
)
isclose.error(
    "ValueError", lambda s: s(s.array(2), s.array(2), -1.0), contains=["isclose", "rtol", "-1"]
)
isclose.error(
    "ValueError", lambda s: s(s.array(2), s.array(2), 0.0, -1.0), contains=["isclose", "atol", "-1"]
)
