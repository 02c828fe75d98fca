"""Writing one element for each index: scatter and scatter_add."""

import numpy as np

from plait_ops.calls import gather, slice_backward
from plait_ops.spec import Operator
from plait_ops.words import cast_argument, check, int64, is_tensor, require, require_same, result, wrap_dim

SHAPES = """
    Shapes: `self`, `index` and `src` have the same number of dimensions; `index` is nowhere larger than `src`, and than
    `self` only along `dim`. The result has shape and dtype of `self`. Indices are integers; negative ones count from the
    end.
    Raises: ShapeError or DTypeError if the arguments do not fit, IndexError if `dim` or an index is out of range.
"""

scatter = Operator(
    "scatter(Tensor self, int dim|axis, Tensor index, Tensor|Scalar src|value) -> Tensor",
    doc=f"""
    `self` with the elements of `src` (or a number) at `index` along `dim`: for `dim` 0
    ``out[index[i, j], j] = src[i, j]``. Where an index repeats, the last one in C order is written.
    {SHAPES}
    >>> import plait_core as pc
    >>> pc.zeros(3).scatter(0, pc.tensor([2, 0]), pc.tensor([5.0, 7.0])).tolist()
    [7.0, 0.0, 5.0]
    """,
    inplace=True,
    out=True,
    dtypes="any",
    kernel="in[2] is int64; in[3] has the dtype of in[0] or is a number; `dim` is not wrapped.",
)
scatter_add = Operator(
    "scatter_add(Tensor self, int dim|axis, Tensor index, Tensor src) -> Tensor",
    doc=f"""
    `self` with the elements of `src` added at `index` along `dim`: for `dim` 0 ``out[index[i, j], j] += src[i, j]``.
    Indices may repeat: everything is added.
    {SHAPES}
    >>> import plait_core as pc
    >>> pc.zeros(3).scatter_add(0, pc.tensor([2, 2]), pc.tensor([5.0, 7.0])).tolist()
    [0.0, 0.0, 12.0]
    """,
    inplace=True,
    out=True,
    dtypes="numeric",
    kernel="in[2] is int64, in[3] has the dtype of in[0]; `dim` is not wrapped.",
)


@scatter.shape
def _(self, dim, index, src):
    at = wrap_dim("dim", dim, self.shape)
    require("index", index.dtype, "integer")
    check(
        index.ndim == self.ndim,
        f"`index` must have as many dimensions as `self` of shape {self.shape}; got shape {index.shape}",
    )
    if is_tensor(src):
        require_same("self", self, "src", src)
        check(
            src.ndim == self.ndim,
            f"`src` must have as many dimensions as `self` of shape {self.shape}; got shape {src.shape}",
        )
        for i in range(index.ndim):
            check(
                index.shape[i] <= src.shape[i],
                f"`index` of shape {index.shape} must not be larger than `src` of shape {src.shape}",
            )
    for i in range(index.ndim):
        check(
            i == at or index.shape[i] <= self.shape[i],
            f"`index` of shape {index.shape} must not be larger than `self` of shape {self.shape} outside dimension {at}",
        )
    cast_argument("index", int64)
    return result(self.shape, self.dtype)


@scatter_add.shape
def _(self, dim, index, src):
    at = wrap_dim("dim", dim, self.shape)
    require("self", self.dtype, "numeric")
    require("index", index.dtype, "integer")
    require_same("self", self, "src", src)
    check(
        index.ndim == self.ndim and src.ndim == self.ndim,
        f"`index` and `src` must have as many dimensions as `self` of shape {self.shape}; got shapes {index.shape} and {src.shape}",
    )
    for i in range(index.ndim):
        check(
            index.shape[i] <= src.shape[i],
            f"`index` of shape {index.shape} must not be larger than `src` of shape {src.shape}",
        )
        check(
            i == at or index.shape[i] <= self.shape[i],
            f"`index` of shape {index.shape} must not be larger than `self` of shape {self.shape} outside dimension {at}",
        )
    cast_argument("index", int64)
    return result(self.shape, self.dtype)


@scatter.vjp("self")
def _(g, dim, index):
    return scatter(g, dim, index, 0)


@scatter_add.vjp("self")
def _(g):
    return g


@scatter.vjp("src")
@scatter_add.vjp("src")
def _(g, dim, index, src):
    part = gather(g, dim, index)
    shape = list(index.shape)
    for i in range(index.ndim):
        if shape[i] != src.shape[i]:  # what was not read has gradient 0
            shape[i] = src.shape[i]
            part = slice_backward(part, shape, i, 0, index.shape[i], 1)
    return part


