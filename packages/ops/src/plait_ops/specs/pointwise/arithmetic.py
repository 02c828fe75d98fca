"""Arithmetic: sums, products, greatest common divisors."""

import numpy as np

from plait_ops.alias import under_another_name
from plait_ops.spec import Composite, Pointwise
from plait_ops.words import conjugate

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


for each in (add, sub, mul):
    each.error(
        "TypeError", lambda s: s(1, 2.0), contains=[each.schema.base, "self", "Tensor", "number"]
    )
    each.error("TypeError", lambda s: s(s.array(2), "x"), contains=[each.schema.base])
add.error(
    "DTypeError",
    lambda s: s(s.array(2, dtype="uint64"), s.array(2, dtype="int64")),
    contains=["add", "self", "other", "uint64", "int64"],
)


def _divisors(name, text, function, example):
    operator = Pointwise(
        f"{name}(Tensor self, Tensor other) -> Tensor",
        doc=f"""
    {text}

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([12, -4]), pc.tensor([8, 6])).tolist()
    {example}
    """,
        dtypes="integer",
        reference=function,
    )

    @operator.samples
    def _(s):
        yield s(np.array([0, 0, 5, -5, 12, 2**40]), np.array([0, 7, 0, 15, 18, 2**33]))

    return operator


rsub = Composite(
    "rsub(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
    doc="""
    ``other - alpha * self``: `sub` with its operands exchanged.

    Shapes: both broadcast. Dtypes: those of `sub`.

    >>> import plait_core as pc
    >>> pc.rsub(pc.tensor([1, 2]), 10).tolist()
    [9, 8]
    """,
    dtypes="arithmetic",
)


@rsub.decompose
def _(self, other, alpha):
    return sub(other, self, alpha=alpha)


rsub.reference(lambda self, other, alpha=1: sub(other, self * np.asarray(alpha, self.dtype)))
rsub.samples(
    lambda s: iter(
        [s(s.array(2, 3), s.array(3)), s(s.array(3, dtype="int64"), 4), s(s.array(3), 1, alpha=2)]
    )
)
rsub.error("ShapeError", lambda s: s(s.array(2, 3), s.array(4)), contains=["(2, 3)", "(4,)"])


gcd = _divisors(
    "gcd", "The greatest common divisor, never negative; ``gcd(0, 0)`` is 0.", np.gcd, "[4, 2]"
)
lcm = _divisors(
    "lcm", "The least common multiple, never negative; 0 where one is 0.", np.lcm, "[24, 12]"
)


def _unary(name, text, reference, example, dtypes="all", real=False):
    return Pointwise(
        f"{name}(Tensor self) -> Tensor",
        doc=f"""
    {text}

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([-1.5, 2.5])).tolist()
    {example}
    """,
        dtypes=dtypes,
        real=real,
        reference=reference,
    )


_TIES = [0.5, 1.5, -0.5, -2.5, 2.0, np.inf, -np.inf, np.nan, -0.0]


neg = _unary(
    "neg", "``-self``; unsigned integers wrap around.", np.negative, "[1.5, -2.5]", "arithmetic"
)


@neg.vjp("self")
def _(g):
    return -g


positive = Composite(
    "positive(Tensor(a) self) -> Tensor(a)",
    doc="""
    `self` itself: Python's ``+x``.

    >>> import plait_core as pc
    >>> pc.positive(pc.tensor([1.5])).tolist()
    [1.5]
    """,
    dtypes="any",
)


@positive.decompose
def _(self):
    return self


positive.reference(lambda self: self)
positive.samples(lambda s: iter([s(s.array(2, 3)), s(s.array(dtype="int64"))]))
positive.error("TypeError", lambda s: s("x"), contains=["positive", "self"])
negative = Composite(
    "negative(Tensor self) -> Tensor",
    doc=under_another_name("`neg` under NumPy's name.", "negative", neg),
    inplace=True,
    out=True,
)


@negative.decompose
def _(self):
    return neg(self)


negative.reference(lambda self: np.negative(self))
negative.samples(lambda s: iter([s(s.array(2, 3)), s(s.array(4, dtype="int64"))]))
negative.error("TypeError", lambda s: s("x"), contains=[negative.name, "self"])
neg.samples(
    lambda s: iter(
        [s(np.array(_TIES, dtype)).without_gradient() for dtype in ("float32", "float64")]
    )
)

lcm.extremes = False  # NumPy's wraps around elsewhere
