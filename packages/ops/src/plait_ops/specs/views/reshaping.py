"""Views under other names, flips and turns, and sums to a shape."""

import numpy as np

from plait_ops.calls import (
    clone,
    conj,
    expand,
    flip,
    movedim,
    reshape,
    sum,
    transpose,
    view,
)
from plait_ops.spec import Composite
from plait_ops.words import broadcast, check, infer_size, is_complex, max_dims, sum_to, wrap_dim


def _view(name, arguments, text, example, reference, samples, dtypes="any"):
    operator = Composite(
        f"{name}(Tensor(a) self{arguments}) -> Tensor(a)",
        doc=f"""
    {text}

    >>> import plait_core as pc
    >>> {example[0]}
    {example[1]}
    """,
        dtypes=dtypes,
    )
    operator.reference(reference)
    operator.samples(samples)
    return operator


ravel = _view(
    "ravel",
    "",
    "`self` as a vector: a view where its elements lie in order, else a copy.",
    ("pc.tensor([[1, 2], [3, 4]]).ravel().tolist()", "[1, 2, 3, 4]"),
    lambda self: self.reshape(-1),
    lambda s: iter([s(s.array(2, 3)), s(s.array()), s(s.strided(2, 3)), s(s.array(0, 2))]),
)
expand_as = _view(
    "expand_as",
    ", Tensor other",
    "`self` broadcast to the shape of `other`: ``self.expand(other.shape)``.",
    ("pc.tensor([1, 2]).expand_as(pc.zeros(2, 2)).tolist()", "[[1, 2], [1, 2]]"),
    lambda self, other: np.broadcast_to(self, other.shape),
    lambda s: iter([s(s.array(3), s.array(2, 3)), s(s.array(2, 1), s.array(2, 4))]),
)
view_as = _view(
    "view_as",
    ", Tensor other",
    "A view in the shape of `other`: ``self.view(other.shape)``.",
    ("pc.arange(4).view_as(pc.zeros(2, 2)).tolist()", "[[0, 1], [2, 3]]"),
    lambda self, other: self.reshape(other.shape),
    lambda s: iter([s(s.array(6), s.array(2, 3)), s(s.array(2, 2), s.array(4))]),
)
reshape_as = _view(
    "reshape_as",
    ", Tensor other",
    "The elements in the shape of `other`: ``self.reshape(other.shape)``.",
    ("pc.arange(4).reshape_as(pc.zeros(2, 2)).tolist()", "[[0, 1], [2, 3]]"),
    lambda self, other: self.reshape(other.shape),
    lambda s: iter([s(s.strided(2, 3), s.array(6)), s(s.array(2, 2), s.array(4))]),
)
swapdims = _view(
    "swapdims",
    ", int dim0, int dim1",
    "`transpose` under its other name.",
    ("pc.tensor([[1, 2]]).swapdims(0, 1).tolist()", "[[1], [2]]"),
    lambda self, dim0, dim1: np.swapaxes(self, dim0, dim1),
    lambda s: iter([s(s.array(2, 3), 0, 1), s(s.array(2, 3, 4), -1, 0)]),
)
moveaxis = _view(
    "moveaxis",
    ", int[] source, int[] destination",
    "`movedim` under NumPy's name.",
    ("pc.zeros(2, 3, 4).moveaxis(0, -1).shape", "plait.Size([3, 4, 2])"),
    lambda self, source, destination: np.moveaxis(self, source, destination),
    lambda s: iter([s(s.array(2, 3, 4), 0, -1), s(s.array(2, 3, 4), (0, 1), (2, 0))]),
)
adjoint = _view(
    "adjoint",
    "",
    "The last two dimensions swapped, complex numbers conjugated: a view of a real tensor, a copy of a complex one.",
    ("pc.tensor([[1, 2]]).adjoint().tolist()", "[[1], [2]]"),
    lambda self: np.conj(np.swapaxes(self, -1, -2)),
    lambda s: iter([s(s.array(2, 3)), s(s.array(2, 3, 4)), s(s.array(2, 3, dtype="complex64"))]),
)
unflatten = _view(
    "unflatten",
    ", int dim, int[] sizes",
    """
    `dim` split into several dimensions of the given `sizes`, of which one may be -1.

    Raises: IndexError for a `dim` out of range, ShapeError if the sizes do not multiply to that of `dim`.
    """,
    ("pc.arange(4).unflatten(0, (2, -1)).tolist()", "[[0, 1], [2, 3]]"),
    lambda self, dim, sizes: self.reshape(
        self.shape[: dim % self.ndim] + tuple(sizes) + self.shape[dim % self.ndim + 1 :]
    ),
    lambda s: iter(
        [s(s.array(4, 6), 1, (2, 3)), s(s.array(6), 0, (-1, 2)), s(s.strided(4, 3), -2, (2, 2))]
    ),
)


@ravel.decompose
def _(self):
    return reshape(self, [-1])


@expand_as.decompose
def _(self, other):
    return expand(self, other.shape)


@view_as.decompose
def _(self, other):
    return view(self, other.shape)


@reshape_as.decompose
def _(self, other):
    return reshape(self, other.shape)


@swapdims.decompose
def _(self, dim0, dim1):
    return transpose(self, dim0, dim1)


