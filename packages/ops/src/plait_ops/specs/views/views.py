"""Views: other shapes of the same bytes."""

from plait_ops import calls as op
from plait_ops.spec import Composite, View
from plait_ops.words import check, infer_size, sizes, view as look, view_strides, viewable, wrap_dim

view = View(
    "view(Tensor(a) self, int[]* size) -> Tensor(a)",
    doc="""
    The elements of `self`, in order, as a tensor of shape `size`, without a copy; one -1 stands for the size that fits.

    Args:
        size: The new shape; one size may be -1 and follows from the others.

    Raises: ShapeError if the number of elements differs, or if no strides give the elements in that order, as for a
    transposed tensor; use `reshape` then, which copies.

    >>> import plait_core as pc
    >>> pc.arange(6).view(2, -1).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """,
    variants="method",
)
view.batch("view")


@view.shape
def _(self, size):
    shape = infer_size("size", size, self.shape)
    check(
        viewable(self, shape),
        f"`size` {tuple(shape)} cannot be a view of shape {self.shape} with strides {self.strides}; use reshape(), which copies if needed",
    )
    return look(self, shape, view_strides(self, shape))


@view.vjp("self")
def _(g, self):
    return reshape(g, self.shape)


reshape = Composite(
    "reshape(Tensor(a) self, int[]* shape) -> Tensor(a)",
    doc="""
    The elements of `self`, in order, as a tensor of the given `shape`; one -1 stands for the size that fits. A view where
    that is possible, else a copy.

    Args:
        shape: The new shape; one size may be -1 and follows from the others.

    Raises: ShapeError if the number of elements differs.

    >>> import plait_core as pc
    >>> pc.arange(6).reshape(3, 2).tolist()
    [[0, 1], [2, 3], [4, 5]]
    """,
    dtypes="any",
    variants="function method",
)


@reshape.decompose
def _(self, shape):
    size = infer_size("shape", shape, self.shape)
    if viewable(self, size):
        return view(self, size)
    return view(op.dense(self), size)


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
    variants="function method",
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


as_strided = View(
    "as_strided(Tensor(a) self, int[] size, int[] stride, int offset=0) -> Tensor(a)",
    doc="""
    The memory of `self` seen with the given sizes and strides (in elements, may be negative), beginning `offset` elements
    after its first one. Has no derivative.

    Args:
        size: The shape of the view.
        stride: The distance of two elements in memory along each dimension, in elements.
        offset: The index of the first element in the storage.

    Raises: ShapeError if `size` and `stride` differ in length, or if an element would lie outside of the memory.

    >>> import plait_core as pc
    >>> pc.as_strided(pc.arange(4), (3, 2), (1, 1)).tolist()
    [[0, 1], [1, 2], [2, 3]]
    """,
    variants="function method",
)
as_strided.batch("code")


@as_strided.shape
def _(self, size, stride, offset):
    check(
        len(size) == len(stride), f"`size` {size} and `stride` {stride} must have the same length"
    )
    sizes("size", size)
    return look(self, size, stride, offset)
