"""Arithmetic of two operands."""

import numpy as np

from plait_ops.alias import under_another_name
from plait_ops.calls import (
    eq,
    floor,
    full_like,
    ge,
    gt,
    imag,
    isnan,
    le,
    log,
    logical_or,
    lt,
    ne,
    real,
    trunc,
    where,
    zeros_like,
)
from plait_ops.spec import Composite, Pointwise
from plait_ops.words import check, conjugate, dtype_of, is_complex, is_tensor, to_dtype

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
true_divide = Pointwise(
    "true_divide(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    doc="""
    The quotient ``self / other``, never of integers: they become float32. Division by 0 gives inf or nan.

    >>> import plait_core as pc
    >>> pc.true_divide(pc.tensor([1.0, 2.0]), 2).tolist()
    [0.5, 1.0]
    """,
    promote="float",
    scalar="div",
    domain=(0.5, 2.5),
    kernel="the scalar function is `div`.",
    dtypes="any",
    unrounded=("other",),
)
div_trunc = Pointwise(
    "div_trunc(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    doc="The quotient rounded towards 0; an integer divided by 0 gives 0.",
    dtypes="numeric",
    scalar="trunc_divide",
    internal=True,
    inplace=True,
)
floor_divide = Pointwise(
    "floor_divide(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    doc="""
    The quotient rounded down; an integer divided by 0 gives 0.

    >>> import plait_core as pc
    >>> pc.floor_divide(pc.tensor([-3, 3]), 2).tolist()
    [-2, 1]
    """,
    dtypes="numeric",
    unrounded=("other",),
)
remainder = Pointwise(
    "remainder(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    doc="""
    What floor division leaves: ``self - other * floor_divide(self, other)``, with the sign of `other`; Python's ``%``.
    An integer modulo 0 is 0.

    >>> import plait_core as pc
    >>> pc.remainder(pc.tensor([-3, 3]), 2).tolist()
    [1, 1]
    """,
    dtypes="numeric",
)
fmod = Pointwise(
    "fmod(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    doc="""
    What truncating division leaves, with the sign of `self`; C's ``fmod``. An integer modulo 0 is 0.

    >>> import plait_core as pc
    >>> pc.fmod(pc.tensor([-3, 3]), 2).tolist()
    [-1, 1]
    """,
    dtypes="numeric",
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
maximum = Pointwise(
    "maximum(Tensor self, Tensor other) -> Tensor",
    doc="""
    The larger of each pair; nan if one is nan.

    >>> import plait_core as pc
    >>> pc.maximum(pc.tensor([1, 5]), pc.tensor([3, 4])).tolist()
    [3, 5]
    """,
    inplace=False,
)
minimum = Pointwise(
    "minimum(Tensor self, Tensor other) -> Tensor",
    doc="""
    The smaller of each pair; nan if one is nan.

    >>> import plait_core as pc
    >>> pc.minimum(pc.tensor([1, 5]), pc.tensor([3, 4])).tolist()
    [1, 4]
    """,
    inplace=False,
)
fmax = Pointwise(
    "fmax(Tensor self, Tensor other) -> Tensor",
    doc="""
    The larger of each pair; where one is nan, the other.

    >>> import plait_core as pc
    >>> pc.fmax(pc.tensor([1.0, pc.nan]), pc.tensor([3.0, 4.0])).tolist()
    [3.0, 4.0]
    """,
    inplace=False,
)
fmin = Pointwise(
    "fmin(Tensor self, Tensor other) -> Tensor",
    doc="""
    The smaller of each pair; where one is nan, the other.

    >>> import plait_core as pc
    >>> pc.fmin(pc.tensor([1.0, pc.nan]), pc.tensor([3.0, 4.0])).tolist()
    [1.0, 4.0]
    """,
    inplace=False,
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


def _masked_zero(function):
    """Make an integer function give 0 for a divisor 0, as kernels do."""

    def divide(a, b):
        if a.dtype.kind == "f":
            return function(a, b)
        return np.where(b == 0, 0, function(a, np.where(b == 0, 1, b)))

    return divide


def _power(a, b):
    if a.dtype.kind in "fc":
        return np.power(a, b)
    with_sign = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0))
    return np.where(b < 0, with_sign, np.power(a, np.where(b < 0, 0, b).astype(a.dtype)))


def _trunc(a, b):
    if a.dtype.kind == "f":
        return np.trunc(a / b)
    floor = np.floor_divide(a, b)
    return floor + ((a % b != 0) & ((a < 0) != (b < 0))).astype(a.dtype)


def _floor_divide(a, b):
    return np.floor_divide(a, b)


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
true_divide.reference(np.divide)
div_trunc.reference(_masked_zero(_trunc))
floor_divide.reference(_masked_zero(_floor_divide))
remainder.reference(_masked_zero(np.remainder))
fmod.reference(_masked_zero(np.fmod))
pow_.reference(_power)
maximum.reference(np.maximum)
minimum.reference(np.minimum)
fmax.reference(np.fmax)
fmin.reference(np.fmin)
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


@true_divide.vjp("self")
def _(g, other):
    return true_divide(g, conjugate(other))


@true_divide.vjp("other")
def _(g, other, result):
    return -true_divide(g * conjugate(result), conjugate(other))


@div_trunc.vjp("self", "other")
@floor_divide.vjp("self", "other")
def _(g):
    return zeros_like(g), zeros_like(g)


@remainder.vjp("self")
@fmod.vjp("self")
def _(g):
    return g


@remainder.vjp("other")
def _(g, self, other):
    return -g * floor(true_divide(self, other))


@fmod.vjp("other")
def _(g, self, other):
    return -g * trunc(true_divide(self, other))


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


@maximum.vjp("self")
def _(g, self, other):
    # where both are equal each gets half
    return where(eq(self, other), g * 0.5, where(gt(self, other), g, 0.0))


@maximum.vjp("other")
def _(g, self, other):
    return where(eq(self, other), g * 0.5, where(gt(self, other), 0.0, g))


@minimum.vjp("self")
def _(g, self, other):
    return where(eq(self, other), g * 0.5, where(lt(self, other), g, 0.0))


@minimum.vjp("other")
def _(g, self, other):
    return where(eq(self, other), g * 0.5, where(lt(self, other), 0.0, g))


@fmax.vjp("self")
def _(g, self, other):
    return where(logical_or(ge(self, other), isnan(other)), g, 0.0)


@fmax.vjp("other")
def _(g, self, other):
    return where(logical_or(ge(self, other), isnan(other)), 0.0, g)


@fmin.vjp("self")
def _(g, self, other):
    return where(logical_or(le(self, other), isnan(other)), g, 0.0)


@fmin.vjp("other")
def _(g, self, other):
    return where(logical_or(le(self, other), isnan(other)), 0.0, g)


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


# ---- what is made of them ------------------------------------------------------------------------------------------
div = Composite(
    "div(Tensor|Scalar self, Tensor|Scalar other, *, str? rounding_mode=None) -> Tensor",
    doc="""
    The quotient ``self / other``: of integers too a float32 one, unless `rounding_mode` is ``"floor"`` (rounded down) or
    ``"trunc"`` (towards 0), which keep the promoted dtype.

    Raises: ShapeError if the shapes do not broadcast, ValueError for another `rounding_mode`.

    >>> import plait_core as pc
    >>> pc.div(pc.tensor([-3, 3]), 2, rounding_mode="trunc").tolist()
    [-1, 1]
    """,
    inplace=True,
    out=True,
)


@div.decompose
def _(self, other, rounding_mode):
    if rounding_mode is None:
        return true_divide(self, other)
    if rounding_mode == "floor":
        return floor_divide(self, other)
    check(
        rounding_mode == "trunc",
        f'`rounding_mode` must be None, "floor" or "trunc"; got "{rounding_mode}"',
        "ValueError",
    )
    return div_trunc(self, other)


@div.reference
def _(self, other, rounding_mode=None):
    return {None: true_divide, "floor": floor_divide, "trunc": div_trunc}[rounding_mode](
        self, other
    )


@div.samples
def _(s):
    yield s(s.array(2, 3), s.array(3, low=0.5))
    yield s(s.array(3, dtype="int64"), 2)
    yield s(
        s.array(3, dtype="int64"), s.array(3, dtype="int64", low=1, high=5), rounding_mode="floor"
    )
    yield s(s.array(3, dtype="int64"), 2, rounding_mode="trunc")
    yield s(s.array(3), s.array(3, low=0.5), rounding_mode="floor").without_gradient()
    yield s(3.0, s.array(2, 2, low=0.5))


div.error(
    "ValueError",
    lambda s: s(s.array(2), 2, rounding_mode="up"),
    contains=["div", "rounding_mode", "up"],
)
div.error(
    "ShapeError", lambda s: s(s.array(2, 3), s.array(4)), contains=["broadcast", "(2, 3)", "(4,)"]
)

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
divide = Composite(
    "divide(Tensor|Scalar self, Tensor|Scalar other, *, str? rounding_mode=None) -> Tensor",
    doc=under_another_name("`div` under NumPy's name.", "divide", div),
    inplace=True,
    out=True,
)


@subtract.decompose
def _(self, other, alpha):
    return sub(self, other, alpha=alpha)


@multiply.decompose
def _(self, other):
    return mul(self, other)


@divide.decompose
def _(self, other, rounding_mode):
    return div(self, other, rounding_mode=rounding_mode)


subtract.reference(lambda self, other, alpha=1: sub(self, other, alpha=alpha))
multiply.reference(lambda self, other: mul(self, other))
divide.reference(
    lambda self, other, rounding_mode=None: div(self, other, rounding_mode=rounding_mode)
)
for each in (subtract, multiply, divide):
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


@floor_divide.samples
@div_trunc.samples
@remainder.samples
@fmod.samples
def _(s):
    yield s(s.array(20, dtype="int64"), s.array(20, dtype="int64")).without_gradient()
    yield s(s.array(20, dtype="uint8"), s.array(20, dtype="uint8"))
    yield s(s.array(20, low=0.1), s.array(20, low=0.5, high=1.5))


@pow_.samples
def _(s):
    yield s(s.array(8), 2)
    yield s(s.array(8), 0)
    yield s(s.array(8, low=0.5), -1.5)
    yield s(2, s.array(4))
    yield s(s.array(8, dtype="int64"), s.array(8, dtype="int64"))


for each in (add, sub, mul, true_divide, floor_divide, remainder, fmod, pow_, copysign):
    each.error(
        "TypeError", lambda s: s(1, 2.0), contains=[each.schema.base, "self", "Tensor", "number"]
    )
    each.error("TypeError", lambda s: s(s.array(2), "x"), contains=[each.schema.base])
add.error(
    "DTypeError",
    lambda s: s(s.array(2, dtype="uint64"), s.array(2, dtype="int64")),
    contains=["add", "self", "other", "uint64", "int64"],
)
