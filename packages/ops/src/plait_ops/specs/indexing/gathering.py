"""Reading along one dimension by an index tensor, and adding there."""

from plait_ops import calls as op
from plait_ops.costs import nbytes
from plait_ops.spec import Composite, Operator
from plait_ops.words import (
    broadcast,
    cast_argument,
    check,
    conjugate,
    fits_as_factor,
    gather_check,
    int64,
    itemsize,
    numel,
    part,
    require,
    require_same,
    result,
    to_dtype,
    wrap_dim,
)

_KERNEL = "the index is int64, values in [-n, n), else an IndexError that names the value and n; `dim` may be negative."

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
    variants="function method",
)
index_select_.batch("code")


@index_select_.shape
def _(self, dim, index):
    at = wrap_dim("dim", dim, self.shape)
    check(index.ndim <= 1, f"`index` must have 1 dimension; got shape {index.shape}")
    require("index", index.dtype, "integer")
    cast_argument("index", int64)
    if self.ndim == 0:
        check(
            index.ndim == 0 or index.shape[0] == 1,
            f"`index` must have 1 element for a 0-d `self`; got shape {index.shape}",
        )
        return result(self.shape, self.dtype)
    shape = list(self.shape)
    shape[at] = index.shape[0] if index.ndim == 1 else 1
    return result(shape, self.dtype)


@part
def bytes_moved(self, index, count, inplace):
    """The bytes read and written where `count` elements that `index` names change in `self`, which is
    copied first unless the call is in place. Each change reads one element.
    """
    given = count * itemsize(self.dtype)
    copied = 0 if inplace else nbytes(self)
    return [nbytes(index) + given + copied, given + copied]


@index_select_.vjp("self")
def _(g, self, dim, index):
    if self.ndim == 0:
        return g
    rows = op.reshape(index, [-1])
    zero = op.zeros([], dtype=g.dtype, device=g.device)  # expanded, so that zeros are written once
    return op.index_add(op.expand(zero, self.shape), dim, rows, g)


