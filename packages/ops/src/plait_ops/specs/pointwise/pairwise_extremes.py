"""The larger and the smaller of two operands."""

from plait_ops import calls as op
from plait_ops.spec import Pointwise

maximum = Pointwise(
    "maximum(Tensor self, Tensor other) -> Tensor",
    doc="""
    The larger element of each pair; nan if one of the two is nan.

    >>> import plait_core as pc
    >>> pc.maximum(pc.tensor([1, 5]), pc.tensor([3, 4])).tolist()
    [3, 5]
    """,
    inplace=False,
    variants="function method",
)
minimum = Pointwise(
    "minimum(Tensor self, Tensor other) -> Tensor",
    doc="""
    The smaller element of each pair; nan if one of the two is nan.

    >>> import plait_core as pc
    >>> pc.minimum(pc.tensor([1, 5]), pc.tensor([3, 4])).tolist()
    [1, 4]
    """,
    inplace=False,
    variants="function method",
)
fmax = Pointwise(
    "fmax(Tensor self, Tensor other) -> Tensor",
    doc="""
    The larger element of each pair; where one is nan, the other one.

    >>> import plait_core as pc
    >>> pc.fmax(pc.tensor([1.0, pc.nan]), pc.tensor([3.0, 4.0])).tolist()
    [3.0, 4.0]
    """,
    inplace=False,
    variants="function method",
)
fmin = Pointwise(
    "fmin(Tensor self, Tensor other) -> Tensor",
    doc="""
    The smaller element of each pair; where one is nan, the other one.

    >>> import plait_core as pc
    >>> pc.fmin(pc.tensor([1.0, pc.nan]), pc.tensor([3.0, 4.0])).tolist()
    [1.0, 4.0]
    """,
    inplace=False,
    variants="function method",
)


@maximum.vjp("self")
def _(g, self, other):
    # where both are equal each gets half
    return op.where(op.eq(self, other), g * 0.5, op.where(op.gt(self, other), g, 0.0))


@maximum.vjp("other")
def _(g, self, other):
    return op.where(op.eq(self, other), g * 0.5, op.where(op.gt(self, other), 0.0, g))


@minimum.vjp("self")
def _(g, self, other):
    return op.where(op.eq(self, other), g * 0.5, op.where(op.lt(self, other), g, 0.0))


@minimum.vjp("other")
def _(g, self, other):
    return op.where(op.eq(self, other), g * 0.5, op.where(op.lt(self, other), 0.0, g))


@fmax.vjp("self")
def _(g, self, other):
    return op.where(op.logical_or(op.ge(self, other), op.isnan(other)), g, 0.0)


@fmax.vjp("other")
def _(g, self, other):
    return op.where(op.logical_or(op.ge(self, other), op.isnan(other)), 0.0, g)


@fmin.vjp("self")
def _(g, self, other):
    return op.where(op.logical_or(op.le(self, other), op.isnan(other)), g, 0.0)


@fmin.vjp("other")
def _(g, self, other):
    return op.where(op.logical_or(op.le(self, other), op.isnan(other)), 0.0, g)


@fmax.decompose
def _(self, other):
    return op.where(op.logical_or(op.gt(self, other), op.ne(other, other)), self, other)


@fmin.decompose
def _(self, other):
    return op.where(op.logical_or(op.lt(self, other), op.ne(other, other)), self, other)
