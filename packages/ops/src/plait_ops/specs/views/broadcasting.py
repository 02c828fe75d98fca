"""Tensors expanded to a common shape, and sums back to the shape before."""

import numpy as np

from plait_ops.calls import sum
from plait_ops.spec import Composite, View
from plait_ops.words import broadcast, check, max_dims, sizes, sum_to
from plait_ops.words import view as look

expand = View(
    "expand(Tensor(a) self, int[]* size) -> Tensor(a)",
    doc="""
    `self` seen as a larger tensor of shape `size`: dimensions of size 1 repeat, new ones come first; -1 keeps a size.
    Repeated elements share one place in memory, so that the result must not be written.

    Raises: ShapeError if `self` does not broadcast to `size`.

    >>> import plait_core as pc
    >>> pc.tensor([[1], [2]]).expand(2, 3).tolist()
    [[1, 1, 1], [2, 2, 2]]
    """,
)


@expand.shape
def _(self, size):
    max_dims("size", len(size))
    extra = len(size) - self.ndim
    check(extra >= 0, f"`size` {size} must have at least as many dimensions as shape {self.shape}")
    shape = list(size)
    strides = [0] * len(size)
    for i in range(len(size)):
        have = self.shape[i - extra] if i >= extra else 1
        if size[i] == -1:
            check(
                i >= extra,
                f"`size` {size} may hold -1 only for dimensions that shape {self.shape} has",
            )
            shape[i] = have
        else:
            check(
                size[i] >= 0 and (have == 1 or have == size[i]),
                f"shape {self.shape} of `self` must broadcast to `size` {size}; they differ in dimension {i - len(size)}",
            )
        if i >= extra and (have != 1 or shape[i] == 1):
            strides[i] = self.strides[i - extra]
    sizes("size", shape)
    return look(self, shape, strides)


@expand.vjp("self")
def _(g, self):
    return sum_to(g, self.shape)


@expand.reference
def _(self, size):
    lead = len(size) - self.ndim
    return np.broadcast_to(
        self, [self.shape[i - lead] if n == -1 else n for i, n in enumerate(size)]
    )


@expand.samples
def _(s):
    yield s(s.array(3, 1), 3, 4)
    yield s(s.array(3), (2, 3))
    yield s(s.array(), (2, 2))
    yield s(s.array(2, 1), (-1, 3))
    yield s(s.array(1), (0,))
    yield s(s.array(2, 3), (4, 2, 3))


expand.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), (2, 4)),
    contains=["expand", "size", "(2, 4)", "(2, 3)"],
)
expand.error(
    "ShapeError", lambda s: s(s.array(2, 3), (3,)), contains=["expand", "size", "(3,)", "(2, 3)"]
)
expand.error(
    "ShapeError", lambda s: s(s.array(3), (-1, 3)), contains=["expand", "size", "(-1, 3)", "(3,)"]
)
expand.error(
    "ShapeError", lambda s: s(s.array(1), (2**62, 4)), contains=["expand", "size", "2**63"]
)
expand.error(
    "ShapeError", lambda s: s(s.array(1), (1,) * 65), contains=["expand", "size", "65", "64"]
)


broadcast_to = Composite(
    "broadcast_to(Tensor(a) self, int[] size|shape) -> Tensor(a)",
    doc="""
    `expand` under NumPy's name.

    >>> import plait_core as pc
    >>> tuple(pc.broadcast_to(pc.ones(3), (2, 3)).shape)
    (2, 3)
    """,
    dtypes="any",
)


@broadcast_to.decompose
def _(self, size):
    return expand(self, size)


broadcast_to.reference(lambda self, size: np.broadcast_to(self, size))
broadcast_to.samples(lambda s: iter([s(s.array(3), (2, 3)), s(s.array(), (2,))]))
broadcast_to.error(
    "ShapeError", lambda s: s(s.array(2, 3), (2, 4)), contains=["expand", "(2, 4)", "(2, 3)"]
)

sum_to_size = Composite(
    "sum_to_size(Tensor self, int[]* size) -> Tensor",
    doc="""
    `self` summed to shape `size`, which must broadcast to its shape: what the gradient of a broadcast is.

    Raises: ShapeError if `size` does not broadcast to the shape of `self`.

    >>> import plait_core as pc
    >>> pc.ones(2, 3).sum_to_size(1, 3).tolist()
    [[2.0, 2.0, 2.0]]
    """,
)


@sum_to_size.decompose
def _(self, size):
    common = broadcast("self", self.shape, "size", size)
    check(
        self.shape == common, f"`size` {size} must broadcast to the shape of `self`, {self.shape}"
    )
    if len(size) == 0:
        return sum(self)
    return sum_to(self, size)


@sum_to_size.reference
def _(self, size):
    lead = self.ndim - len(size)
    dims = tuple(
        i for i in range(self.ndim) if i < lead or (size[i - lead] == 1 and self.shape[i] != 1)
    )
    if not len(size) and self.dtype.kind in "biu":
        return np.asarray(self.sum(dtype="int64"))
    return (self.sum(dims, keepdims=True, dtype=self.dtype) if dims else self).reshape(size)


sum_to_size.samples(
    lambda s: iter(
        [
            s(s.array(2, 3), 1, 3),
            s(s.array(2, 3), (3,)),
            s(s.array(2, 3), 2, 3),
            s(s.array(2), ()),
            s(s.array(2, dtype="bool"), ()),
        ]
    )
)
sum_to_size.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), (2,)),
    contains=["sum_to_size", "size", "(2,)", "(2, 3)"],
)


# ---- several tensors ---------------------------------------------------------------------------
broadcast_tensors_ = Composite(
    "broadcast_tensors(Tensor[] tensors) -> Tensor[]",
    doc="""
    Views of the `tensors` in the shape to which they all broadcast; they must not be written.

    Raises: ShapeError if they do not broadcast.

    >>> import plait_core as pc
    >>> [x.tolist() for x in pc.broadcast_tensors([pc.tensor([1, 2]), pc.tensor([[3], [4]])])]
    [[[1, 2], [1, 2]], [[3, 3], [4, 4]]]
    """,
    dtypes="any",
)


@broadcast_tensors_.decompose
def _(tensors):
    shape = [1] * 0
    for t in tensors:
        shape = broadcast("tensors", shape, "tensors", t.shape)
    return [expand(t, shape) for t in tensors]


broadcast_tensors_.reference(lambda tensors: [np.array(x) for x in np.broadcast_arrays(*tensors)])
broadcast_tensors_.samples(
    lambda s: iter(
        [
            s([s.array(2, 1), s.array(3)]),
            s([s.array()]),
            s([s.array(1, 2), s.array(), s.array(4, 1)]),
        ]
    )
)
broadcast_tensors_.error(
    "ShapeError",
    lambda s: s([s.array(2), s.array(3)]),
    contains=["broadcast_tensors", "tensors", "(2,)", "(3,)"],
)
