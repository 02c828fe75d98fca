"""Arithmetic of two operands."""

import numpy as np

from plait_ops.alias import under_another_name
from plait_ops.calls import (
    eq,
    full_like,
    imag,
    log,
    logical_or,
    lt,
    ne,
    real,
    true_divide,
    where,
    zeros_like,
)
from plait_ops.spec import Composite, Pointwise
from plait_ops.words import conjugate, dtype_of, is_complex, is_tensor, to_dtype

add = Pointwise(
    "add(Tensor|Scalar self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
    doc="""
    The sum ``self + alpha * other``; of bools, whether one of them is True. `alpha` must be whole for integers: TypeError.

    >>> import plait_core as pc
    >>> pc.add(pc.tensor([1, 2]), 10).tolist()
    [11, 12]
    """,
    dtypes="any",
)
sub = Pointwise(
    "sub(Tensor|Scalar self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
    doc="""
    The difference ``self - alpha * other``. `alpha` must be whole for integers: TypeError.

    >>> import plait_core as pc
    >>> pc.sub(pc.tensor([10, 20]), pc.tensor([1, 2])).tolist()
    [9, 18]
    """,
    dtypes="arithmetic",
)
mul = Pointwise(
    "mul(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    doc="""
    The product ``self * other``; of bools, whether both are True.

    >>> import plait_core as pc
    >>> pc.mul(pc.tensor([1, 2]), pc.tensor([3, 4])).tolist()
    [3, 8]
    """,
    dtypes="any",
    unrounded=("self", "other"),
)
pow_ = Pointwise(
    "pow(Tensor|Scalar self, Tensor|Scalar exponent|other) -> Tensor",
    doc="""
    ``self ** exponent``. A negative power of an integer is 0, unless the integer is 1 or -1.

    >>> import plait_core as pc
    >>> pc.pow(pc.tensor([1, 2, 3]), 2).tolist()
    [1, 4, 9]
    """,
    dtypes="arithmetic",
    domain=(0.5, 2.5),
)
atan2 = Pointwise(
    "atan2(Tensor self, Tensor other) -> Tensor",
    doc="""
    The angle of the point ``(other, self)``, in radians from -pi to pi.

    >>> import plait_core as pc
    >>> pc.atan2(pc.tensor([0.0]), pc.tensor([1.0])).tolist()
    [0.0]
    """,
    promote="float",
)
hypot = Pointwise(
    "hypot(Tensor self, Tensor other) -> Tensor",
    doc="""
    ``sqrt(self ** 2 + other ** 2)`` without overflow on the way.

    >>> import plait_core as pc
    >>> pc.hypot(pc.tensor([3.0]), pc.tensor([4.0])).tolist()
    [5.0]
    """,
    dtypes="floating",
)
copysign = Pointwise(
    "copysign(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    doc="""
    The magnitude of `self` with the sign of `other` (that of -0.0 counts).

    >>> import plait_core as pc
    >>> pc.copysign(pc.tensor([1.0, 2.0]), -1.0).tolist()
    [-1.0, -2.0]
    """,
    promote="float",
)


def _power(a, b):
    if a.dtype.kind in "fc":
        return np.power(a, b)
    with_sign = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0))
    return np.where(b < 0, with_sign, np.power(a, np.where(b < 0, 0, b).astype(a.dtype)))


add.reference(
    lambda self, other, alpha: np.add(
        self, np.multiply(other, np.asarray(alpha).astype(self.dtype))
    )
)
sub.reference(
    lambda self, other, alpha: np.subtract(
        self, np.multiply(other, np.asarray(alpha).astype(self.dtype))
    )
)
mul.reference(np.multiply)
pow_.reference(_power)
atan2.reference(np.arctan2)
hypot.reference(np.hypot)
copysign.reference(np.copysign)


# ---- derivatives ---------------------------------------------------------------------------------------------------
@add.vjp("self")
@sub.vjp("self")
def _(g):
    return g


@add.vjp("other")
def _(g, alpha):
    return g * conjugate(alpha)


@sub.vjp("other")
def _(g, alpha):
    return -g * conjugate(alpha)


@mul.vjp("self")
def _(g, other):
    return g * conjugate(other)


@mul.vjp("other")
def _(g, self):
    return g * conjugate(self)


@pow_.vjp("self")
def _(g, self, exponent):
    # a factor 0 ** -1 must not meet an exponent 0
    if is_tensor(exponent):
        slope = conjugate(exponent * pow_(self, sub(exponent, 1)))
        return where(eq(exponent, 0), 0.0, g * slope)
    if is_complex(dtype_of(exponent)):
        less = sub(full_like(g, exponent), 1)
        return g * conjugate(exponent * pow_(self, less))
    if float(exponent) == 0.0:
        return zeros_like(g)
    return g * conjugate(exponent * pow_(self, float(exponent) - 1.0))


@pow_.vjp("exponent")
def _(g, self, exponent, result):
    # powers of 0 don't move where the exponent isn't negative: a log(0) must not be met there
    if is_complex(exponent.dtype):
        falls = logical_or(ne(imag(exponent), 0), lt(real(exponent), 0))
    else:
        falls = lt(exponent, 0)
    base = to_dtype(self, g.dtype) if is_tensor(self) else full_like(g, self)
    base = where(logical_or(ne(base, 0), falls), base, 1.0)
    return g * conjugate(result * log(base))


@atan2.vjp("self")  # at (0, 0), where there is none: 0
def _(g, self, other):
    square = self * self + other * other
    slope = true_divide(other, where(eq(square, 0), 1.0, square))
    return g * where(eq(square, 0), 0.0, slope)


@atan2.vjp("other")
def _(g, self, other):
    square = self * self + other * other
    slope = true_divide(self, where(eq(square, 0), 1.0, square))
    return -g * where(eq(square, 0), 0.0, slope)


@hypot.vjp("self")
def _(g, self, result):
    return g * true_divide(self, result)


@hypot.vjp("other")
def _(g, other, result):
    return g * true_divide(other, result)


@copysign.vjp("self")
def _(g, self, result):
    return where(eq(result, self), g, -g)


@copysign.vjp("other")
def _(g):
    return zeros_like(g)


subtract = Composite(
    "subtract(Tensor|Scalar self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
    doc=under_another_name("`sub` under NumPy's name.", "subtract", sub),
    inplace=True,
    out=True,
)
multiply = Composite(
    "multiply(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    doc=under_another_name("`mul` under NumPy's name.", "multiply", mul),
    inplace=True,
    out=True,
)


@subtract.decompose
def _(self, other, alpha):
    return sub(self, other, alpha=alpha)


@multiply.decompose
def _(self, other):
    return mul(self, other)


subtract.reference(lambda self, other, alpha=1: sub(self, other, alpha=alpha))
multiply.reference(lambda self, other: mul(self, other))
for each in (subtract, multiply):
    each.samples(lambda s: iter([s(s.array(2, 3), s.array(3, low=0.5)), s(s.array(3), 2.0)]))
    each.error(
        "ShapeError",
        lambda s: s(s.array(2, 3), s.array(4)),
        contains=["broadcast", "(2, 3)", "(4,)"],
    )


@add.samples
@sub.samples
def _(s):
    yield s(s.array(2, 3), s.array(3), alpha=2)
    yield s(s.array(2, 3), s.array(3), alpha=-0.5)
    yield s(s.array(3, dtype="int32"), 2, alpha=3)
    yield s(s.array(3, dtype="int64"), 2.5)
    yield s(s.array(3, dtype="float32"), s.array(dtype="float64"))
    yield s(s.array(2, 3, dtype="float64"), s.array(3, dtype="float32"))


@mul.samples
def _(s):
    yield s(s.expanded(3, 2), s.array(3, 2))
    yield s(s.array(2, 3, 4).transpose(2, 0, 1), s.array(4, 2, 3))
    yield s(s.array(2, 3, dtype="float64"), s.array(3, dtype="float32"))


@pow_.samples
def _(s):
    yield s(s.array(8), 2)
    yield s(s.array(8), 0)
    yield s(s.array(8, low=0.5), -1.5)
    yield s(2, s.array(4))
    yield s(s.array(8, dtype="int64"), s.array(8, dtype="int64"))


for each in (add, sub, mul, pow_, copysign):
    each.error(
        "TypeError", lambda s: s(1, 2.0), contains=[each.schema.base, "self", "Tensor", "number"]
    )
    each.error("TypeError", lambda s: s(s.array(2), "x"), contains=[each.schema.base])
add.error(
    "DTypeError",
    lambda s: s(s.array(2, dtype="uint64"), s.array(2, dtype="int64")),
    contains=["add", "self", "other", "uint64", "int64"],
)
