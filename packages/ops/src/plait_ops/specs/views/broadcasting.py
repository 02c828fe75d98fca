"""Tensors expanded to a common shape, and sums that reverse an expansion."""

from plait_ops import calls as op
from plait_ops.spec import Composite, View
from plait_ops.words import broadcast, check, max_dims, sizes, sum_to, view

expand = View(
    "expand(Tensor(a) self, int[]* size) -> Tensor(a)",
    doc="""
    `self` seen as a larger tensor of shape `size`: dimensions of size 1 repeat, new ones come first; -1 keeps a size.
    Repeated elements share one place in memory, so the result must not be written.

    Args:
        size: The new shape; -1 keeps a size.

    Raises: ShapeError if `self` does not broadcast to `size`.

    >>> import plait_core as pc
    >>> pc.tensor([[1], [2]]).expand(2, 3).tolist()
    [[1, 1, 1], [2, 2, 2]]
    """,
    variants="method",
)
expand.batch("expand")


@expand.shape
def _(self, size):
    max_dims("size", len(size))
    extra = len(size) - self.ndim
    check(extra >= 0, f"`size` {size} must have at least as many dimensions as shape {self.shape}")
    shape = list(size)
    strides = [0] * len(size)
    for i in range(len(size)):
        own_size = self.shape[i - extra] if i >= extra else 1
        if size[i] == -1:
            check(
                i >= extra,
                f"`size` {size} may hold -1 only for dimensions that shape {self.shape} has",
            )
            shape[i] = own_size
        else:
            check(
                size[i] >= 0 and (own_size == 1 or own_size == size[i]),
                f"shape {self.shape} of `self` must broadcast to `size` {size}; they differ in dimension {i - len(size)}",
            )
        if i >= extra and (own_size != 1 or shape[i] == 1):
            strides[i] = self.strides[i - extra]
    sizes("size", shape)
    return view(self, shape, strides)


@expand.vjp("self")
def _(g, self):
    return sum_to(g, self.shape)


broadcast_to = Composite(
    "broadcast_to(Tensor(a) self, int[]* size|shape) -> Tensor(a)",
    doc="""
    `expand` under NumPy's name.

    Args:
        size: The new shape; -1 keeps a size.

    >>> import plait_core as pc
    >>> tuple(pc.broadcast_to(pc.ones(3), (2, 3)).shape)
    (2, 3)
    """,
    dtypes="any",
    variants="function method",
)


@broadcast_to.decompose
def _(self, size):
    return expand(self, size)


sum_to_size = Composite(
    "sum_to_size(Tensor self, int[]* size) -> Tensor",
    doc="""
    `self` summed to shape `size`, which must broadcast to the shape of `self`. The gradient of a broadcast is computed this
    way.

    Args:
        size: The shape of the result, which broadcasts to that of `input`.

    Raises: ShapeError if `size` does not broadcast to the shape of `self`.

    >>> import plait_core as pc
    >>> pc.ones(2, 3).sum_to_size(1, 3).tolist()
    [[2.0, 2.0, 2.0]]
    """,
    variants="method",
)


@sum_to_size.decompose
def _(self, size):
    common = broadcast("self", self.shape, "size", size)
    check(
        self.shape == common, f"`size` {size} must broadcast to the shape of `self`, {self.shape}"
    )
    if len(size) == 0:
        return op.sum(self)
    return sum_to(self, size)


# ---- several tensors ---------------------------------------------------------------------------
broadcast_tensors_ = Composite(
    "broadcast_tensors(Tensor[] tensors) -> Tensor[]",
    doc="""
    Views of the `tensors` in the shape to which they all broadcast; they must not be written.

    Args:
        tensors: The tensors, whose shapes broadcast.

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
