"""Indexing with integer arrays and bool masks, as NumPy does."""

from plait_ops import calls as op
from plait_ops.costs import nbytes
from plait_ops.spec import Composite, Operator
from plait_ops.specs.indexing.scattering import ordinals
from plait_ops.words import (
    bool_,
    broadcast,
    cast_argument,
    check,
    fits,
    index_shape,
    int64,
    is_tensor,
    item,
    itemsize,
    numel,
    part,
    require,
    result,
    sizes,
    sum_to,
    to_dtype,
)

# ---- masks become integer arrays -----------------------------------------------------------------
index_columns_ = Composite(
    "index_columns(Tensor self, Tensor?[] indices) -> Tensor[]",
    doc="`indices` with each bool mask replaced by one int64 index for each of its dimensions; None stays None.",
    internal=True,
    dtypes="any",
)


@index_columns_.decompose
def _(self, indices):
    made = []
    at = 0
    for i in range(len(indices)):
        index = indices[i]
        if index is None:
            made.append(None)
            at += 1
        elif index.dtype == bool_:
            check(
                at + index.ndim <= self.ndim,
                f"too many indices for `self` of shape {self.shape}: the mask at {i} has shape {index.shape}",
                "IndexError",
            )
            for d in range(index.ndim):
                check(
                    index.shape[d] == self.shape[at + d],
                    f"the mask at {i} of shape {index.shape} must fit `self` of shape {self.shape} from dimension {at} on",
                    "IndexError",
                )
            rows = op.nonzero(index)
            for d in range(index.ndim):
                made.append(op.select(rows, 1, d))
            at += index.ndim
            if index.ndim == 0:
                made.append(None)
        else:
            check(
                at < self.ndim,
                f"too many indices for `self` of shape {self.shape}: got {len(indices)}",
                "IndexError",
            )
            require("indices", index.dtype, "integer")
            made.append(index)
            at += 1
    return made


# ---- reading -------------------------------------------------------------------------------------
index_ = Composite(
    "index(Tensor self, Tensor?[] indices) -> Tensor",
    doc="""
    ``self[i, j, ...]`` with integer tensors and bool masks; None means ``:``. The indices broadcast; a mask stands for the
    indices of its True elements. In the result, the shape to which the indices broadcast replaces the indexed dimensions,
    or comes first if there is a None between two indices. Negative indices count from the end.

    Args:
        indices: For each dimension the indices, int64 or bool, or None for all.

    Raises: IndexError for too many indices, an index out of range, or a mask whose shape does not fit, DTypeError for other
    dtypes, ShapeError if the indices do not broadcast.

    >>> import plait_abi, plait_core as pc
    >>> indices = [pc.tensor([0, 1]), pc.tensor([1, 0])]
    >>> plait_abi.operator("index")(pc.tensor([[1, 2], [3, 4]]), indices).tolist()
    [2, 3]
    """,
    dtypes="any",
    variants="",
)
index_tensors_ = Operator(
    "index_tensors(Tensor self, Tensor?[] indices) -> Tensor",
    doc="`index` with integer tensors only.",
    dtypes="any",
    internal=True,
    kernel="indices are int64 or None; they broadcast; values in [-n, n), else an IndexError that names the value and n.",
)
index_tensors_.batch("code")


@index_.decompose
def _(self, indices):
    return op.index_tensors(self, op.index_columns(self, indices))


@index_tensors_.shape
def _(self, indices):
    shape = index_shape("indices", self.shape, indices)
    cast_argument("indices", int64)
    return result(shape, self.dtype)


@part
def index_bytes(indices):
    """The bytes of all indices."""
    made = 0
    for index in indices:
        if index is not None:
            made = made + nbytes(index)
    return made


@index_tensors_.cost
def _(indices, result):
    return 0, index_bytes(indices) + nbytes(result), nbytes(result)


@index_tensors_.vjp("self")
def _(g, self, indices):
    return index_tensors_backward(g, indices, self.shape)


index_tensors_backward = Operator(
    "index_tensors_backward(Tensor grad, Tensor?[] indices, int[] size) -> Tensor",
    doc="Zeros of shape `size` with `grad` added up at `indices`: the derivative of `index`.",
    kernel="optional: without a kernel other operators compute it; indices as for `index_tensors`; values for the same place are added up; every element of the result is written, zeros included.",
    dtypes="floating",
    internal=True,
)
index_tensors_backward.batch("code")


@index_tensors_backward.shape
def _(grad, indices, size):
    sizes("size", size)
    shape = index_shape("indices", size, indices)
    check(grad.shape == shape, f"`grad` of shape {grad.shape} must have shape {tuple(shape)}")
    return result(size, grad.dtype)


@index_tensors_backward.decompose
def _(grad, indices, size):
    return op.index_put_tensors_(
        op.zeros(size, dtype=grad.dtype, device=grad.device), indices, grad, True
    )


@index_tensors_backward.vjp("grad")
def _(g, indices):
    return op.index_tensors(g, indices)


