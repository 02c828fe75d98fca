"""Views of the same elements, and of any layout."""

import numpy as np

from plait_ops.spec import View
from plait_ops.words import check, sizes
from plait_ops.words import view as look

detach = View(
    "detach(Tensor(a) self) -> Tensor(a)",
    doc="""
    `self` cut off from the history of its computation: the same elements, and no gradient flows through.

    >>> import plait_core as pc
    >>> pc.ones(2).detach().tolist()
    [1.0, 1.0]
    """,
)
alias = View(
    "alias(Tensor(a) self) -> Tensor(a)",
    doc="""
    Another handle of the same elements; gradients flow through.

    >>> import plait_core as pc
    >>> pc.alias(pc.ones(2)).tolist()
    [1.0, 1.0]
    """,
    method=False,
)


@detach.shape
@alias.shape
def _(self):
    return look(self, self.shape, self.strides)


@alias.vjp("self")
def _(g):
    return g


for each in (detach, alias):
    each.reference(lambda self: self)
    each.samples(lambda s: iter([s(s.array(2, 3)), s(s.backwards(3)), s(s.array()), s(s.array(0))]))
    each.error("TypeError", lambda s: s(2), contains=[each.name, "self"])


as_strided = View(
    "as_strided(Tensor(a) self, int[] size, int[] stride, int offset=0) -> Tensor(a)",
    doc="""
    The memory of `self` seen with the given sizes and strides (in elements, may be negative), beginning `offset` elements
    after its first one. Has no derivative.

    Raises: ShapeError if `size` and `stride` differ in length or lead outside the memory.

    >>> import plait_core as pc
    >>> pc.as_strided(pc.arange(4), (3, 2), (1, 1)).tolist()
    [[0, 1], [1, 2], [2, 3]]
    """,
)


@as_strided.shape
def _(self, size, stride, offset):
    check(
        len(size) == len(stride),
        f"`size` {size} and `stride` {stride} must be of one length",
    )
    sizes("size", size)
    return look(self, size, stride, offset)


@as_strided.reference
def _(self, size, stride, offset=0):
    flat = np.ascontiguousarray(self).reshape(-1)[offset:]
    return np.lib.stride_tricks.as_strided(
        flat, size, [step * flat.itemsize for step in stride]
    ).copy()


as_strided.samples(
    lambda s: iter(
        [
            s(s.array(6), (2, 3), (3, 1)),
            s(s.array(6), (2, 2), (1, 1), 2),
            s(s.array(2, 3), (3,), (2,), 1),
            s(s.array(3), (), (), 1),
        ]
    )
)
as_strided.error(
    "ShapeError",
    lambda s: s(s.array(6), (2, 3), (1,)),
    contains=["as_strided", "size", "stride", "(2, 3)", "(1,)"],
)
as_strided.error(
    "ShapeError", lambda s: s(s.array(6), (7,), (1,)), contains=["as_strided", "(7,)", "outside"]
)
as_strided.error(
    "ShapeError", lambda s: s(s.array(6), (2,), (1,), 2**62), contains=["as_strided", "outside"]
)
as_strided.error(
    "ShapeError", lambda s: s(s.array(6), (2,), (1,), -1), contains=["as_strided", "outside"]
)
as_strided.error(
    "ShapeError", lambda s: s(s.array(6), (2,), (2**62,)), contains=["as_strided", "outside"]
)
as_strided.error(
    "ShapeError", lambda s: s(s.array(6), (-1,), (1,)), contains=["as_strided", "size", "(-1,)"]
)
