"""Views with their dimensions in another order."""

from plait_ops.spec import Composite, View
from plait_ops.words import check, view as look, wrap_dim

permute = View(
    "permute(Tensor(a) self, int[]* dims) -> Tensor(a)",
    doc="""
    `self` with its dimensions in the order `dims`: ``out.shape[i] = self.shape[dims[i]]``.

    Args:
        dims: The new order of the dimensions.

    Raises: ValueError unless `dims` names each dimension once.

    >>> import plait_core as pc
    >>> tuple(pc.zeros(2, 3, 4).permute(2, 0, 1).shape)
    (4, 2, 3)
    """,
    variants="function method",
)
permute.batch("permute")


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


transpose = View(
    "transpose(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
    doc="""
    `self` with the dimensions `dim0` and `dim1` exchanged.

    Args:
        dim1: The second dimension.

    Raises: IndexError for a dim out of range.

    >>> import plait_core as pc
    >>> tuple(pc.zeros(2, 3, 4).transpose(0, -1).shape)
    (4, 3, 2)
    """,
    variants="function method",
)
transpose.batch("dimensions")


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


swapaxes = Composite(
    "swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)",
    doc="""
    `transpose` under NumPy's name.

    >>> import plait_core as pc
    >>> tuple(pc.swapaxes(pc.zeros(2, 3), 0, 1).shape)
    (3, 2)
    """,
    dtypes="any",
    variants="function method",
)


@swapaxes.decompose
def _(self, axis0, axis1):
    return transpose(self, axis0, axis1)


t = View(
    "t(Tensor(a) self) -> Tensor(a)",
    doc="""
    The transpose of a matrix; a vector or a 0-d tensor is returned as it is.

    Raises: ShapeError for more than 2 dimensions.

    >>> import plait_core as pc
    >>> tuple(pc.zeros(2, 3).t().shape)
    (3, 2)
    """,
    variants="function method",
)
t.batch("t")


@t.shape
def _(self):
    check(self.ndim <= 2, f"`self` must have at most 2 dimensions; got shape {self.shape}")
    return look(self, self.shape[::-1], self.strides[::-1])


@t.vjp("self")
def _(g):
    return t(g)


movedim = Composite(
    "movedim(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
    doc="""
    `self` with the dimensions `source` moved to the places `destination`; the other dimensions keep their order.

    Args:
        source: The dimensions to move.

    Raises: ValueError if the two lists differ in length or repeat a dimension.

    >>> import plait_core as pc
    >>> tuple(pc.movedim(pc.zeros(2, 3, 4), 0, -1).shape)
    (3, 4, 2)
    """,
    dtypes="any",
    variants="function method",
)


@movedim.decompose
def _(self, source, destination):
    check(
        len(source) == len(destination),
        f"`source` {source} and `destination` {destination} must have the same length",
        "ValueError",
    )
    dims = [-1] * max(self.ndim, 1)  # a 0-d tensor has the dims 0 and -1
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
    return permute(self, dims[: self.ndim])
