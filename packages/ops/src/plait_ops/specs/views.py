"""Views: other shapes of the same bytes."""

import numpy as np

from plait_ops.calls import dense
from plait_ops.spec import Composite, View
from plait_ops.words import (
    check,
    infer_size,
    max_dims,
    sizes,
    sum_to,
    view_strides,
    viewable,
    wrap_dim,
)
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


unsqueeze = View(
    "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
    doc="""
    `self` with a dimension of size 1 inserted at `dim`, which lies in ``[-ndim - 1, ndim]``.

    Raises: IndexError for a dim out of range.

    >>> import plait_core as pc
    >>> tuple(pc.zeros(3).unsqueeze(-1).shape)
    (3, 1)
    """,
)


@unsqueeze.shape
def _(self, dim):
    n = self.ndim + 1
    check(
        -n <= dim < n,
        f"`dim` must be in [{-n}, {n - 1}] for shape {self.shape}; got {dim}",
        "IndexError",
    )
    at = dim + n if dim < 0 else dim
    max_dims("dim", n)
    step = self.shape[at] * self.strides[at] if at < self.ndim else 1
    return look(
        self,
        self.shape[:at] + [1] + self.shape[at:],
        self.strides[:at] + [step] + self.strides[at:],
    )


@unsqueeze.vjp("self")
def _(g, self):
    return reshape(g, self.shape)


unsqueeze.reference(lambda self, dim: np.expand_dims(self, dim))
unsqueeze.samples(
    lambda s: iter(
        [
            s(s.array(2, 3), 0),
            s(s.array(2, 3), -1),
            s(s.array(2, 3), 1),
            s(s.array(), 0),
            s(s.backwards(3), 1),
        ]
    )
)
unsqueeze.error(
    "IndexError", lambda s: s(s.array(2, 3), 3), contains=["unsqueeze", "dim", "(2, 3)", "3"]
)
unsqueeze.error(
    "IndexError", lambda s: s(s.array(2, 3), -4), contains=["unsqueeze", "dim", "(2, 3)", "-4"]
)
unsqueeze.error(
    "ShapeError", lambda s: s(s.array(*[1] * 64), 0), contains=["unsqueeze", "dim", "65", "64"]
)


squeeze = View(
    "squeeze(Tensor(a) self) -> Tensor(a)",
    doc="""
    `self` without its dimensions of size 1.

    >>> import plait_core as pc
    >>> tuple(pc.zeros(1, 3, 1).squeeze().shape)
    (3,)
    """,
)
squeeze_dim = View(
    "squeeze.dim(Tensor(a) self, int[] dim|axis) -> Tensor(a)",
    doc="""
    `self` without those of the dimensions `dim` (an int or several) that have size 1.

    Raises: IndexError for a dim out of range.

    >>> import plait_core as pc
    >>> tuple(pc.zeros(1, 3, 1).squeeze(0).shape)
    (3, 1)
    """,
)


@squeeze.shape
def _(self):
    keep = [i for i in range(self.ndim) if self.shape[i] != 1]
    return look(self, [self.shape[i] for i in keep], [self.strides[i] for i in keep])


@squeeze_dim.shape
def _(self, dim):
    drop = [wrap_dim("dim", d, self.shape) for d in dim]
    keep = [i for i in range(self.ndim) if self.shape[i] != 1 or i not in drop]
    return look(self, [self.shape[i] for i in keep], [self.strides[i] for i in keep])


@squeeze.vjp("self")
@squeeze_dim.vjp("self")
def _(g, self):
    return reshape(g, self.shape)


@squeeze_dim.reference
def _(self, dim):
    drop = [d % max(self.ndim, 1) for d in ([dim] if isinstance(dim, int) else dim)]
    return self.reshape([n for i, n in enumerate(self.shape) if n != 1 or i not in drop])


squeeze.reference(lambda self: np.squeeze(self))
squeeze.samples(
    lambda s: iter([s(s.array(1, 3, 1)), s(s.array(2, 3)), s(s.array()), s(s.array(1, 0))])
)
squeeze_dim.samples(
    lambda s: iter(
        [s(s.array(1, 3, 1), (0,)), s(s.array(1, 3, 1), (0, -1)), s(s.array(2, 3), (0,))]
    )
)
squeeze.error("TypeError", lambda s: s("x"), contains=["squeeze", "self"])
squeeze_dim.error(
    "IndexError", lambda s: s(s.array(1, 3), (2,)), contains=["squeeze", "dim", "(1, 3)", "2"]
)

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
