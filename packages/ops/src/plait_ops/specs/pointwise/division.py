"""Quotients and remainders."""

from plait_ops import calls as op
from plait_ops.alias import under_another_name
from plait_ops.spec import Composite, Pointwise
from plait_ops.words import check, conjugate, is_floating, is_tensor, part

true_divide = Pointwise(
    "true_divide(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    doc="""
    The quotient ``self / other``. Integers are first cast to float32. Division by 0 gives inf or nan.

    Args:
        other: The divisor, a tensor or a number.

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
    variants="function method",
)
true_divide.shard("elements", linear=["self"])
div_trunc = Pointwise(
    "div_trunc(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    doc="The quotient rounded towards 0; an integer divided by 0 gives 0.",
    dtypes="numeric",
    scalar="trunc_divide",
    exact=True,
    internal=True,
    inplace=True,
)
floor_divide = Pointwise(
    "floor_divide(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    doc="""
    The quotient rounded down; an integer divided by 0 gives 0.

    Args:
        other: The divisor, a tensor or a number.

    >>> import plait_core as pc
    >>> pc.floor_divide(pc.tensor([-3, 3]), 2).tolist()
    [-2, 1]
    """,
    dtypes="numeric",
    exact=True,
    unrounded=("other",),
    variants="function method",
)
remainder = Pointwise(
    "remainder(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    doc="""
    The remainder of floor division: ``self - other * floor_divide(self, other)``. It has the sign of `other`, as Python's
    ``%``. An integer modulo 0 is 0.

    Args:
        other: The divisor, a tensor or a number.

    >>> import plait_core as pc
    >>> pc.remainder(pc.tensor([-3, 3]), 2).tolist()
    [1, 1]
    """,
    dtypes="numeric",
    exact=True,
    variants="function method",
    widens=True,
)
fmod = Pointwise(
    "fmod(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    doc="""
    The remainder of truncating division. It has the sign of `self`, as C's ``fmod``. An integer modulo 0 is 0.

    Args:
        other: The divisor, a tensor or a number.

    >>> import plait_core as pc
    >>> pc.fmod(pc.tensor([-3, 3]), 2).tolist()
    [-1, 1]
    """,
    dtypes="numeric",
    exact=True,
    variants="function method",
    widens=True,
)


@true_divide.vjp("self")
def _(g, other):
    return true_divide(g, conjugate(other))


@true_divide.vjp("other")  # not from the result, which programs write in place
def _(g, self, other):
    return -g * conjugate(true_divide(true_divide(self, other), other))


@div_trunc.vjp("self", "other")
@floor_divide.vjp("self", "other")
def _(g):
    return op.zeros_like(g), op.zeros_like(g)


@remainder.vjp("self")
@fmod.vjp("self")
def _(g):
    return g


@remainder.vjp("other")
def _(g, self, other):
    return -g * op.floor(true_divide(self, other))


@fmod.vjp("other")
def _(g, self, other):
    return -g * op.trunc(true_divide(self, other))


@div_trunc.decompose
def _(self, other):
    if is_floating(self.dtype if is_tensor(self) else other.dtype):
        return op.trunc(true_divide(self, other))
    quotient = floor_divide(self, other)
    rounded_down = op.logical_and(op.lt(quotient, 0), op.ne(quotient * other, self))
    return op.where(rounded_down, quotient + 1, quotient)


@part
def _signed_as(rest, other):
    moves = op.logical_and(op.ne(rest, 0), op.logical_xor(op.lt(rest, 0), op.lt(other, 0)))
    return op.where(moves, rest + other, rest)


@remainder.decompose
def _(self, other):
    rest = fmod(self, other)
    if is_tensor(other):
        return _signed_as(rest, other)
    return _signed_as(rest, op.full_like(rest, other))


# ---- what is made of them ------------------------------------------------------------------------
div = Composite(
    "div(Tensor|Scalar self, Tensor|Scalar other, *, str? rounding_mode=None) -> Tensor",
    doc="""
    The quotient ``self / other``. For integers too it is float32, unless `rounding_mode` is ``"floor"`` (rounded down) or
    ``"trunc"`` (rounded towards 0): these keep the promoted dtype.

    Args:
        other: The divisor, a tensor or a number.

    Raises: ShapeError if the shapes do not broadcast, ValueError for another `rounding_mode`.

    >>> import plait_core as pc
    >>> pc.div(pc.tensor([-3, 3]), 2, rounding_mode="trunc").tolist()
    [-1, 1]
    """,
    inplace=True,
    variants="function method",
)
div.shard("elements", linear=["self"], nonlinear=["rounding_mode"])


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


divide = Composite(
    "divide(Tensor|Scalar self, Tensor|Scalar other, *, str? rounding_mode=None) -> Tensor",
    doc=under_another_name("`div` under NumPy's name.", "divide", div),
    inplace=True,
    variants="function method",
)


@divide.decompose
def _(self, other, rounding_mode):
    return div(self, other, rounding_mode=rounding_mode)