# ---- writing -------------------------------------------------------------------------------------
index_put_ = Composite(
    "index_put_(Tensor(a)! self, Tensor?[] indices, Tensor|Scalar values, bool accumulate=False) -> Tensor(a)!",
    doc="""
    ``self[i, j, ...] = values`` with integer tensors and bool masks. With `accumulate` it is ``+=``: all values for the
    same element are added. `values` broadcast to the shape of ``index(self, indices)``. Returns `self`.

    Args:
        indices: For each dimension the indices, int64 or bool, or None for all.

    Raises: as `index`, and ShapeError if `values` do not broadcast.

    >>> import plait_core as pc
    >>> pc.zeros(3).index_put_([pc.tensor([0, 2])], 1).tolist()
    [1.0, 0.0, 1.0]
    """,
    dtypes="any",
    variants="function method",
)
index_put_tensors = Operator(
    "index_put_tensors_(Tensor(a)! self, Tensor?[] indices, Tensor|Scalar values, bool accumulate=False) -> Tensor(a)!",
    doc="`index_put_` with integer tensors only.",
    dtypes="any",
    internal=True,
    kernel="indices as for index_tensors; in[2] has the dtype of in[0] or is a number, and broadcasts.",
)


@index_put_.decompose
def _(self, indices, values, accumulate):
    return op.index_put_tensors_(self, op.index_columns(self, indices), values, accumulate)


@index_put_tensors.shape
def _(self, indices, values, accumulate):
    shape = index_shape("indices", self.shape, indices)
    cast_argument("indices", int64)
    if is_tensor(values):
        whole = broadcast("values", values.shape, "self[indices]", shape)
        check(
            whole == shape,
            f"`values` of shape {values.shape} must broadcast to {tuple(shape)}, the shape of self[indices]",
        )
        cast_argument("values", self.dtype)
    fits("values", values, self.dtype)
    return self


@part
def count_indexed(shape, indices):
    """The number of elements of ``x[indices]``."""
    most = 0
    for index in indices:
        if index is not None:
            most = max(most, index.ndim)
    made = 1
    for d in range(most):
        together = 1
        for index in indices:
            if index is not None and d < index.ndim and index.shape[index.ndim - 1 - d] != 1:
                together = index.shape[index.ndim - 1 - d]
        made = made * together
    for i, size in enumerate(shape):
        if i >= len(indices) or indices[i] is None:
            made = made * size
    return made


@index_put_tensors.cost
def _(self, indices, values, accumulate):
    count = count_indexed(self.shape, indices)
    changed = count * itemsize(self.dtype)
    given = index_bytes(indices)
    if is_tensor(values):
        given = given + nbytes(values)
    if accumulate:
        return count, given + changed, changed
    return 0, given, changed


@index_put_tensors.vjp("self")
def _(g, indices, accumulate):
    if accumulate:
        return g
    return op.index_put_tensors_(op.clone(g), indices, 0)


@index_put_tensors.vjp("values")
def _(g, indices, values, accumulate):
    picked = op.index_tensors(g, indices)
    # of several values for one index the last one is kept, and only it has a gradient
    if not accumulate:
        # dimensions behind the indices are written together
        rest = g.ndim - len(indices)
        for index in indices:
            if index is None:
                rest = 0
        count = picked.ndim - rest
        order = ordinals(picked.shape[:count], g.device)
        last = op.zeros(g.shape[: g.ndim - rest], dtype=order.dtype, device=g.device)
        last = op.index_put_tensors_(last, indices, order)
        kept = op.eq(op.index_tensors(last, indices), order)
        picked = op.where(op.reshape(kept, picked.shape[:count] + [1] * rest), picked, 0.0)
    return to_dtype(sum_to(picked, values.shape), values.dtype)


unravel_index = Operator(
    "unravel_index(Tensor indices, int[] shape) -> Tensor[]",
    doc="""
    The coordinates of elements whose indices into the flattened tensor of the given `shape`, in C order, are `indices`. The
    result is one int64 tensor for each dimension, of the shape of `indices`.

    Args:
        shape: The shape whose indices are returned.

    Raises: DTypeError unless `indices` holds integers, ShapeError for negative sizes, IndexError for an index out of range.

    >>> import plait_core as pc
    >>> [x.tolist() for x in pc.unravel_index(pc.tensor([0, 5]), (2, 3))]
    [[0, 1], [0, 2]]
    """,
    kernel="this operator takes no kernel, since it reads values; replace the operators that it calls instead.",
)


@unravel_index.decompose
def _(indices, shape):
    require("indices", indices.dtype, "integer")
    sizes("shape", shape)
    total = numel(shape)
    if numel(indices.shape) > 0:
        low = item(to_dtype(op.amin(indices), int64))
        high = item(to_dtype(op.amax(indices), int64))
        check(
            low >= 0 and high < total,
            f"`indices` must be in [0, {total}) for `shape` {shape}; got {low if low < 0 else high}",
            "IndexError",
        )
    rest = to_dtype(indices, int64)
    made = []
    for d in range(len(shape)):
        step = max(numel(shape[d + 1 :]), 1)
        made.append(op.floor_divide(rest, step))
        rest = op.remainder(rest, step)
    return made
