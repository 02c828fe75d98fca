"""Elements selected by a mask, or by their position in C order."""

from plait_ops import calls as op
from plait_ops.spec import Operator
from plait_ops.words import (
    broadcast,
    check,
    item,
    numel,
    part,
    require,
    require_same,
    result,
)

masked_select = Operator(
    "masked_select(Tensor self, Tensor mask) -> Tensor",
    doc="""
    The elements of `self` where `mask` is True, as a vector. Both broadcast.

    Raises: DTypeError unless `mask` is bool, ShapeError if the shapes do not broadcast.

    >>> import plait_core as pc
    >>> pc.masked_select(pc.tensor([1, 2, 3]), pc.tensor([True, False, True])).tolist()
    [1, 3]
    """,
    dtypes="any",
    kernel="this operator takes no kernel, since the size of its result depends on the values; replace `masked_values` and `count_nonzero` instead.",
    variants="function method",
)


@masked_select.decompose
def _(self, mask):
    require("mask", mask.dtype, "bool")
    shape = broadcast("self", self.shape, "mask", mask.shape)
    wide = op.expand(mask, shape)
    return op.masked_values(op.expand(self, shape), wide, item(op.count_nonzero(wide)))


values = Operator(
    "masked_values(Tensor self, Tensor mask, int count) -> Tensor",
    doc="`masked_select` of a mask of the same shape, with the number of its elements that are True.",
    dtypes="any",
    internal=True,
    kernel="in[1] has the shape of in[0]; in[2] is the number of its elements that are True.",
)
write = Operator(
    "masked_write_(Tensor(a)! self, Tensor mask, Tensor source) -> Tensor(a)!",
    doc="`masked_scatter_` of a mask of the same shape and a vector with an element for each True.",
    dtypes="any",
    internal=True,
    kernel="in[1] has the shape of in[0]; in[2] is a vector of as many elements as in[1] has True ones.",
)


@values.shape
def _(self, mask, count):
    check(count >= 0, f"`count` must not be negative; got {count}", "ValueError")
    require("mask", mask.dtype, "bool")
    check(mask.shape == self.shape, f"`mask` must have shape {self.shape}; got {mask.shape}")
    return result([count], self.dtype)


@values.vjp("self")
def _(g, self, mask):
    return op.masked_write_(op.zeros(self.shape, dtype=g.dtype, device=g.device), mask, g)


@write.shape
def _(self, mask, source):
    require("mask", mask.dtype, "bool")
    check(mask.shape == self.shape, f"`mask` must have shape {self.shape}; got {mask.shape}")
    check(source.ndim == 1, f"`source` must have 1 dimension; got shape {source.shape}")
    require_same("self", self, "source", source)
    return self


@write.vjp("self")
def _(g, mask):
    return op.masked_fill(g, mask, 0)


@write.vjp("source")
def _(g, mask, source):
    return op.masked_values(g, mask, numel(source.shape))


@part
def _places(mask, count):
    return op.reshape(op.nonzero_rows(op.reshape(mask, [-1]), count), [-1])


@values.decompose
def _(self, mask, count):
    return op.index_select(op.reshape(self, [-1]), 0, _places(mask, count))


@write.decompose
def _(self, mask, source):
    places = _places(mask, source.shape[0])
    whole = op.scatter(op.reshape(self, [-1]), 0, places, source)
    return op.copy_(self, op.reshape(whole, self.shape))
