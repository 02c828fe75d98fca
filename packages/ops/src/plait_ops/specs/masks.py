"""What a mask selects, and where elements are not 0."""

import numpy as np

from plait_ops.calls import expand, index_put_, unbind, zeros
from plait_ops.spec import Composite, Operator
from plait_ops.words import broadcast, check, require, result, sum_to

masked_select = Operator(
    "masked_select(Tensor self, Tensor mask) -> Tensor",
    doc="""
    The elements of `self` where `mask` is True, in C order, as one row.

    Shapes: `self` and `mask` broadcast; the result has one dimension, whose size depends on the values of `mask`.
    Raises: ShapeError if the shapes do not broadcast, DTypeError if `mask` is not bool.

    >>> import plait_core as pc
    >>> pc.tensor([1, 2, 3]).masked_select(pc.tensor([True, False, True])).tolist()
    [1, 3]
    """,
    dtypes="any",
    kernel="in[1] is bool; both broadcast. The kernel makes the result, of one dimension, in the dtype of in[0].",
)
masked_select_backward = Operator(
    "masked_select_backward(Tensor grad, Tensor mask, int[] size) -> Tensor",
    doc="Zeros of shape `size` with `grad` where `mask`, which broadcasts to it, is True: the derivative of `masked_select`.",
    dtypes="floating",
    internal=True,
)
nonzero = Operator(
    "nonzero(Tensor self) -> Tensor",
    doc="""
    The indices of the elements that are not 0, in C order, as int64.

    Shape: (n, ndim), n the number of such elements.

    >>> import plait_core as pc
    >>> pc.nonzero(pc.tensor([[0, 5], [6, 0]])).tolist()
    [[0, 1], [1, 0]]
    """,
    dtypes="any",
    kernel="the kernel makes the result: int64, of shape (n, ndim).",
)
nonzero_tuple = Composite(
    "nonzero.tuple(Tensor self, *, bool as_tuple) -> Tensor[]",
    doc="""
    With `as_tuple` True the columns of `nonzero`: one tensor of indices a dimension, good for indexing.

    Raises: ValueError if `as_tuple` is False (leave it out to get one tensor).

    >>> import plait_core as pc
    >>> [x.tolist() for x in pc.nonzero(pc.tensor([[0, 5], [6, 0]]), as_tuple=True)]
    [[0, 1], [1, 0]]
    """,
    dtypes="any",
)


@masked_select.shape
def _(self, mask):
    require("mask", mask.dtype, "bool")
    broadcast("self", self.shape, "mask", mask.shape)


@masked_select.vjp("self")
def _(g, self, mask):
    shape = broadcast("self", self.shape, "mask", mask.shape)
    return sum_to(masked_select_backward(g, mask, shape), self.shape)


@masked_select_backward.shape
def _(grad, mask, size):
    require("mask", mask.dtype, "bool")
    check(grad.ndim == 1, f"`grad` must have one dimension; got shape {grad.shape}")
    check(
        broadcast("mask", mask.shape, "size", size) == list(size),
        f"`mask` of shape {mask.shape} must broadcast to `size` {size}",
    )
    return result(size, grad.dtype)


@masked_select_backward.decompose
def _(grad, mask, size):
    made = zeros(size, dtype=grad.dtype, device=grad.device)
    index_put_(made, [expand(mask, size)], grad)
    return made


@masked_select_backward.vjp("grad")
def _(g, mask):
    return masked_select(g, mask)


@nonzero.shape
def _(self):
    pass


@nonzero_tuple.decompose
def _(self, as_tuple):
    check(as_tuple, "`as_tuple` must be True or left out; got False", "ValueError")
    return unbind(nonzero(self), 1)


@masked_select.reference
def _(self, mask):
    a, b = np.broadcast_arrays(self, mask)
    return a[b]


@masked_select_backward.reference
def _(grad, mask, size):
    made = np.zeros(size, grad.dtype)
    made[np.broadcast_to(mask, size)] = grad
    return made


nonzero.reference(lambda self: np.argwhere(self).astype("int64"))
nonzero_tuple.reference(lambda self, as_tuple: [each.copy() for each in np.argwhere(self).astype("int64").T])


@masked_select.samples
def _(s):
    yield s(s.array(3, 4), s.array(3, 4, dtype="bool"))
    yield s(s.array(3, 4), s.array(4, dtype="bool"))
    yield s(s.array(4), s.array(3, 4, dtype="bool"))
    yield s(s.array(3, 1), s.array(1, 4, dtype="bool"))
    yield s(s.strided(3, 4), s.strided(3, 4, dtype="bool"))
    yield s(s.array(), np.array(True))
    yield s(s.array(5, dtype="int64"), np.zeros(5, "bool"))
    yield s(s.array(0, 3), s.array(0, 3, dtype="bool"))
    yield s(s.array(6, dtype="complex64"), s.array(6, dtype="bool"))


@masked_select_backward.samples
def _(s):
    yield s(s.array(2), np.array([True, False, True]), (3,))
    yield s(s.array(4), np.array([True, False, True]), (2, 3))


@nonzero.samples
def _(s):
    yield s(s.array(3, 4, dtype="bool"))
    yield s(s.array(20, dtype="int64"))
    yield s(s.strided(3, 4, dtype="uint8"))
    yield s(np.array([0.0, -0.0, np.nan, 1.0], "float32"))
    yield s(s.array(2, 3, 2, dtype="bool")[::-1])
    yield s(np.array(3))
    yield s(np.array(0))
    yield s(s.array(0, 3))


nonzero_tuple.samples(
    lambda s: iter([s(s.array(3, 4, dtype="bool"), as_tuple=True), s(s.array(9, dtype="int64"), as_tuple=True)])
)
masked_select.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(4, dtype="bool")),
    contains=["masked_select", "self", "mask", "(2, 3)", "(4,)"],
)
masked_select.error(
    "DTypeError", lambda s: s(s.array(3), s.array(3, dtype="uint8")), contains=["masked_select", "mask", "bool", "uint8"]
)
masked_select_backward.error(
    "ShapeError",
    lambda s: s(s.array(2), s.array(2, 3, dtype="bool"), (3,)),
    contains=["masked_select_backward", "mask", "(2, 3)", "(3,)"],
)
nonzero.error("TypeError", lambda s: s(3), contains=["nonzero", "self"])
nonzero_tuple.error("ValueError", lambda s: s(s.array(3), as_tuple=False), contains=["nonzero", "as_tuple", "False"])
