"""Whole slices by a list of indices, and elements by their place in C order."""

import numpy as np

from plait_ops.calls import reshape, zeros
from plait_ops.spec import Operator
from plait_ops.words import (
    cast_argument,
    check,
    dtype_of,
    int64,
    is_integral,
    numel,
    require,
    require_same,
    result,
    wrap_dim,
)

index_select = Operator(
    "index_select(Tensor self, int dim|axis, Tensor index) -> Tensor",
    doc="""
    The slices of `self` at `index` along `dim`, in that order: for `dim` 0 ``out[i] = self[index[i]]``.

    Shapes: `index` has one dimension (or none: one slice), whose size the result has along `dim`. Indices are integers;
    negative ones count from the end.
    Raises: ShapeError if `index` has more dimensions, DTypeError if it holds no integers, IndexError if `dim` or an index
    is out of range.

    >>> import plait_core as pc
    >>> pc.tensor([[1, 2], [3, 4]]).index_select(1, pc.tensor([1, 1, 0])).tolist()
    [[2, 2, 1], [4, 4, 3]]
    """,
    out=True,
    dtypes="any",
    kernel="in[2] is int64; `dim` is not wrapped.",
)
index_add = Operator(
    "index_add(Tensor self, int dim|axis, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    doc="""
    `self` with ``alpha * source`` added at the slices `index` along `dim`: for `dim` 0
    ``out[index[i]] += alpha * source[i]``. Indices may repeat: everything is added.

    Shapes: `index` has one dimension (or none), whose size `source` has along `dim`; in the others it is like `self`.
    Raises: ShapeError or DTypeError if the arguments do not fit, IndexError if `dim` or an index is out of range.

    >>> import plait_core as pc
    >>> pc.zeros(3).index_add(0, pc.tensor([0, 2, 0]), pc.tensor([1.0, 2.0, 3.0])).tolist()
    [4.0, 0.0, 2.0]
    """,
    inplace=True,
    out=True,
    dtypes="numeric",
    kernel="in[2] is int64, in[3] has the dtype of in[0]; `dim` is not wrapped.",
)
take = Operator(
    "take(Tensor self, Tensor index) -> Tensor",
    doc="""
    The elements of `self`, seen as one row in C order, at `index`.

    Shape: the result has the shape of `index`. Indices are integers; negative ones count from the end.
    Raises: DTypeError if `index` holds no integers, IndexError if one is out of range.

    >>> import plait_core as pc
    >>> pc.take(pc.tensor([[1, 2], [3, 4]]), pc.tensor([0, 3])).tolist()
    [1, 4]
    """,
    out=True,
    dtypes="any",
    kernel="in[1] is int64.",
)


@index_select.shape
def _(self, dim, index):
    at = wrap_dim("dim", dim, self.shape)
    require("index", index.dtype, "integer")
    check(index.ndim <= 1, f"`index` must have at most one dimension; got shape {index.shape}")
    shape = list(self.shape)
    if self.ndim == 0:
        check(numel(index) == 1, f"`index` must hold one index for `self` of shape (); got shape {index.shape}")
    else:
        shape[at] = numel(index)
    cast_argument("index", int64)
    return result(shape, self.dtype)


@index_select.vjp("self")
def _(g, self, dim, index):
    return index_add(zeros(self.shape, dtype=g.dtype, device=g.device), dim, index, g)


@index_add.shape
def _(self, dim, index, source, alpha):
    at = wrap_dim("dim", dim, self.shape)
    require("self", self.dtype, "numeric")
    require("index", index.dtype, "integer")
    require_same("self", self, "source", source)
    check(index.ndim <= 1, f"`index` must have at most one dimension; got shape {index.shape}")
    check(
        is_integral(dtype_of(alpha)) or not is_integral(self.dtype),
        f"`alpha` must be an integer for {self.dtype}; got {float(alpha)}",
        "TypeError",
    )
    want = list(self.shape)
    if self.ndim == 0:
        check(numel(index) == 1, f"`index` must hold one index for `self` of shape (); got shape {index.shape}")
    else:
        want[at] = numel(index)
    check(
        source.shape == want,
        f"`source` must have shape {tuple(want)} for `self` of shape {self.shape} and `index` of shape {index.shape}; "
        f"got {source.shape}",
    )
    cast_argument("index", int64)
    return result(self.shape, self.dtype)


@index_add.vjp("self")
def _(g):
    return g


@index_add.vjp("source")
def _(g, dim, index, alpha):
    return index_select(g, dim, index) * alpha


@take.shape
def _(self, index):
    require("index", index.dtype, "integer")
    check(
        numel(self) > 0 or numel(index) == 0,
        f"`index` of shape {index.shape} must be empty, as `self` of shape {self.shape} is",
        "IndexError",
    )
    cast_argument("index", int64)
    return result(index.shape, self.dtype)


@take.vjp("self")
def _(g, self, index):
    flat = zeros([numel(self)], dtype=g.dtype, device=g.device)
    return reshape(index_add(flat, 0, reshape(index, [-1]), reshape(g, [-1])), self.shape)


@index_select.reference
def _(self, dim, index):
    return self.copy() if self.ndim == 0 else np.take(self, index.reshape(-1), axis=dim)


@index_add.reference
def _(self, dim, index, source, alpha=1):
    if self.ndim == 0:
        return (self + self.dtype.type(alpha) * source).astype(self.dtype)
    made = self.copy()
    np.add.at(np.moveaxis(made, dim, 0), index.reshape(-1), np.moveaxis(self.dtype.type(alpha) * source, dim, 0))
    return made


take.reference(lambda self, index: np.take(self, index) if self.size else np.zeros(index.shape, self.dtype))


@index_select.samples
def _(s):
    yield s(s.array(4, 3), 0, s.indices(4, 6))
    yield s(s.array(4, 3), 1, s.indices(3, 2, negative=True))
    yield s(s.strided(4, 3), -1, s.indices(3, 5, dtype="int32"))
    yield s(s.backwards(2, 3, 4), 1, s.indices(3, 8)[::-2])
    yield s(s.array(4, 3), 0, s.indices(4))
    yield s(s.array(4, 3), 0, np.zeros(0, "int64"))
    yield s(s.array(4, 0), 0, s.indices(4, 2, dtype="uint8"))
    yield s(s.array(), 0, np.zeros(1, "int64"))
    yield s(s.array(4, 3, dtype="bool"), 1, s.indices(3, 4))
    yield s(s.array(4, 3, dtype="complex64"), 1, s.indices(3, 4))


@index_add.samples
def _(s):
    yield s(s.array(4, 3), 0, s.indices(4, 6), s.array(6, 3))
    yield s(s.array(4, 3), 1, s.indices(3, 2, negative=True), s.array(4, 2), alpha=-1.5)
    yield s(s.strided(4, 3), -1, s.indices(3, 5, dtype="int32"), s.strided(4, 5))
    yield s(s.array(2, 3, 4, dtype="float64"), 1, s.indices(3, 7), s.array(2, 7, 4, dtype="float64"))
    yield s(s.array(4, dtype="int64"), 0, s.indices(4, 9), s.array(9, dtype="int64"), alpha=2)
    yield s(s.array(4, dtype="uint8"), 0, s.indices(4, 9), s.array(9, dtype="uint8"))
    yield s(s.array(4, 3), 0, np.zeros(0, "int64"), s.array(0, 3))
    yield s(s.array(4, 3), 0, s.indices(4), s.array(1, 3))
    yield s(s.array(), 0, np.zeros(1, "int64"), s.array(), alpha=3)


@take.samples
def _(s):
    yield s(s.array(3, 4), s.indices(12, 2, 5))
    yield s(s.strided(3, 4), s.indices(12, 7, negative=True))
    yield s(s.backwards(3, 4), s.indices(12, dtype="int32"))
    yield s(s.array(), np.zeros(3, "int64"))
    yield s(s.array(0, 2), np.zeros((0, 3), "int64"))
    yield s(s.array(5, dtype="int16"), s.indices(5, 4))


for each in (index_select, index_add):
    name = each.name
    source = [lambda s: s.array(2, 3)] if each is index_add else []

    def call(self, dim, index, source=source):
        return lambda s: s(self(s), dim, index(s), *(make(s) for make in source))

    each.error(
        "IndexError", call(lambda s: s.array(2, 3), 2, lambda s: s.indices(2, 2)), contains=[name, "dim", "(2, 3)", "2"]
    )
    each.error(
        "IndexError", call(lambda s: s.array(2, 3), 0, lambda s: np.array([0, 2])), contains=[name, "index", "2", "size 2"]
    )
    each.error(
        "ShapeError", call(lambda s: s.array(2, 3), 0, lambda s: s.indices(2, 2, 1)), contains=[name, "index", "(2, 1)"]
    )
    each.error("DTypeError", call(lambda s: s.array(2, 3), 0, lambda s: s.array(2)), contains=[name, "index", "float32"])
index_add.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), 0, s.indices(2, 2), s.array(3, 3)),
    contains=["index_add", "source", "(3, 3)", "(2, 3)"],
)
index_add.error(
    "DTypeError",
    lambda s: s(s.array(2, 3), 0, s.indices(2, 2), s.array(2, 3, dtype="float64")),
    contains=["index_add", "source", "float64"],
)
index_add.error(
    "TypeError",
    lambda s: s(s.array(2, dtype="int64"), 0, s.indices(2, 2), s.array(2, dtype="int64"), alpha=0.5),
    contains=["index_add", "alpha", "int64", "0.5"],
)
take.error("IndexError", lambda s: s(s.array(2, 3), np.array([6])), contains=["take", "index", "6"])
take.error("IndexError", lambda s: s(s.array(0), np.array([0])), contains=["take", "index", "(0,)"])
take.error("DTypeError", lambda s: s(s.array(2, 3), s.array(2)), contains=["take", "index", "float32"])
