"""Arithmetic: sums, products, greatest common divisors."""

from plait_ops import calls as op
from plait_ops.alias import under_another_name
from plait_ops.spec import Composite, Pointwise
from plait_ops.unary import function_of_one
from plait_ops.words import conjugate, dtype_of, is_complex, part

add = Pointwise(
    "add(Tensor|Scalar self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
    doc="""
    The sum ``self + alpha * other``; of bools, whether one of them is True. For integers `alpha` must be a whole number,
    else TypeError.

    Args:
        other: The second operand, a tensor or a number; `alpha` is its factor.

    >>> import plait_core as pc
    >>> pc.add(pc.tensor([1, 2]), 10).tolist()
    [11, 12]
    """,
    factor="alpha",
    dtypes="any",
    variants="function method",
)
add.shard("elements", linear=["self", "other"])
sub = Pointwise(
    "sub(Tensor|Scalar self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
    doc="""
    The difference ``self - alpha * other``. For integers `alpha` must be a whole number, else TypeError.

    Args:
        other: The second operand, a tensor or a number; `alpha` is its factor.

    >>> import plait_core as pc
    >>> pc.sub(pc.tensor([10, 20]), pc.tensor([1, 2])).tolist()
    [9, 18]
    """,
    factor="alpha",
    dtypes="arithmetic",
    variants="function method",
)
sub.shard("elements", linear=["self", "other"])
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
    variants="function method",
)
mul.shard("elements", linear=["self"])


# ---- derivatives ---------------------------------------------------------------------------------
@add.vjp("self")
@sub.vjp("self")
def _(g):
    return g


@part
def _scaled(g, alpha):
    if not is_complex(dtype_of(alpha)) and float(alpha) == 1.0:
        return g
    return g * conjugate(alpha)


@add.vjp("other")
def _(g, alpha):
    return _scaled(g, alpha)


@sub.vjp("other")
def _(g, alpha):
    return -_scaled(g, alpha)


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
    variants="function method",
)
subtract.shard("elements", linear=["self", "other"])
multiply = Composite(
    "multiply(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    doc=under_another_name("`mul` under NumPy's name.", "multiply", mul),
    inplace=True,
    variants="function method",
)
multiply.shard("elements", linear=["self"])


@subtract.decompose
def _(self, other, alpha):
    return sub(self, other, alpha=alpha)


@multiply.decompose
def _(self, other):
    return mul(self, other)


def _divisors(name, text, example):
    operator = Pointwise(
        f"{name}(Tensor self, Tensor other) -> Tensor",
        doc=f"""
    {text}

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([12, -4]), pc.tensor([8, 6])).tolist()
    {example}
    """,
        dtypes="integer",
        variants="function function_ method",
    )

    return operator


rsub = Composite(
    "rsub(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
    doc="""
    ``other - alpha * self``: `sub` with its operands exchanged.

    Args:
        other: The second operand, a tensor or a number; `alpha` is its factor.

    Shapes: both broadcast. Dtypes: those of `sub`.

    >>> import plait_core as pc
    >>> pc.rsub(pc.tensor([1, 2]), 10).tolist()
    [9, 8]
    """,
    dtypes="arithmetic",
)
rsub.shard("elements")


@rsub.decompose
def _(self, other, alpha):
    return sub(other, self, alpha=alpha)


gcd = _divisors("gcd", "The greatest common divisor, never negative; ``gcd(0, 0)`` is 0.", "[4, 2]")
lcm = _divisors(
    "lcm",
    "The least common multiple, never negative; 0 where one is 0. Where it overflows it wraps around, and the result is "
    "the absolute value of the wrapped number.",
    "[24, 12]",
)


@lcm.decompose
def _(self, other):
    return op.abs(op.floor_divide(self, gcd(self, other)) * other)


neg = function_of_one(
    "neg",
    "``-self``; unsigned integers wrap around.",
    "[1.5, -2.5]",
    "arithmetic",
    zero_preserving=True,
)
neg.shard("elements", linear=["self"])


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
    variants="function method",
)


@positive.decompose
def _(self):
    return self
