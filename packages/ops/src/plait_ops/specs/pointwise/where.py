"""One of two elements, by a condition."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Pointwise
from plait_ops.words import is_tensor

where_ = Pointwise(
    "where(Tensor condition, Tensor|Scalar self|input, Tensor|Scalar other) -> Tensor",
    doc="""
    `self` where `condition` is True, `other` elsewhere.

    Args:
        other: The elements where `condition` is False.

    >>> import plait_core as pc
    >>> pc.where(pc.tensor([True, False]), pc.tensor([1, 2]), 0).tolist()
    [1, 0]
    """,
    conditions=["condition"],
    dtypes="any",
    scalar=False,
    exact=True,
    kernel="in[0] is bool; in[1] and in[2] have the dtype of the result or are numbers; all broadcast.",
)


@where_.vjp("self")
def _(g, condition):
    return op.where(condition, g, 0.0)


@where_.vjp("other")
def _(g, condition):
    return op.where(condition, 0.0, g)


masked_fill = Pointwise(
    "masked_fill(Tensor self, Tensor mask, Tensor|Scalar value) -> Tensor",
    doc="""
    `self` with `value` where `mask` is True. `value` is a number or a tensor, which broadcasts as in `where`, and is cast to
    the dtype of `self`.

    Args:
        value: The value of the elements, a number or a 0-d tensor.

    >>> import plait_core as pc
    >>> pc.masked_fill(pc.tensor([1, 2]), pc.tensor([True, False]), 0).tolist()
    [0, 2]
    """,
    promote="first",
    conditions=["mask"],
    dtypes="any",
    scalar=False,
    exact=True,
    c_order=True,
    inplace=True,
    kernel="in[1] is bool; in[0] and in[2] have the dtype of the result, or in[2] is a number; all broadcast.",
    variants="function method",
)


@masked_fill.vjp("self")
def _(g, mask):
    return op.where(mask, 0.0, g)


@masked_fill.vjp("value")
def _(g, mask):
    return op.where(mask, g, 0.0)


@masked_fill.decompose
def _(self, mask, value):
    if is_tensor(value):
        return op.where(mask, value, self)
    return op.where(mask, op.full([], value, dtype=self.dtype, device=self.device), self)


where_condition = Composite(
    "where.condition(Tensor condition) -> Tensor[]",
    doc="""
    Where `condition` is not 0: one int64 vector for each dimension, as ``nonzero(condition, as_tuple=True)``.

    >>> import plait_core as pc
    >>> [x.tolist() for x in pc.where(pc.tensor([[False, True], [True, True]]))]
    [[0, 1, 1], [1, 0, 1]]
    """,
)


@where_condition.decompose
def _(condition):
    x = condition if condition.ndim > 0 else op.reshape(condition, [1])
    rows = op.nonzero(x)
    return [op.select(rows, 1, d) for d in range(x.ndim)]
