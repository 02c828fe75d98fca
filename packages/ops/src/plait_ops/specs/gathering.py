"""Reading and writing along one dimension by an index tensor."""

import numpy as np

from plait_ops.calls import (
    alias,
    arange,
    cast,
    copy_,
    eq,
    gather,
    index_add,
    index_select,
    narrow,
    reshape,
    scatter_add,
    scatter_value,
    unsqueeze,
    where,
    zeros,
)
from plait_ops.calls import max as largest
from plait_ops.spec import Composite, Operator
from plait_ops.words import (
    cast_argument,
    check,
    gather_check,
    int64,
    item,
    numel,
    require,
    require_same,
    result,
    wrap_dim,
)

_KERNEL = "the index is int64, values in [-n, n), else an IndexError that names the value and n; `dim` is not wrapped."

index_select_ = Operator(
    "index_select(Tensor self, int dim|axis, Tensor index) -> Tensor",
    doc="""
    The slices of `self` at `index`, a vector of integers, along `dim`. Negative indices count from the end.

    Raises: IndexError for a `dim` or an index out of range, ShapeError if `index` has several dimensions, DTypeError unless
    it holds integers.

    >>> import plait_core as pc
    >>> pc.index_select(pc.tensor([[1, 2], [3, 4]]), 1, pc.tensor([1, 1, 0])).tolist()
    [[2, 2, 1], [4, 4, 3]]
    """,
    dtypes="any",
    kernel=_KERNEL,
)


@index_select_.shape
def _(self, dim, index):
    at = wrap_dim("dim", dim, self.shape)
    check(index.ndim <= 1, f"`index` must have 1 dimension; got shape {index.shape}")
    require("index", index.dtype, "integer")
    cast_argument("index", int64)
    if self.ndim == 0:
        check(
            index.ndim == 0 or index.shape[0] == 1,
            f"`index` of shape {index.shape} must name one element of a 0-d tensor",
        )
        return result(self.shape, self.dtype)
    shape = list(self.shape)
    shape[at] = index.shape[0] if index.ndim == 1 else 1
    return result(shape, self.dtype)


@index_select_.vjp("self")
def _(g, self, dim, index):
    if self.ndim == 0:
        return g
    rows = reshape(index, [-1])
    return index_add(zeros(self.shape, dtype=g.dtype, device=g.device), dim, rows, g)


index_select_.reference(
    lambda self, dim, index: np.take(self, np.atleast_1d(index), axis=dim) if self.ndim else self
)


@index_select_.samples
def _(s):
    yield s(s.array(4, 5), 0, s.indices(4, 3))
    yield s(s.array(4, 5), -1, s.indices(5, 7, negative=True))
    yield s(s.strided(3, 4, 2), 1, s.indices(4, 2, dtype="int32"))
    yield s(s.array(4, dtype="bool"), 0, s.indices(4, 0))
    yield s(s.array(4, 2), 0, s.indices(4))
    yield s(s.array(4, 3, dtype="complex64"), 0, s.indices(4, 2))


index_select_.error(
    "IndexError",
    lambda s: s(s.array(2, 3), 2, s.indices(2, 1)),
    contains=["index_select", "dim", "(2, 3)"],
)
index_select_.error(
    "IndexError", lambda s: s(s.array(2, 3), 0, np.array([2])), contains=["index_select", "2"]
)
index_select_.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), 0, s.indices(2, 1, 1)),
    contains=["index_select", "index", "(1, 1)"],
)
index_select_.error(
    "DTypeError",
    lambda s: s(s.array(2, 3), 0, s.array(1)),
    contains=["index_select", "index", "float32"],
)