index_add_ = Operator(
    "index_add(Tensor self, int dim|axis, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    doc="""
    `self` with ``alpha * source`` added to its slices at `index` along `dim`; if `index` names a slice several times, all
    of its addends are added.

    Args:
        alpha: The factor of `source`.
        source: The values to add.

    Raises: IndexError for a `dim` or an index out of range, ShapeError unless `source` has the shape of `self` with the
    length of `index` along `dim`, DTypeError if dtypes differ, ValueError if `alpha` does not fit in an integer dtype.

    >>> import plait_core as pc
    >>> pc.index_add(pc.zeros(3), 0, pc.tensor([0, 0]), pc.ones(2)).tolist()
    [2.0, 0.0, 0.0]
    """,
    inplace=True,
    dtypes="any",
    kernel=_KERNEL + " Addends of one place are added in order.",
    variants="function method",
)
index_add_.batch("code")


@index_add_.shape
def _(self, dim, index, source, alpha):
    at = wrap_dim("dim", dim, self.shape)
    check(index.ndim <= 1, f"`index` must have 1 dimension; got shape {index.shape}")
    require("index", index.dtype, "integer")
    require_same("self", self, "source", source)
    fits_as_factor("alpha", alpha, self.dtype)
    cast_argument("index", int64)
    want = list(self.shape)
    if self.ndim > 0:
        want[at] = index.shape[0] if index.ndim == 1 else 1
    check(
        source.shape == tuple(want),
        f"`source` must have shape {tuple(want)} for `self` of shape {self.shape}; got {source.shape}",
    )
    return result(self.shape, self.dtype)


@index_add_.cost
def _(self, index, source, inplace):
    moved = bytes_moved(self, index, numel(source), inplace)
    return numel(source), moved[0] + nbytes(source), moved[1]


@index_add_.vjp("self")
def _(g):
    return g


@index_add_.vjp("source")
def _(g, dim, index, source, alpha):
    return op.reshape(op.index_select(g, dim, index), source.shape) * conjugate(alpha)


gather_ = Operator(
    "gather(Tensor self, int dim|axis, Tensor index) -> Tensor",
    doc="""
    The elements of `self` at `index` along `dim`: ``out[i, j] = self[index[i, j], j]`` for `dim` 0, and so on. `index` has
    as many dimensions as `self`; except along `dim`, its sizes are not larger than those of `self`. Negative indices count
    from the end.

    Raises: IndexError for a `dim` or an index out of range, ShapeError for other shapes, DTypeError unless `index` holds
    integers.

    >>> import plait_core as pc
    >>> pc.gather(pc.tensor([[1, 2], [3, 4]]), 1, pc.tensor([[1], [0]])).tolist()
    [[2], [3]]
    """,
    dtypes="any",
    kernel=_KERNEL,
    variants="function method",
)
gather_.batch("dimensions")


@gather_.shape
def _(self, dim, index):
    if numel(index.shape) == 0:  # an empty index fits any shape
        wrap_dim("dim", dim, self.shape)
        require("index", index.dtype, "integer")
    elif self.ndim == 0 and index.ndim == 1:  # a 0-d tensor counts as a vector of one element
        gather_check("self", [1], dim, "index", index)
    else:
        gather_check("self", self.shape, dim, "index", index)
    cast_argument("index", int64)
    return result(index.shape, self.dtype)


@index_select_.cost
@gather_.cost
def _(index, result):
    return 0, nbytes(index) + nbytes(result), nbytes(result)


@gather_.vjp("self")
def _(g, self, dim, index):
    if numel(index.shape) == 0:
        return op.zeros(self.shape, dtype=g.dtype, device=g.device)
    if self.ndim == 0:
        return op.sum(g)
    zero = op.zeros([], dtype=g.dtype, device=g.device)  # expanded, so that zeros are written once
    return op.scatter_add(op.expand(zero, self.shape), dim, index, g)


@part
def _expand_index(index, shape, at):
    """A vector of indices as `gather` takes it: expanded to all dimensions but `at`."""
    n = numel(index.shape)
    column = [1] * len(shape)
    column[at] = n
    wide = list(shape)
    wide[at] = n
    return op.expand(op.reshape(index, column), wide)


@index_select_.decompose
def _(self, dim, index):
    if self.ndim == 0:
        return op.reshape(op.gather(op.reshape(self, [1]), 0, op.reshape(index, [-1])), [])
    at = wrap_dim("dim", dim, self.shape)
    return op.gather(self, at, _expand_index(index, self.shape, at))


@index_add_.decompose
def _(self, dim, index, source, alpha):
    addend = to_dtype(op.mul(source, alpha), self.dtype)
    if self.ndim == 0:
        rows = op.reshape(index, [-1])
        whole = op.scatter_add(op.reshape(self, [1]), 0, rows, op.reshape(addend, [-1]))
        return op.reshape(whole, [])
    at = wrap_dim("dim", dim, self.shape)
    places = _expand_index(index, self.shape, at)
    return op.scatter_add(self, at, places, op.reshape(addend, places.shape))


take_along_dim = Composite(
    "take_along_dim(Tensor self, Tensor indices, int? dim|axis=None) -> Tensor",
    doc="""
    The elements of `self` at `indices` along `dim`, as `gather`, except that the other dimensions broadcast. With `dim`
    None both tensors are flattened first. The results of `argsort`, and of `argmax` with ``keepdim=True``, fit as
    `indices`.

    Args:
        indices: The indices along `dim`, int64.

    Raises: as `gather`, and ShapeError if the numbers of dimensions differ.

    >>> import plait_core as pc
    >>> x = pc.tensor([[3, 1], [2, 4]])
    >>> pc.take_along_dim(x, pc.argsort(x, 1), 1).tolist()
    [[1, 3], [2, 4]]
    """,
    dtypes="any",
    variants="function method",
)


@take_along_dim.decompose
def _(self, indices, dim):
    require("indices", indices.dtype, "integer")
    if dim is None:
        return op.gather(op.reshape(self, [-1]), 0, op.reshape(indices, [-1]))
    at = wrap_dim("dim", dim, self.shape)
    check(
        self.ndim == indices.ndim,
        f"`indices` of shape {indices.shape} must have as many dimensions as `self` of shape {self.shape}",
    )
    if self.ndim == 0:
        return op.gather(self, 0, indices)
    rest = list(self.shape)
    rest[at] = 1
    own = list(indices.shape)
    own[at] = 1
    common = broadcast("self", rest, "indices", own)
    common[at] = self.shape[at]
    wide = op.expand(self, common)
    common[at] = indices.shape[at]
    return op.gather(wide, at, op.expand(indices, common))


take = Composite(
    "take(Tensor self, Tensor index) -> Tensor",
    doc="""
    The elements at `index` into the flattened tensor; the result has the shape of `index`.

    Args:
        index: Indices into the tensor as if it had one dimension, int64.

    Raises: DTypeError unless `index` is an integer tensor, IndexError for an index out of range.

    >>> import plait_core as pc
    >>> pc.take(pc.tensor([[1, 2], [3, 4]]), pc.tensor([3, 0])).tolist()
    [4, 1]
    """,
    dtypes="any",
    variants="function method",
)


@take.decompose
def _(self, index):
    require("index", index.dtype, "integer")
    return op.index_tensors(op.reshape(self, [-1]), [index])
