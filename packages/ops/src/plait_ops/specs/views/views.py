"""Views: other shapes of the same bytes."""

import numpy as np

from plait_ops.calls import dense
from plait_ops.spec import Composite, View
from plait_ops.words import check, infer_size, sizes, view_strides, viewable, wrap_dim
from plait_ops.words import view as look

view = View(
    "view(Tensor(a) self, int[]* size) -> Tensor(a)",
    doc="""
    The elements of `self`, in order, as a tensor of shape `size`, without a copy; one -1 stands for the size that fits.

    Raises: ShapeError if the number of elements differs, or if no strides lead to the elements in that order (a transposed
    tensor, say): `reshape` copies then.

    >>> import plait_core as pc
    >>> pc.arange(6).view(2, -1).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """,
)


@view.shape
def _(self, size):
    shape = infer_size("size", size, self.shape)
    check(
        viewable(self, shape),
        f"`size` {tuple(shape)} is no view of shape {self.shape} with strides {self.strides}; reshape() copies where needed",
    )
    return look(self, shape, view_strides(self, shape))


@view.vjp("self")
def _(g, self):
    return reshape(g, self.shape)


view.reference(lambda self, size: np.reshape(self, size))


@view.samples
def _(s):
    yield s(s.array(2, 3), (3, 2))
    yield s(s.array(2, 3), 6)
    yield s(s.array(2, 3, 4), -1, 4)
    yield s(s.array(4, 6)[:, ::2], (2, 2, 3))
    yield s(s.array(), (1, 1))
    yield s(s.array(0, 3), (3, 0, 2))
    yield s(s.array(1), ())


view.error(
    "ShapeError", lambda s: s(s.array(2, 3), (4,)), contains=["view", "size", "(4,)", "(2, 3)"]
)
view.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), (-1, 4)),
    contains=["view", "size", "(-1, 4)", "(2, 3)"],
)
view.error("ShapeError", lambda s: s(s.array(2, 3), (-1, -1)), contains=["view", "size", "-1"])
view.error("ShapeError", lambda s: s(s.array(2, 3), (-2, 3)), contains=["view", "size", "(-2, 3)"])
view.error(
    "ShapeError", lambda s: s(s.array(2, 3).T, (6,)), contains=["view", "size", "(3, 2)", "reshape"]
)
view.error("ShapeError", lambda s: s(s.array(1), (1,) * 65), contains=["view", "size", "65", "64"])
view.error(
    "ShapeError", lambda s: s(s.array(2, 3), (2**62, 2**62)), contains=["view", "size", "(2, 3)"]
)


reshape = Composite(
    "reshape(Tensor(a) self, int[]* shape) -> Tensor(a)",
    doc="""
    The elements of `self`, in order, as a tensor of the given `shape`; one -1 stands for the size that fits. A view where
    that is possible, else a copy.

    Raises: ShapeError if the number of elements differs.

    >>> import plait_core as pc
    >>> pc.arange(6).reshape(3, 2).tolist()
    [[0, 1], [2, 3], [4, 5]]
    """,
    dtypes="any",
)


@reshape.decompose
def _(self, shape):
    size = infer_size("shape", shape, self.shape)
    if viewable(self, size):
        return view(self, size)
    return view(dense(self), size)


reshape.reference(lambda self, shape: np.reshape(self, shape))


@reshape.samples
def _(s):
    yield s(s.array(2, 3), (3, 2))
    yield s(s.array(2, 3).T, 6)
    yield s(s.strided(2, 3, 4), -1, 4)
    yield s(s.backwards(4), 2, 2)
    yield s(s.array(), (1, 1))
    yield s(s.array(0, 3), (3, 0))


reshape.error(
    "ShapeError", lambda s: s(s.array(2, 3), (4,)), contains=["reshape", "shape", "(4,)", "(2, 3)"]
)
reshape.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), (-1, 4)),
    contains=["reshape", "shape", "(-1, 4)", "(2, 3)"],
)
reshape.error(
    "ShapeError",
    lambda s: s(s.array(0, 3), (-1, 0)),
    contains=["reshape", "shape", "(-1, 0)", "(0, 3)"],
)


flatten = Composite(
    "flatten(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
    doc="""
    `self` with the dimensions from `start_dim` to `end_dim`, both included, as one.

    Raises: IndexError for a dim out of range, ValueError if `end_dim` comes before `start_dim`.

    >>> import plait_core as pc
    >>> tuple(pc.zeros(2, 3, 4).flatten(1).shape)
    (2, 12)
    """,
    dtypes="any",
)


@flatten.decompose
def _(self, start_dim, end_dim):
    first = wrap_dim("start_dim", start_dim, self.shape)
    last = wrap_dim("end_dim", end_dim, self.shape)
    check(first <= last, f"`end_dim` {end_dim} comes before `start_dim` {start_dim}", "ValueError")
    if self.ndim == 0:
        return reshape(self, [1])
    size = self.shape[:first]
    n = 1
    for i in range(first, last + 1):
        n *= self.shape[i]
    return reshape(self, size + [n] + self.shape[last + 1 :])


@flatten.reference
def _(self, start_dim=0, end_dim=-1):
    if self.ndim == 0:
        return self.reshape(1)
    first, last = start_dim % self.ndim, end_dim % self.ndim
    n = int(np.prod(self.shape[first : last + 1]))
    return self.reshape(self.shape[:first] + (n,) + self.shape[last + 1 :])


@flatten.samples
def _(s):
    yield s(s.array(2, 3, 4))
    yield s(s.array(2, 3, 4), 1)
    yield s(s.strided(2, 3, 4), 0, 1)
    yield s(s.array(2, 3, 4), -2, -1)
    yield s(s.array())
    yield s(s.array(0, 3, 2), 1)


flatten.error(
    "IndexError", lambda s: s(s.array(2, 3), 2), contains=["flatten", "start_dim", "(2, 3)", "2"]
)
flatten.error(
    "ValueError", lambda s: s(s.array(2, 3), 1, 0), contains=["flatten", "start_dim", "end_dim"]
)


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
