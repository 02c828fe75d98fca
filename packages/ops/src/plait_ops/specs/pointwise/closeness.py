"""Equality up to rounding."""

from plait_ops import calls as op
from plait_ops.spec import Composite
from plait_ops.words import check, float64, is_integral, to_dtype

isclose = Composite(
    "isclose(Tensor self, Tensor other, float rtol=1e-5, float atol=1e-8, bool equal_nan=False) -> Tensor",
    doc="""
    Whether ``abs(self - other) <= atol + rtol * abs(other)``, element by element. An infinity is close only to itself. nan
    is close to nothing; with `equal_nan` it is close to nan.

    Shapes: `self` and `other` broadcast. Dtypes: all dtypes; the result is bool.
    Raises: ShapeError if the shapes do not broadcast, ValueError for a negative tolerance.

    >>> import plait_core as pc
    >>> pc.isclose(pc.tensor([1.0, 2.0]), pc.tensor([1.0 + 1e-7, 2.1])).tolist()
    [True, False]
    """,
    variants="function method",
)


@isclose.decompose
def _(self, other, rtol, atol, equal_nan):
    check(rtol >= 0.0, f"`rtol` must not be negative; got {rtol}", "ValueError")
    check(atol >= 0.0, f"`atol` must not be negative; got {atol}", "ValueError")
    if rtol == 0.0 and atol == 0.0 and is_integral(self.dtype) and is_integral(other.dtype):
        return op.eq(self, other)
    x = to_dtype(self, float64) if is_integral(self.dtype) else self
    y = to_dtype(other, float64) if is_integral(other.dtype) else other
    apart = op.abs(x - y)
    near = op.logical_and(op.isfinite(apart), op.le(apart, op.abs(y) * rtol + atol))
    made = op.logical_or(near, op.eq(self, other))
    if equal_nan:
        return op.logical_or(made, op.logical_and(op.isnan(x), op.isnan(y)))
    return made
