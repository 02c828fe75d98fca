"""Elements selected by a mask, or by their position in C order."""

from plait_ops.calls import expand, index, reshape
from plait_ops.spec import Composite
from plait_ops.words import broadcast, require

masked_select = Composite(
    "masked_select(Tensor self, Tensor mask) -> Tensor",
    doc="""
    The elements of `self` where `mask` is True, as a vector. Both broadcast.

    Raises: DTypeError unless `mask` is bool, ShapeError if the shapes do not broadcast.

    >>> import plait_core as pc
    >>> pc.masked_select(pc.tensor([1, 2, 3]), pc.tensor([True, False, True])).tolist()
    [1, 3]
    """,
    dtypes="any",
    variants="function method",
)


@masked_select.decompose
def _(self, mask):
    require("mask", mask.dtype, "bool")
    shape = broadcast("self", self.shape, "mask", mask.shape)
    if len(shape) == 0:
        return index(reshape(self, [1]), [reshape(mask, [1])])
    return index(expand(self, shape), [expand(mask, shape)])
