"""Writing along one dimension by an index tensor."""

import numpy as np

from plait_ops.calls import (
    alias,
    arange,
    copy_,
    eq,
    gather,
    narrow,
    reshape,
    scatter_value,
    where,
    zeros,
)
from plait_ops.spec import Operator
from plait_ops.specs.indexing.gathering import _KERNEL, _gather_errors
from plait_ops.words import (
    cast_argument,
    check,
    fits,
    gather_check,
    int64,
    numel,
    require_same,
    result,
)

_SCATTER = """
    `self` with {what} `index` along `dim`: ``out[index[i, j], j] {sign} src[i, j]`` for `dim` 0, and so on.{more}
    `index` has as many dimensions as `self`, and its sizes are not larger than those of `src`, nor, except along `dim`,
    than those of `self`.

    Raises: IndexError for a `dim` or an index out of range, ShapeError for other shapes, DTypeError unless `index` holds
    integers and the others have one dtype.

    >>> import plait_core as pc
    >>> pc.{name}(pc.zeros(3), 0, pc.tensor([2, 0]), pc.tensor([5.0, 6.0])).tolist()
    [6.0, 0.0, 5.0]
    """
scatter_ = Operator(
    "scatter(Tensor self, int dim|axis, Tensor index, Tensor src) -> Tensor",
    doc=_SCATTER.format(
        name="scatter",
        what="the elements of `src` written at",
        sign="=",
        more=" Of several the last is kept.",
    ),
    inplace=True,
    dtypes="any",
    kernel=_KERNEL + " Written in order.",
    out=True,
)
scatter_value_ = Operator(
    "scatter.value(Tensor self, int dim|axis, Tensor index, Scalar value) -> Tensor",
    doc="""
    `self` with `value` written at `index` along `dim`.

    >>> import plait_core as pc
    >>> pc.scatter(pc.zeros(3), 0, pc.tensor([2, 0]), 1).tolist()
    [1.0, 0.0, 1.0]
    """,
    inplace=True,
    dtypes="any",
    kernel=_KERNEL,
    out=True,
)
scatter_add_ = Operator(
    "scatter_add(Tensor self, int dim|axis, Tensor index, Tensor src) -> Tensor",
    doc=_SCATTER.format(
        name="scatter_add",
        what="the elements of `src` added at",
        sign="+=",
        more=" Of several each is added.",
    ),
    inplace=True,
    dtypes="any",
    kernel=_KERNEL + " Added in order.",
    out=True,
)


@scatter_.shape
@scatter_add_.shape
def _(self, dim, index, src):
    gather_check("self", self.shape, dim, "index", index)
    for d in range(index.ndim):
        check(
            src.ndim == index.ndim and index.shape[d] <= src.shape[d],
            f"`index` of shape {index.shape} must not be larger than `src` of shape {src.shape}",
        )
    check(
        src.ndim == index.ndim,
        f"`src` of shape {src.shape} must have as many dimensions as `index` of shape {index.shape}",
    )
    require_same("self", self, "src", src)
    cast_argument("index", int64)
    return result(self.shape, self.dtype)


@scatter_value_.shape
def _(self, dim, index, value):
    gather_check("self", self.shape, dim, "index", index)
    cast_argument("index", int64)
    fits("value", value, self.dtype)
    return result(self.shape, self.dtype)


@scatter_.vjp("self")
@scatter_value_.vjp("self")
def _(g, dim, index):
    return scatter_value(g, dim, index, 0)


@scatter_add_.vjp("self")
def _(g):
    return g


@scatter_.vjp("src")
def _(g, dim, index, src):
    # of elements for one place the last one stays, the others count for nothing
    order = reshape(arange(numel(index.shape), device=g.device), index.shape)
    last = scatter_(zeros(g.shape, dtype=int64, device=g.device), dim, index, order)
    picked = where(eq(gather(last, dim, index), order), gather(g, dim, index), 0.0)
    if picked.shape == src.shape:
        return picked
    return pad_end(picked, src.shape)


@scatter_add_.vjp("src")
def _(g, dim, index, src):
    picked = gather(g, dim, index)
    if picked.shape == src.shape:
        return picked
    return pad_end(picked, src.shape)


pad_end = Operator(
    "pad_end(Tensor self, int[] size) -> Tensor",
    doc="`self` with zeros behind it in every dimension, up to `size`.",
    dtypes="floating",
    internal=True,
)