@moveaxis.decompose
def _(self, source, destination):
    return movedim(self, source, destination)


@adjoint.decompose
def _(self):
    check(self.ndim >= 2, f"`self` must have at least 2 dimensions; got shape {self.shape}")
    return conj(transpose(self, -2, -1)) if is_complex(self.dtype) else transpose(self, -2, -1)


@unflatten.decompose
def _(self, dim, sizes):
    at = wrap_dim("dim", dim, self.shape)
    check(self.ndim > 0, "`self` must have at least 1 dimension; got shape ()")
    check(len(sizes) > 0, "`sizes` must not be empty; got ()")
    max_dims("sizes", self.ndim + len(sizes))
    made = infer_size("sizes", sizes, self.shape[at : at + 1])
    return view(self, self.shape[:at] + made + self.shape[at + 1 :])


ravel.error("TypeError", lambda s: s("a"), contains=["ravel", "self"])
expand_as.error(
    "ShapeError", lambda s: s(s.array(3), s.array(2)), contains=["expand", "(2,)", "(3,)"]
)
view_as.error("ShapeError", lambda s: s(s.array(3), s.array(2)), contains=["view", "(2,)", "(3,)"])
reshape_as.error(
    "ShapeError", lambda s: s(s.array(3), s.array(2)), contains=["reshape", "(2,)", "(3,)"]
)
swapdims.error("IndexError", lambda s: s(s.array(3), 0, 1), contains=["transpose", "(3,)"])
moveaxis.error("IndexError", lambda s: s(s.array(3), 1, 0), contains=["movedim", "(3,)"])
adjoint.error("ShapeError", lambda s: s(s.array(3)), contains=["adjoint", "self", "(3,)"])
unflatten.error(
    "ShapeError", lambda s: s(s.array(6), 0, (4, 2)), contains=["unflatten", "sizes", "(4, 2)", "6"]
)
unflatten.error(
    "IndexError", lambda s: s(s.array(6), 1, (6,)), contains=["unflatten", "dim", "(6,)"]
)


# ---- flips and turns ---------------------------------------------------------------------------
def _flipped(name, dim, text, reference):
    operator = Composite(
        f"{name}(Tensor self) -> Tensor",
        doc=f"""
    `self` with {text} in the opposite order; a copy.

    Raises: ShapeError for fewer than {dim + 1} dimensions.

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([[1, 2], [3, 4]])).tolist()
    {reference(np.array([[1, 2], [3, 4]])).tolist()}
    """,
        dtypes="any",
    )
    operator.reference(lambda self: reference(self))
    operator.samples(lambda s: iter([s(s.array(3, 4)), s(s.strided(2, 3, 4)), s(s.array(0, 3))]))
    operator.error("ShapeError", lambda s: s(s.array()), contains=[name, "self", "()"])
    return operator


fliplr = _flipped("fliplr", 1, "its columns (dimension 1)", np.fliplr)
flipud = _flipped("flipud", 0, "its rows (dimension 0)", np.flipud)


@fliplr.decompose
def _(self):
    check(self.ndim >= 2, f"`self` must have at least 2 dimensions; got shape {self.shape}")
    return flip(self, [1])


@flipud.decompose
def _(self):
    check(self.ndim >= 1, f"`self` must have at least 1 dimension; got shape {self.shape}")
    return flip(self, [0])


rot90 = Composite(
    "rot90(Tensor self, int k=1, int[] dims|axes=(0, 1)) -> Tensor",
    doc="""
    `self` turned by `k` times 90 degrees in the plane of `dims`, from the first towards the second; a copy.

    Raises: ShapeError for fewer than 2 dimensions, ValueError unless `dims` are two different ones.

    >>> import plait_core as pc
    >>> pc.rot90(pc.tensor([[1, 2], [3, 4]])).tolist()
    [[2, 4], [1, 3]]
    """,
    dtypes="any",
)


@rot90.decompose
def _(self, k, dims):
    check(self.ndim >= 2, f"`self` must have at least 2 dimensions; got shape {self.shape}")
    check(len(dims) == 2, f"`dims` must be two dimensions; got {dims}", "ValueError")
    a = wrap_dim("dims", dims[0], self.shape)
    b = wrap_dim("dims", dims[1], self.shape)
    check(a != b, f"`dims` must be two different dimensions; got {dims}", "ValueError")
    turns = k % 4
    if turns == 1:
        return transpose(flip(self, [b]), a, b)
    if turns == 2:
        return flip(self, [a, b])
    if turns == 3:
        return transpose(flip(self, [a]), a, b)
    return clone(self)


rot90.reference(lambda self, k=1, dims=(0, 1): np.rot90(self, k, dims))
rot90.samples(
    lambda s: iter(
        [*[s(s.array(2, 3), k) for k in (-1, 0, 1, 2, 3, 4)], s(s.array(2, 3, 4), 1, (2, 0))]
    )
)
rot90.error("ShapeError", lambda s: s(s.array(3)), contains=["rot90", "self", "(3,)"])
rot90.error(
    "ValueError", lambda s: s(s.array(2, 3), 1, (1, -1)), contains=["rot90", "dims", "(1, -1)"]
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