index_add_ = Operator(
    "index_add(Tensor self, int dim|axis, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    doc="""
    `self` with ``alpha * source`` added to its slices at `index` along `dim`; a slice named several times gets every addend.

    Raises: IndexError for a `dim` or an index out of range, ShapeError if `source` has not the shape of `self` with the
    length of `index` along `dim`, DTypeError if dtypes differ.

    >>> import plait_core as pc
    >>> pc.index_add(pc.zeros(3), 0, pc.tensor([0, 0]), pc.ones(2)).tolist()
    [2.0, 0.0, 0.0]
    """,
    inplace=True,
    dtypes="numeric",
    kernel=_KERNEL + " Addends of one place are added in order.",
)


@index_add_.shape
def _(self, dim, index, source):
    at = wrap_dim("dim", dim, self.shape)
    check(index.ndim <= 1, f"`index` must have 1 dimension; got shape {index.shape}")
    require("index", index.dtype, "integer")
    require("self", self.dtype, "numeric")
    require_same("self", self, "source", source)
    cast_argument("index", int64)
    want = list(self.shape)
    if self.ndim > 0:
        want[at] = index.shape[0] if index.ndim == 1 else 1
    check(
        source.shape == tuple(want),
        f"`source` must have shape {tuple(want)} for `self` of shape {self.shape}; got {source.shape}",
    )
    return result(self.shape, self.dtype)


@index_add_.vjp("self")
def _(g):
    return g


@index_add_.vjp("source")
def _(g, dim, index, source, alpha):
    return reshape(index_select(g, dim, index), source.shape) * alpha


@index_add_.reference
def _(self, dim, index, source, alpha=1):
    made = self.copy()
    if not self.ndim:
        return made + alpha * source
    np.add.at(
        np.moveaxis(made, dim, 0),
        np.atleast_1d(index),
        np.moveaxis((alpha * source).astype(self.dtype), dim, 0),
    )
    return made


@index_add_.samples
def _(s):
    yield s(s.array(4, 5), 0, s.indices(4, 3), s.array(3, 5))
    yield s(s.array(4, 5), -1, s.indices(5, 7, negative=True), s.array(4, 7), alpha=0.5)
    yield s(s.strided(4, 5), 0, s.indices(4, 9, dtype="int32"), s.strided(9, 5))
    yield s(s.array(4, dtype="int64"), 0, s.indices(4, 6), s.array(6, dtype="int64"), alpha=2)


index_add_.error(
    "IndexError",
    lambda s: s(s.array(2), 1, s.indices(2, 1), s.array(1)),
    contains=["index_add", "dim", "(2,)"],
)
index_add_.error(
    "IndexError", lambda s: s(s.array(2), 0, np.array([2]), s.array(1)), contains=["index_add", "2"]
)
index_add_.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), 0, s.indices(2, 1), s.array(2, 3)),
    contains=["index_add", "source", "(1, 3)", "(2, 3)"],
)
index_add_.error(
    "DTypeError",
    lambda s: s(s.array(2), 0, s.indices(2, 1), s.array(1, dtype="float64")),
    contains=["index_add", "source", "float32", "float64"],
)


gather_ = Operator(
    "gather(Tensor self, int dim|axis, Tensor index) -> Tensor",
    doc="""
    The elements of `self` at `index` along `dim`: ``out[i, j] = self[index[i, j], j]`` for `dim` 0, and so on. `index` has as
    many dimensions as `self` and, except along `dim`, sizes that are not larger. Negative indices count from the end.

    Raises: IndexError for a `dim` or an index out of range, ShapeError for other shapes, DTypeError unless `index` holds
    integers.

    >>> import plait_core as pc
    >>> pc.gather(pc.tensor([[1, 2], [3, 4]]), 1, pc.tensor([[1], [0]])).tolist()
    [[2], [3]]
    """,
    dtypes="any",
    kernel=_KERNEL,
)


@gather_.shape
def _(self, dim, index):
    gather_check("self", self.shape, dim, "index", index)
    cast_argument("index", int64)
    return result(index.shape, self.dtype)


@gather_.vjp("self")
def _(g, self, dim, index):
    return scatter_add(zeros(self.shape, dtype=g.dtype, device=g.device), dim, index, g)


def _crop(array, dim, index):
    return array[
        tuple(
            slice(None) if i == dim % array.ndim else slice(0, n) for i, n in enumerate(index.shape)
        )
    ]


@gather_.reference
def _(self, dim, index):
    return np.take_along_axis(_crop(self, dim, index), index, dim) if self.ndim else self.copy()


@gather_.samples
def _(s):
    yield s(s.array(3, 4), 1, s.indices(4, 3, 2))
    yield s(s.array(3, 4), 0, s.indices(3, 5, 4))
    yield s(s.array(3, 4), -1, s.indices(4, 2, 6, negative=True))
    yield s(s.strided(3, 4, 2), 1, s.indices(4, 3, 1, 2, dtype="int32"))
    yield s(s.array(5, dtype="int64"), 0, s.indices(5, 3))
    yield s(s.array(), 0, np.array(0))
    yield s(s.array(3, 4), 1, s.indices(4, 3, 0))
    yield s(s.array(3, 4, dtype="float16"), 1, s.indices(4, 3, 2))


def _gather_errors(operator, *rest):
    def call(*shape, dim=0, index=None):
        def draw(s):
            at = s.indices(1, *shape) if index is None else index(s)
            return s(s.array(2, 3), dim, at, *[each(s) for each in rest])

        return draw

    name = operator.schema.base
    operator.error("IndexError", call(2, 3, dim=2), contains=[name, "dim", "(2, 3)", "2"])
    operator.error("ShapeError", call(2), contains=[name, "index", "(2,)", "(2, 3)"])
    operator.error("ShapeError", call(2, 4), contains=[name, "index", "(2, 4)", "(2, 3)"])
    operator.error(
        "DTypeError", call(index=lambda s: s.array(2, 3)), contains=[name, "index", "float32"]
    )
    operator.error("IndexError", call(index=lambda s: np.full((2, 3), 2)), contains=[name, "2"])
    operator.error("IndexError", call(index=lambda s: np.full((2, 3), -3)), contains=[name, "-3"])


_gather_errors(gather_)


# ---- writing -------------------------------------------------------------------------------------------------------
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
    dtypes="numeric",
    kernel=_KERNEL + " Added in order.",
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
def _(self, dim, index):
    gather_check("self", self.shape, dim, "index", index)
    cast_argument("index", int64)
    return result(self.shape, self.dtype)


@scatter_.vjp("self")
@scatter_value_.vjp("self")
def _(g, dim, index):
    return scatter_value(g, dim, index, 0)


@scatter_add_.vjp("self")
def _(g):
    return g


@scatter_.vjp("src")
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


# ---- rows of a table -----------------------------------------------------------------------------------------------
embedding = Operator(
    "embedding(Tensor weight, Tensor indices, int padding_idx=-1) -> Tensor",
    doc="""
    The rows of `weight` at `indices`; negative ones count from the end. A row `padding_idx` (if not -1) gets no gradient.

    Shapes: `weight` is (n, d), `indices` any, the result that of `indices` plus (d,). Dtypes: any; `indices` integers.
    Raises: ShapeError unless `weight` is a matrix, DTypeError unless `indices` hold integers, IndexError for an index
    outside [-n, n).

    >>> import plait_core as pc
    >>> pc.embedding(pc.tensor([[1, 2], [3, 4]]), pc.tensor([1, 1])).tolist()
    [[3, 4], [3, 4]]
    """,
    dtypes="any",
    kernel="indices are int64; a value outside [-n, n) is an IndexError that names it and n.",
    method=False,
)
embedding_backward = Operator(
    "embedding_backward(Tensor grad, Tensor indices, int num_weights, int padding_idx) -> Tensor",
    doc="Rows of `grad` added up at `indices` in zeros of `num_weights` rows: the derivative of `embedding`.",
    dtypes="floating",
    internal=True,
    kernel="indices are int64; rows are added in order.",
)


@embedding.shape
def _(weight, indices):
    check(weight.ndim == 2, f"`weight` must have 2 dimensions; got shape {weight.shape}")
    require("indices", indices.dtype, "integer")
    cast_argument("indices", int64)
    return result(indices.shape + weight.shape[1:], weight.dtype)


@embedding_backward.shape
def _(grad, indices, num_weights):
    require("grad", grad.dtype, "floating")
    require("indices", indices.dtype, "integer")
    check(
        grad.ndim == indices.ndim + 1 and grad.shape[:-1] == indices.shape,
        f"`grad` of shape {grad.shape} must have the shape of `indices`, {indices.shape}, and one more dimension",
    )
    cast_argument("indices", int64)
    return result([num_weights] + grad.shape[-1:], grad.dtype)


@embedding_backward.decompose
def _(grad, indices, num_weights, padding_idx):
    rows = reshape(grad, [numel(indices.shape), grad.shape[-1]])
    at = reshape(indices, [-1])
    if padding_idx >= 0:
        rows = where(unsqueeze(eq(at, padding_idx), 1), 0.0, rows)
    made = zeros([num_weights, grad.shape[-1]], dtype=grad.dtype, device=grad.device)
    return index_add(made, 0, at, rows)


@embedding.vjp("weight")
def _(g, weight, indices, padding_idx):
    return embedding_backward(g, indices, weight.shape[0], padding_idx)


@embedding_backward.vjp("grad")
def _(g, grad, indices, padding_idx):
    rows = embedding(g, indices)
    if padding_idx >= 0:
        return where(unsqueeze(eq(indices, padding_idx), -1), 0.0, rows)
    return rows


@embedding_backward.reference
def _(grad, indices, num_weights, padding_idx):
    made = np.zeros((num_weights, grad.shape[-1]), grad.dtype)
    np.add.at(made, indices, np.where((indices == padding_idx)[..., None], 0, grad))
    return made


embedding.reference(lambda weight, indices, padding_idx=-1: weight[indices])
embedding.samples(
    lambda s: iter(
        [
            s(s.array(5, 3), s.indices(5, 4)),
            s(s.array(5, 3), s.indices(5, 2, 3, dtype="int32"), 1),
            s(s.strided(5, 3), s.indices(5)),
            s(s.array(5, 3), s.indices(5, 0)),
        ]
    )
)
embedding_backward.samples(
    lambda s: iter(
        [s(s.array(4, 3), s.indices(5, 4), 5, -1), s(s.array(2, 6, 3), s.indices(3, 2, 6), 3, 1)]
    )
)
embedding.error(
    "ShapeError", lambda s: s(s.array(5), s.indices(5, 2)), contains=["embedding", "weight", "(5,)"]
)
embedding.error(
    "DTypeError",
    lambda s: s(s.array(5, 3), s.array(2)),
    contains=["embedding", "indices", "float32"],
)
embedding.error(
    "IndexError", lambda s: s(s.array(5, 3), np.array([5])), contains=["embedding", "5"]
)
embedding.error(
    "IndexError", lambda s: s(s.array(5, 3), np.array([-6])), contains=["embedding", "-6", "5"]
)
embedding_backward.error(
    "ShapeError",
    lambda s: s(s.array(4, 3), s.indices(5, 3), 5, -1),
    contains=["grad", "indices", "(4, 3)", "(3,)"],
)

one_hot = Composite(
    "one_hot(Tensor self, int num_classes=-1) -> Tensor",
    doc="""
    int64 rows of 0 with a 1 at the place that each element names; `num_classes` -1 is the largest element plus 1.

    Raises: DTypeError unless `self` holds integers, ValueError for another negative `num_classes`.

    >>> import plait_core as pc
    >>> pc.one_hot(pc.tensor([0, 2]), 3).tolist()
    [[1, 0, 0], [0, 0, 1]]
    """,
    dtypes="integer",
    method=False,
)


@one_hot.decompose
def _(self, num_classes):
    require("self", self.dtype, "integer")
    check(
        num_classes >= -1,
        f"`num_classes` must not be negative, or -1; got {num_classes}",
        "ValueError",
    )
    n = num_classes
    if num_classes == -1:
        n = item(cast(largest(self), int64)) + 1
    return cast(eq(unsqueeze(self, -1), arange(n, device=self.device)), int64)


@one_hot.reference
def _(self, num_classes=-1):
    n = int(self.max()) + 1 if num_classes == -1 else num_classes
    return (self[..., None] == np.arange(n)).astype("int64")


one_hot.samples(
    lambda s: iter(
        [
            s(s.indices(4, 5), 4),
            s(s.indices(4, 2, 3)),
            s(s.indices(3), 3),
            s(s.indices(3, 4, dtype="uint8"), 3),
        ]
    )
)
one_hot.error("DTypeError", lambda s: s(s.array(3), 3), contains=["one_hot", "self", "float32"])
one_hot.error(
    "ValueError", lambda s: s(s.indices(3, 2), -2), contains=["one_hot", "num_classes", "-2"]
)