def _places(self, dim, index):
    """Return an index of NumPy for each dimension, with `index` along `dim`."""
    places = list(np.indices(index.shape, sparse=True))
    if self.ndim:
        places[dim] = np.where(index < 0, index + self.shape[dim], index)
    return tuple(places)


def _read(src, index):
    return src[tuple(slice(0, n) for n in index.shape)]


@scatter.reference
def _(self, dim, index, src):
    made = self.copy()
    made[_places(self, dim, index.astype("int64"))] = _read(src, index) if isinstance(src, np.ndarray) else src
    return made


@scatter_add.reference
def _(self, dim, index, src):
    made = self.copy()
    np.add.at(made, _places(self, dim, index.astype("int64")), _read(src, index))
    return made


def _unique(s, size, *shape):
    """Draw indices that do not repeat along the last dimension."""
    return np.argsort(s.rng.random((*shape[:-1], size)), axis=-1)[..., : shape[-1]].astype("int64")


def _both(s):
    yield s(s.array(3, 5), 1, _unique(s, 5, 3, 4), s.array(3, 4))
    yield s(s.array(3, 5), -1, _unique(s, 5, 2, 3), s.array(3, 4))
    yield s(s.array(5, 3), 0, _unique(s, 5, 3, 4).T, s.strided(4, 3))
    yield s(s.array(5), 0, _unique(s, 5, 3), s.array(4))
    yield s(s.array(2, 3, 4), 1, _unique(s, 3, 2, 4, 2).transpose(0, 2, 1), s.array(2, 2, 4))
    yield s(s.strided(3, 5), 1, _unique(s, 5, 3, 5), s.backwards(3, 5))
    yield s(s.array(3, 5, dtype="int64"), 1, _unique(s, 5, 3, 2), s.array(3, 2, dtype="int64"))
    yield s(
        s.array(3, 5, dtype="float64"), 1, _unique(s, 5, 3, 2).astype("int32") - 5, s.array(3, 2, dtype="float64")
    )
    yield s(s.array(3, 5), 1, np.zeros((3, 0), "int64"), s.array(3, 4))
    yield s(s.array(), 0, np.zeros((), "int64"), s.array())
    yield s(s.array(3, 5), 0, np.zeros((0, 5), "uint8"), s.array(0, 5))


@scatter_add.samples
def _(s):
    yield from _both(s)
    yield s(s.array(4), 0, s.indices(4, 20), s.array(20))
    yield s(s.array(4, 3, dtype="int32"), 0, s.indices(4, 9, 3, negative=True), s.array(9, 3, dtype="int32"))


@scatter.samples
def _(s):
    yield from _both(s)
    yield s(s.array(3, 5), 1, _unique(s, 5, 3, 4), 1.5)
    yield s(s.array(3, 5, dtype="int64"), 0, s.indices(3, 3, 5), 7)
    yield s(s.array(3, 5, dtype="bool"), 0, s.indices(3, 1, 5), True)
    half = s.array(3, 5, dtype="float16")
    yield s(half, 1, _unique(s, 5, 3, 4), s.array(3, 4, dtype="float16")).without_gradient()


for each in (scatter, scatter_add):
    name = each.name
    each.error(
        "IndexError", lambda s: s(s.array(2, 3), 2, s.indices(2, 2, 3), s.array(2, 3)), contains=[name, "dim", "(2, 3)", "2"]
    )
    each.error(
        "IndexError",
        lambda s: s(s.array(2, 3), 0, np.full((1, 3), 2), s.array(1, 3)),
        contains=[name, "index", "2", "size 2"],
    )
    each.error(
        "ShapeError", lambda s: s(s.array(2, 3), 0, s.indices(2, 3), s.array(2, 3)), contains=[name, "index", "(3,)", "(2, 3)"]
    )
    each.error(
        "ShapeError",
        lambda s: s(s.array(2, 3), 0, s.indices(2, 2, 3), s.array(1, 3)),
        contains=[name, "index", "src", "(2, 3)", "(1, 3)"],
    )
    each.error(
        "ShapeError",
        lambda s: s(s.array(2, 3), 0, s.indices(2, 2, 4), s.array(2, 4)),
        contains=[name, "index", "self", "(2, 4)", "(2, 3)"],
    )
    each.error(
        "DTypeError", lambda s: s(s.array(2, 3), 0, s.array(2, 3), s.array(2, 3)), contains=[name, "index", "float32"]
    )
    each.error(
        "DTypeError",
        lambda s: s(s.array(2, 3), 0, s.indices(2, 2, 3), s.array(2, 3, dtype="float64")),
        contains=[name, "self", "src", "float32", "float64"],
    )
