"""Views: other shapes and orders of the same bytes."""

import numpy as np

from plait_ops.calls import add_, copy_, dense, zeros
from plait_ops.spec import Composite, Operator, View
from plait_ops.words import (
    check,
    infer_size,
    max_dims,
    result,
    sizes,
    slice_count,
    slice_start,
    sum_to,
    view_strides,
    viewable,
    wrap_dim,
    wrap_index,
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


permute = View(
    "permute(Tensor(a) self, int[]* dims) -> Tensor(a)",
    doc="""
    `self` with its dimensions in the order `dims`: ``out.shape[i] = self.shape[dims[i]]``.

    Raises: ValueError unless `dims` names each dimension once.

    >>> import plait_core as pc
    >>> tuple(pc.zeros(2, 3, 4).permute(2, 0, 1).shape)
    (4, 2, 3)
    """,
)


@permute.shape
def _(self, dims):
    check(
        len(dims) == self.ndim,
        f"`dims` must name each of the {self.ndim} dimensions of shape {self.shape} once; got {dims}",
        "ValueError",
    )
    shape = []
    strides = []
    seen = []
    for dim in dims:
        at = wrap_dim("dims", dim, self.shape)
        check(at not in seen, f"`dims` must name each dimension once; got {dims}", "ValueError")
        seen.append(at)
        shape.append(self.shape[at])
        strides.append(self.strides[at])
    return look(self, shape, strides)


@permute.vjp("self")
def _(g, dims):
    inverse = [0] * len(dims)
    for i, dim in enumerate(dims):
        inverse[dim] = i
    return permute(g, inverse)


permute.reference(lambda self, dims: np.transpose(self, dims))


@permute.samples
def _(s):
    yield s(s.array(2, 3, 4), 2, 0, 1)
    yield s(s.array(2, 3), (-1, 0))
    yield s(s.backwards(2, 3), (1, 0))
    yield s(s.array(), ())
    yield s(s.array(0, 3), (1, 0))


permute.error(
    "ValueError", lambda s: s(s.array(2, 3), (0,)), contains=["permute", "dims", "(2, 3)", "(0,)"]
)
permute.error(
    "ValueError", lambda s: s(s.array(2, 3), (1, 1)), contains=["permute", "dims", "(1, 1)"]
)
permute.error(
    "IndexError", lambda s: s(s.array(2, 3), (0, 2)), contains=["permute", "dims", "(2, 3)", "2"]
)


transpose = View(
    "transpose(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
    doc="""
    `self` with the dimensions `dim0` and `dim1` exchanged.

    Raises: IndexError for a dim out of range.

    >>> import plait_core as pc
    >>> tuple(pc.zeros(2, 3, 4).transpose(0, -1).shape)
    (4, 3, 2)
    """,
)


@transpose.shape
def _(self, dim0, dim1):
    a = wrap_dim("dim0", dim0, self.shape)
    b = wrap_dim("dim1", dim1, self.shape)
    shape = list(self.shape)
    strides = list(self.strides)
    if self.ndim > 0:
        shape[a] = self.shape[b]
        shape[b] = self.shape[a]
        strides[a] = self.strides[b]
        strides[b] = self.strides[a]
    return look(self, shape, strides)


@transpose.vjp("self")
def _(g, dim0, dim1):
    return transpose(g, dim0, dim1)


transpose.reference(lambda self, dim0, dim1: np.swapaxes(self, dim0, dim1) if self.ndim else self)


@transpose.samples
def _(s):
    yield s(s.array(2, 3), 0, 1)
    yield s(s.array(2, 3, 4), -1, 0)
    yield s(s.array(2, 3), 1, 1)
    yield s(s.array(), 0, -1)


transpose.error(
    "IndexError", lambda s: s(s.array(2, 3), 0, 2), contains=["transpose", "dim1", "(2, 3)", "2"]
)
transpose.error(
    "IndexError", lambda s: s(s.array(2, 3), -3, 0), contains=["transpose", "dim0", "(2, 3)", "-3"]
)


swapaxes = Composite(
    "swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)",
    doc="""
    `transpose` under NumPy's name.

    >>> import plait_core as pc
    >>> tuple(pc.swapaxes(pc.zeros(2, 3), 0, 1).shape)
    (3, 2)
    """,
    dtypes="any",
)


@swapaxes.decompose
def _(self, axis0, axis1):
    return transpose(self, axis0, axis1)


swapaxes.reference(lambda self, axis0, axis1: np.swapaxes(self, axis0, axis1))
swapaxes.samples(lambda s: iter([s(s.array(2, 3), 0, 1), s(s.array(2, 3, 4), -1, 0)]))
swapaxes.error(
    "IndexError", lambda s: s(s.array(2, 3), 0, 2), contains=["transpose", "(2, 3)", "2"]
)


t = View(
    "t(Tensor(a) self) -> Tensor(a)",
    doc="""
    The transpose of a matrix; a vector or a 0-d tensor is returned as it is.

    Raises: ShapeError for more than 2 dimensions.

    >>> import plait_core as pc
    >>> tuple(pc.zeros(2, 3).t().shape)
    (3, 2)
    """,
)


@t.shape
def _(self):
    check(self.ndim <= 2, f"`self` must have at most 2 dimensions; got shape {self.shape}")
    return look(self, self.shape[::-1], self.strides[::-1])


@t.vjp("self")
def _(g):
    return t(g)


t.reference(lambda self: self.T)
t.samples(
    lambda s: iter(
        [s(s.array(2, 3)), s(s.array(3)), s(s.array()), s(s.backwards(2, 2)), s(s.array(0, 3))]
    )
)
t.error("ShapeError", lambda s: s(s.array(2, 3, 4)), contains=["t:", "self", "(2, 3, 4)"])


movedim = Composite(
    "movedim(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
    doc="""
    `self` with the dimensions `source` at the places `destination`; the others keep their order.

    Raises: ValueError if the two lists differ in length or repeat a dimension.

    >>> import plait_core as pc
    >>> tuple(pc.movedim(pc.zeros(2, 3, 4), 0, -1).shape)
    (3, 4, 2)
    """,
    dtypes="any",
)


@movedim.decompose
def _(self, source, destination):
    check(
        len(source) == len(destination),
        f"`source` {source} and `destination` {destination} must be of one length",
        "ValueError",
    )
    dims = [-1] * self.ndim
    taken = []
    for a, b in zip(source, destination, strict=True):
        at = wrap_dim("source", a, self.shape)
        to = wrap_dim("destination", b, self.shape)
        check(at not in taken, f"`source` must not repeat a dimension; got {source}", "ValueError")
        check(
            dims[to] == -1,
            f"`destination` must not repeat a dimension; got {destination}",
            "ValueError",
        )
        taken.append(at)
        dims[to] = at
    rest = 0
    for i in range(self.ndim):
        if dims[i] == -1:
            while rest in taken:
                rest += 1
            dims[i] = rest
            rest += 1
    return permute(self, dims)


movedim.reference(lambda self, source, destination: np.moveaxis(self, source, destination))


@movedim.samples
def _(s):
    yield s(s.array(2, 3, 4), (0,), (-1,))
    yield s(s.array(2, 3, 4), (0, 1), (1, 0))
    yield s(s.array(2, 3, 4, 5), (-1, 0), (0, 2))


movedim.error(
    "ValueError",
    lambda s: s(s.array(2, 3), (0, 1), (0,)),
    contains=["movedim", "source", "destination"],
)
movedim.error(
    "ValueError",
    lambda s: s(s.array(2, 3), (0, 0), (0, 1)),
    contains=["movedim", "source", "(0, 0)"],
)
movedim.error(
    "IndexError", lambda s: s(s.array(2, 3), (2,), (0,)), contains=["movedim", "source", "(2, 3)"]
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


select = View(
    "select(Tensor(a) self, int dim, int index) -> Tensor(a)",
    doc="""
    The slice of `self` at `index` along `dim`, without that dimension: ``self[..., index, ...]``.

    Raises: IndexError if `dim` or `index` is out of range.

    >>> import plait_core as pc
    >>> pc.tensor([[1, 2], [3, 4]]).select(0, -1).tolist()
    [3, 4]
    """,
)
select_backward = Operator(
    "select_backward(Tensor grad, int[] size, int dim, int index) -> Tensor",
    doc="Zeros of shape `size` with `grad` at `index` along `dim`: the derivative of `select`.",
    dtypes="floating",
    internal=True,
)


@select.shape
def _(self, dim, index):
    check(
        self.ndim > 0,
        f"`self` must have at least 1 dimension; got shape {self.shape}",
        "IndexError",
    )
    at = wrap_dim("dim", dim, self.shape)
    i = wrap_index("index", index, self.shape[at])
    return look(
        self,
        self.shape[:at] + self.shape[at + 1 :],
        self.strides[:at] + self.strides[at + 1 :],
        i * self.strides[at],
    )


@select.vjp("self")
def _(g, self, dim, index):
    return select_backward(g, self.shape, dim, index)


@select_backward.shape
def _(grad, size, dim, index):
    at = wrap_dim("dim", dim, size)
    wrap_index("index", index, size[at])
    check(
        grad.shape == size[:at] + size[at + 1 :],
        f"`grad` of shape {grad.shape} does not fit `size` {size} without dimension {at}",
    )
    return result(size, grad.dtype)


@select_backward.decompose
def _(grad, size, dim, index):
    made = zeros(size, dtype=grad.dtype, device=grad.device)
    copy_(select(made, dim, index), grad)
    return made


@select_backward.vjp("grad")
def _(g, dim, index):
    return select(g, dim, index)


def _select(self, dim, index):
    return self[(slice(None),) * (dim % self.ndim) + (index,)]


@select_backward.reference
def _(grad, size, dim, index):
    made = np.zeros(size, grad.dtype)
    made[(slice(None),) * (dim % made.ndim) + (index,)] = grad
    return made


select.reference(lambda self, dim, index: _select(self, dim, index))
select.samples(
    lambda s: iter(
        [
            s(s.array(2, 3), 0, 1),
            s(s.array(2, 3), -1, -1),
            s(s.backwards(3, 2, 2), 1, 0),
            s(s.array(3), 0, 2),
        ]
    )
)
select_backward.samples(
    lambda s: iter(
        [s(s.array(3), (2, 3), 0, 1), s(s.array(2), (2, 3), -1, -3), s(s.array(), (3,), 0, 0)]
    )
)
select.error(
    "IndexError", lambda s: s(s.array(2, 3), 2, 0), contains=["select", "dim", "(2, 3)", "2"]
)
select.error("IndexError", lambda s: s(s.array(2, 3), 0, 2), contains=["select", "index", "2"])
select.error(
    "IndexError", lambda s: s(s.array(2, 3), 1, -4), contains=["select", "index", "-4", "3"]
)
select.error("IndexError", lambda s: s(s.array(), 0, 0), contains=["select", "self", "()"])
select_backward.error(
    "ShapeError", lambda s: s(s.array(2), (2, 3), 0, 1), contains=["grad", "(2,)", "(2, 3)"]
)


slice_ = View(
    "slice(Tensor(a) self, int dim, int? start=None, int? end=None, int step=1) -> Tensor(a)",
    doc="""
    ``self[..., start:end:step, ...]`` along `dim`: bounds are clipped as Python does, `step` may be negative.

    Raises: IndexError for a `dim` out of range, ValueError if `step` is 0.

    >>> import plait_core as pc
    >>> pc.slice(pc.arange(5), 0, None, None, -2).tolist()
    [4, 2, 0]
    """,
    method=False,
)
slice_backward = Operator(
    "slice_backward(Tensor grad, int[] size, int dim, int? start=None, int? end=None, int step=1) -> Tensor",
    doc="Zeros of shape `size` with `grad` in ``[..., start:end:step, ...]``: the derivative of `slice`.",
    dtypes="floating",
    internal=True,
)


@slice_.shape
def _(self, dim, start, end, step):
    check(
        self.ndim > 0,
        f"`self` must have at least 1 dimension; got shape {self.shape}",
        "IndexError",
    )
    at = wrap_dim("dim", dim, self.shape)
    check(step != 0, f"`step` must not be 0; got {step}", "ValueError")
    n = self.shape[at]
    first = slice_start(start, step, n)
    count = slice_count(start, end, step, n)
    shape = list(self.shape)
    strides = list(self.strides)
    shape[at] = count
    strides[at] = strides[at] * step if count > 1 else strides[at]
    return look(self, shape, strides, first * self.strides[at] if count > 0 else 0)


@slice_.vjp("self")
def _(g, self, dim, start, end, step):
    return slice_backward(g, self.shape, dim, start, end, step)


@slice_backward.shape
def _(grad, size, dim, start, end, step):
    at = wrap_dim("dim", dim, size)
    check(step != 0, f"`step` must not be 0; got {step}", "ValueError")
    want = list(size)
    want[at] = slice_count(start, end, step, size[at])
    check(
        grad.shape == tuple(want),
        f"`grad` of shape {grad.shape} does not fit; {tuple(want)} is required",
    )
    return result(size, grad.dtype)


@slice_backward.decompose
def _(grad, size, dim, start, end, step):
    made = zeros(size, dtype=grad.dtype, device=grad.device)
    copy_(slice_(made, dim, start, end, step), grad)
    return made


@slice_backward.vjp("grad")
def _(g, dim, start, end, step):
    return slice_(g, dim, start, end, step)


def _slice(self, dim, start=None, end=None, step=1):
    return self[(slice(None),) * (dim % self.ndim) + (slice(start, end, step),)]


@slice_backward.reference
def _(grad, size, dim, start=None, end=None, step=1):
    made = np.zeros(size, grad.dtype)
    _slice(made, dim, start, end, step)[...] = grad
    return made


slice_.reference(_slice)


@slice_.samples
def _(s):
    yield s(s.array(5), 0, 1, 4)
    yield s(s.array(5, 2), 0, None, None, 2)
    yield s(s.array(2, 5), 1, None, None, -1)
    yield s(s.array(2, 5), -1, -2, None)
    yield s(s.array(5), 0, 3, 1)
    yield s(s.array(5), 0, 4, 0, -2)
    yield s(s.array(5), 0, -100, 100, 3)
    yield s(s.array(0, 2), 0)


slice_backward.samples(
    lambda s: iter([s(s.array(3), (5,), 0, 1, 4), s(s.array(2, 3), (2, 5), -1, None, None, -2)])
)
slice_.error("IndexError", lambda s: s(s.array(2, 3), 2), contains=["slice", "dim", "(2, 3)", "2"])
slice_.error("ValueError", lambda s: s(s.array(2, 3), 0, 0, 2, 0), contains=["slice", "step", "0"])
slice_backward.error(
    "ShapeError", lambda s: s(s.array(2), (5,), 0, 1, 4), contains=["grad", "(2,)", "(3,)"]
)


narrow = View(
    "narrow(Tensor(a) self, int dim, int start, int length) -> Tensor(a)",
    doc="""
    `length` elements of `self` along `dim`, from `start` on.

    Raises: IndexError if `dim` or `start` is out of range, ShapeError if `length` is negative or reaches past the end.

    >>> import plait_core as pc
    >>> pc.arange(5).narrow(0, 1, 3).tolist()
    [1, 2, 3]
    """,
)


@narrow.shape
def _(self, dim, start, length):
    check(
        self.ndim > 0,
        f"`self` must have at least 1 dimension; got shape {self.shape}",
        "IndexError",
    )
    at = wrap_dim("dim", dim, self.shape)
    n = self.shape[at]
    check(
        -n <= start <= n,
        f"`start` must be in [{-n}, {n}] for a dimension of size {n}; got {start}",
        "IndexError",
    )
    first = start + n if start < 0 else start
    check(
        0 <= length <= n - first,
        f"`length` must be in [0, {n - first}] for `start` {start} in a dimension of size {n}; got {length}",
    )
    shape = list(self.shape)
    shape[at] = length
    return look(self, shape, self.strides, first * self.strides[at] if length > 0 else 0)


@narrow.vjp("self")
def _(g, self, dim, start, length):
    first = start + self.shape[dim] if start < 0 else start
    return slice_backward(g, self.shape, dim, first, first + length, 1)


@narrow.reference
def _(self, dim, start, length):
    first = start % self.shape[dim] if start < 0 else start
    return _slice(self, dim, first, first + length)


narrow.samples(
    lambda s: iter(
        [
            s(s.array(5), 0, 1, 3),
            s(s.array(2, 5), -1, -2, 2),
            s(s.backwards(4, 2), 0, 0, 4),
            s(s.array(3), 0, 3, 0),
        ]
    )
)
narrow.error(
    "IndexError", lambda s: s(s.array(2, 3), 2, 0, 1), contains=["narrow", "dim", "(2, 3)"]
)
narrow.error("IndexError", lambda s: s(s.array(2, 3), 0, 3, 0), contains=["narrow", "start", "3"])
narrow.error("ShapeError", lambda s: s(s.array(2, 3), 1, 1, 3), contains=["narrow", "length", "3"])
narrow.error(
    "ShapeError", lambda s: s(s.array(2, 3), 1, 1, -1), contains=["narrow", "length", "-1"]
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
    "ShapeError", lambda s: s(s.array(6), (2,), (1,), -1), contains=["as_strided", "outside"]
)
as_strided.error(
    "ShapeError", lambda s: s(s.array(6), (2,), (2**62,)), contains=["as_strided", "outside"]
)
as_strided.error(
    "ShapeError", lambda s: s(s.array(6), (-1,), (1,)), contains=["as_strided", "size", "(-1,)"]
)


diagonal = View(
    "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
    doc="""
    The diagonal of the matrices in dimensions `dim1` and `dim2`, as a new last dimension; `offset` counts to the upper
    right.

    Raises: IndexError for a dim out of range, ValueError if both are the same.

    >>> import plait_core as pc
    >>> pc.tensor([[1, 2], [3, 4]]).diagonal().tolist()
    [1, 4]
    """,
)
diagonal_backward = Operator(
    "diagonal_backward(Tensor grad, int[] size, int offset, int dim1, int dim2) -> Tensor",
    doc="Zeros of shape `size` with `grad` on a diagonal: the derivative of `diagonal`.",
    dtypes="floating",
    internal=True,
)


@diagonal.shape
def _(self, offset, dim1, dim2):
    check(self.ndim >= 2, f"`self` must have at least 2 dimensions; got shape {self.shape}")
    a = wrap_dim("dim1", dim1, self.shape)
    b = wrap_dim("dim2", dim2, self.shape)
    check(a != b, f"`dim1` and `dim2` must differ; got {dim1} and {dim2}", "ValueError")
    rows = self.shape[a] - max(-offset, 0)
    columns = self.shape[b] - max(offset, 0)
    n = max(min(rows, columns), 0)
    shape = [self.shape[i] for i in range(self.ndim) if i != a and i != b]
    strides = [self.strides[i] for i in range(self.ndim) if i != a and i != b]
    start = max(-offset, 0) * self.strides[a] + max(offset, 0) * self.strides[b] if n > 0 else 0
    return look(self, shape + [n], strides + [self.strides[a] + self.strides[b]], start)


@diagonal.vjp("self")
def _(g, self, offset, dim1, dim2):
    return diagonal_backward(g, self.shape, offset, dim1, dim2)


@diagonal_backward.shape
def _(grad, size):
    sizes("size", size)
    return result(size, grad.dtype)


@diagonal_backward.decompose
def _(grad, size, offset, dim1, dim2):
    made = zeros(size, dtype=grad.dtype, device=grad.device)
    copy_(diagonal(made, offset, dim1, dim2), grad)
    return made


@diagonal_backward.vjp("grad")
def _(g, offset, dim1, dim2):
    return diagonal(g, offset, dim1, dim2)


@diagonal_backward.reference
def _(grad, size, offset, dim1, dim2):
    made = np.zeros(size, grad.dtype)
    d = np.diagonal(made, offset, dim1, dim2)
    d.setflags(write=True)
    d[...] = grad
    return made


diagonal.reference(lambda self, offset=0, dim1=0, dim2=1: np.diagonal(self, offset, dim1, dim2))
diagonal.samples(
    lambda s: iter(
        [
            s(s.array(3, 4)),
            s(s.array(3, 4), 1),
            s(s.array(3, 4), -2),
            s(s.array(2, 3, 4), 0, -1, 0),
            s(s.array(2, 2), 5),
        ]
    )
)
diagonal_backward.samples(
    lambda s: iter([s(s.array(3), (3, 4), 0, 0, 1), s(s.array(2), (3, 4), 2, 0, 1)])
)
diagonal.error("ShapeError", lambda s: s(s.array(3)), contains=["diagonal", "self", "(3,)"])
diagonal.error(
    "ValueError", lambda s: s(s.array(3, 4), 0, 1, -1), contains=["diagonal", "dim1", "dim2"]
)
diagonal.error(
    "IndexError", lambda s: s(s.array(3, 4), 0, 0, 2), contains=["diagonal", "dim2", "(3, 4)", "2"]
)
diagonal_backward.error(
    "ShapeError", lambda s: s(s.array(3), (-1, 3), 0, 0, 1), contains=["diagonal_backward", "-1"]
)


unfold = View(
    "unfold(Tensor(a) self, int dim|dimension, int size, int step) -> Tensor(a)",
    doc="""
    Windows of `size` elements along `dim`, `step` elements apart, as a new last dimension; windows may overlap, so that
    the result must not be written.

    Raises: ValueError if `size` is negative or larger than the dimension, or if `step` is below 1.

    >>> import plait_core as pc
    >>> pc.arange(4).unfold(0, 2, 1).tolist()
    [[0, 1], [1, 2], [2, 3]]
    """,
)
unfold_backward = Operator(
    "unfold_backward(Tensor grad, int[] input_size, int dim, int size, int step) -> Tensor",
    doc="Windows added up where they came from: the derivative of `unfold`.",
    dtypes="floating",
    internal=True,
)


@unfold.shape
def _(self, dim, size, step):
    check(
        self.ndim > 0,
        f"`self` must have at least 1 dimension; got shape {self.shape}",
        "IndexError",
    )
    at = wrap_dim("dim", dim, self.shape)
    n = self.shape[at]
    check(
        0 <= size <= n,
        f"`size` must be in [0, {n}] for dimension {dim} of shape {self.shape}; got {size}",
        "ValueError",
    )
    check(step >= 1, f"`step` must be at least 1; got {step}", "ValueError")
    max_dims("size", self.ndim + 1)
    shape = list(self.shape)
    strides = list(self.strides)
    shape[at] = (n - size) // step + 1
    strides[at] = strides[at] * step if shape[at] > 1 else strides[at]
    return look(self, shape + [size], strides + [self.strides[at]])


@unfold.vjp("self")
def _(g, self, dim, size, step):
    return unfold_backward(g, self.shape, dim, size, step)


@unfold_backward.shape
def _(grad, input_size):
    sizes("input_size", input_size)
    return result(input_size, grad.dtype)


@unfold_backward.decompose
def _(grad, input_size, dim, size, step):
    made = zeros(input_size, dtype=grad.dtype, device=grad.device)
    at = wrap_dim("dim", dim, input_size)
    for k in range(size):
        windows = slice_(made, at, k, k + (grad.shape[at] - 1) * step + 1, step)
        add_(windows, select(grad, -1, k))
    return made


@unfold_backward.vjp("grad")
def _(g, dim, size, step):
    return unfold(g, dim, size, step)


@unfold_backward.reference
def _(grad, input_size, dim, size, step):
    made = np.zeros(input_size, grad.dtype)
    at = dim % len(input_size)
    for k in range(size):
        _slice(made, at, k, k + (grad.shape[at] - 1) * step + 1, step)[...] += grad[..., k]
    return made


@unfold.reference
def _(self, dim, size, step):
    windows = (
        np.lib.stride_tricks.sliding_window_view(self, size, dim)
        if size
        else np.zeros((*self.shape, 0), self.dtype)
    )
    if not size:
        lead = list(self.shape)
        lead[dim] = self.shape[dim] // step + 1
        return np.zeros((*lead, 0), self.dtype)
    return _slice(windows, dim % self.ndim, None, None, step)


unfold.samples(
    lambda s: iter(
        [
            s(s.array(5), 0, 2, 1),
            s(s.array(2, 6), -1, 3, 2),
            s(s.backwards(5, 2), 0, 5, 1),
            s(s.array(4), 0, 1, 3),
        ]
    )
)
unfold_backward.samples(
    lambda s: iter([s(s.array(4, 2), (5,), 0, 2, 1), s(s.array(2, 2, 3), (2, 6), -1, 3, 2)])
)
unfold.error(
    "ValueError", lambda s: s(s.array(3), 0, 4, 1), contains=["unfold", "size", "4", "(3,)"]
)
unfold.error("ValueError", lambda s: s(s.array(3), 0, 2, 0), contains=["unfold", "step", "0"])
unfold.error("IndexError", lambda s: s(s.array(3), 1, 2, 1), contains=["unfold", "dim", "(3,)"])
unfold_backward.error(
    "ShapeError", lambda s: s(s.array(3, 2), (-1,), 0, 2, 1), contains=["unfold_backward", "-1"]
)