@pad_end.shape
def _(self, size):
    check(len(size) == self.ndim, f"`size` {size} must have {self.ndim} dimensions")
    for d in range(self.ndim):
        check(
            self.shape[d] <= size[d], f"`size` {size} must not be smaller than shape {self.shape}"
        )
    return result(size, self.dtype)


@pad_end.decompose
def _(self, size):
    made = zeros(size, dtype=self.dtype, device=self.device)
    part = alias(made)
    for d in range(self.ndim):
        part = narrow(part, d, 0, self.shape[d])
    copy_(part, self)
    return made


@pad_end.vjp("self")
def _(g, self):
    part = g
    for d in range(self.ndim):
        part = narrow(part, d, 0, self.shape[d])
    return part


@pad_end.reference
def _(self, size):
    return np.pad(self, [(0, n - m) for n, m in zip(size, self.shape, strict=True)])


pad_end.samples(
    lambda s: iter([s(s.array(2, 3), (2, 5)), s(s.array(2, 3), (3, 3)), s(s.array(1), (4,))])
)
pad_end.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), (1, 3)),
    contains=["pad_end", "size", "(1, 3)", "(2, 3)"],
)


def _put(self, dim, index, src, add):
    made = self.copy()
    if not self.ndim:
        made[...] = made + src if add else src
        return made
    where = list(np.indices(index.shape))
    where[dim] = index
    values = src[tuple(slice(0, n) for n in index.shape)] if isinstance(src, np.ndarray) else src
    if add:
        np.add.at(made, tuple(where), values)
    else:
        made[tuple(where)] = values
    return made


scatter_.reference(lambda self, dim, index, src: _put(self, dim, index, src, False))
scatter_value_.reference(lambda self, dim, index, value: _put(self, dim, index, value, False))
scatter_add_.reference(lambda self, dim, index, src: _put(self, dim, index, src, True))


def _unique(s, rows, columns, n):
    """Draw indices along dim 1 that are all different in each row."""
    return np.stack([s.rng.permutation(n)[:columns] for _ in range(rows)])


@scatter_.samples
def _(s):
    yield s(s.array(3, 5), 1, _unique(s, 3, 2, 5), s.array(3, 2))
    yield s(s.array(3, 5), -1, _unique(s, 2, 5, 5), s.array(4, 6))
    yield s(s.strided(3, 5), 1, _unique(s, 3, 4, 5), s.strided(3, 4))
    yield s(s.array(5, dtype="int64"), 0, np.array([4, -5]), s.array(2, dtype="int64"))
    yield s(s.array(3, 5), 1, s.indices(5, 3, 0), s.array(3, 0))


@scatter_value_.samples
def _(s):
    yield s(s.array(3, 5), 1, s.indices(5, 3, 2), 1.5)
    yield s(s.array(3, 5, dtype="int64"), 0, s.indices(3, 2, 5), 7)


@scatter_add_.samples
def _(s):
    yield s(s.array(3, 5), 1, s.indices(5, 3, 8), s.array(3, 8))
    yield s(s.array(3, 5), 0, s.indices(3, 7, 2, negative=True), s.array(8, 4))
    yield s(s.strided(3, 5), 1, s.indices(5, 3, 4, dtype="int32"), s.strided(3, 4))
    yield s(s.array(5, dtype="int64"), 0, s.indices(5, 9), s.array(9, dtype="int64"))
    yield s(
        s.array(3, 5, dtype="complex64"), 1, s.indices(5, 3, 8), s.array(3, 8, dtype="complex64")
    )


_gather_errors(scatter_, lambda s: s.array(2, 4))
_gather_errors(scatter_add_, lambda s: s.array(2, 4))
_gather_errors(scatter_value_, lambda s: 1.0)
for each in (scatter_, scatter_add_):
    each.error(
        "ShapeError",
        lambda s: s(s.array(2, 3), 0, s.indices(2, 2, 3), s.array(1, 3)),
        contains=["index", "src", "(2, 3)", "(1, 3)"],
    )
    each.error(
        "DTypeError",
        lambda s: s(s.array(2, 3), 0, s.indices(2, 2, 3), s.array(2, 3, dtype="int64")),
        contains=["self", "src", "float32", "int64"],
    )
