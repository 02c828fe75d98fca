"""Indexing with integer arrays and bool masks, as NumPy does."""

import numpy as np

from plait_ops.calls import (
    amax,
    amin,
    arange,
    clone,
    eq,
    floor_divide,
    index_columns,
    index_put_tensors_,
    index_tensors,
    nonzero,
    remainder,
    reshape,
    select,
    where,
    zeros,
)
from plait_ops.spec import Composite, Operator
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
    numel,
    require,
    result,
    sizes,
    sum_to,
    to_dtype,
)

# ---- masks become integer arrays -----------------------------------------------------------------------------------
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
            rows = nonzero(index)
            for d in range(index.ndim):
                made.append(select(rows, 1, d))
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


def _columns(self, indices):
    made = []
    for each in indices:
        if each is not None and each.dtype == bool:
            made.extend(np.nonzero(each))
        else:
            made.append(each)
    return made


index_columns_.reference(_columns)
index_columns_.samples(
    lambda s: iter(
        [
            s(s.array(3, 4), [s.array(3, 4, dtype="bool")]),
            s(s.array(3, 4), [s.indices(3, 2), s.array(4, dtype="bool")]),
        ]
    )
)
index_columns_.error(
    "IndexError",
    lambda s: s(s.array(3), [s.array(4, dtype="bool")]),
    contains=["mask", "(4,)", "(3,)"],
)


# ---- reading -------------------------------------------------------------------------------------------------------
index_ = Composite(
    "index(Tensor self, Tensor?[] indices) -> Tensor",
    doc="""
    ``self[i, j, ...]`` with integer arrays and bool masks; None stands for ``:``. The indices broadcast; a mask counts as
    the indices of its True elements. The shape they broadcast to takes the place of the indexed dimensions, or comes first
    if None stands between them. Negative indices count from the end.

    Raises: IndexError for too many indices, one out of range, or a mask that does not fit, DTypeError for other dtypes,
    ShapeError if the indices do not broadcast.

    >>> import plait_core as pc
    >>> pc.index(pc.tensor([[1, 2], [3, 4]]), [pc.tensor([0, 1]), pc.tensor([1, 0])]).tolist()
    [2, 3]
    """,
    dtypes="any",
    method=False,
)
index_tensors_ = Operator(
    "index_tensors(Tensor self, Tensor?[] indices) -> Tensor",
    doc="`index` with integer arrays only.",
    dtypes="any",
    internal=True,
    kernel="indices are int64 or None; they broadcast; values in [-n, n), else an IndexError that names the value and n.",
)


@index_.decompose
def _(self, indices):
    return index_tensors(self, index_columns(self, indices))


@index_tensors_.shape
def _(self, indices):
    shape = index_shape("indices", self.shape, indices)
    cast_argument("indices", int64)
    return result(shape, self.dtype)


@index_tensors_.vjp("self")
def _(g, self, indices):
    return index_tensors_backward(g, indices, self.shape)


index_tensors_backward = Operator(
    "index_tensors_backward(Tensor grad, Tensor?[] indices, int[] size) -> Tensor",
    doc="Zeros of shape `size` with `grad` added up at `indices`: the derivative of `index`.",
    dtypes="floating",
    internal=True,
)


@index_tensors_backward.shape
def _(grad, indices, size):
    sizes("size", size)
    shape = index_shape("indices", size, indices)
    check(grad.shape == shape, f"`grad` of shape {grad.shape} must have shape {tuple(shape)}")
    return result(size, grad.dtype)


@index_tensors_backward.decompose
def _(grad, indices, size):
    return index_put_tensors_(
        zeros(size, dtype=grad.dtype, device=grad.device), indices, grad, True
    )


@index_tensors_backward.vjp("grad")
def _(g, indices):
    return index_tensors(g, indices)


def _key(indices):
    return tuple(slice(None) if each is None else each for each in indices)


@index_tensors_backward.reference
def _(grad, indices, size):
    made = np.zeros(size, grad.dtype)
    np.add.at(made, _key(indices), grad)
    return made


index_.reference(lambda self, indices: np.array(self[_key(indices)]))
index_tensors_.reference(lambda self, indices: np.array(self[_key(indices)]))


@index_tensors_.samples
@index_.samples
def _(s):
    yield s(s.array(4, 5), [s.indices(4, 3)])
    yield s(s.array(4, 5), [None, s.indices(5, 3)])
    yield s(s.array(4, 5), [s.indices(4, 3, negative=True), s.indices(5, 3, negative=True)])
    yield s(s.array(4, 5, 6), [s.indices(4, 2, 1), s.indices(5, 3)])
    yield s(s.array(4, 5, 6), [s.indices(4, 2), None, s.indices(6, 2)])
    yield s(s.array(4, 5, 6), [None, s.indices(5, 2), s.indices(6, 2)])
    yield s(s.strided(4, 5), [s.indices(4, 2, 2, dtype="int32")])
    yield s(s.array(4, 5), [s.indices(4)])
    yield s(s.array(4, 5, dtype="int64"), [s.indices(4, 0)])
    yield s(s.backwards(6), [s.indices(6, 4)])
    yield s(s.array(3, dtype="complex64"), [s.indices(3, 4)])


@index_.samples
def _(s):
    yield s(s.array(4, 5), [s.indices(4, 3)])
    yield s(s.array(4, 5, 6), [s.indices(4, 2), None, s.indices(6, 2)])
    yield s(s.array(4, 5), [s.array(4, 5, dtype="bool")])
    yield s(s.array(4, 5), [None, s.array(5, dtype="bool")])
    yield s(s.array(3, 4, 2), [s.array(3, dtype="bool")])
    yield s(s.array(2, 5), [s.indices(2, 1), np.array([True, False, True, True, False])])


index_tensors_backward.samples(
    lambda s: iter(
        [
            s(s.array(3, 5), [s.indices(4, 3)], (4, 5)),
            s(s.array(2, 3), [s.indices(4, 2, 1), s.indices(5, 3)], (4, 5)),
        ]
    )
)
for each in (index_, index_tensors_):
    each.error(
        "IndexError",
        lambda s: s(s.array(3), [s.indices(3, 1), s.indices(3, 1)]),
        contains=["index", "self", "(3,)"],
    )
    each.error("IndexError", lambda s: s(s.array(3), [np.array([3])]), contains=["index", "3"])
    each.error(
        "IndexError", lambda s: s(s.array(3), [np.array([-4])]), contains=["index", "-4", "3"]
    )
    each.error(
        "DTypeError",
        lambda s: s(s.array(3), [s.array(2)]),
        contains=["index", "indices", "float32"],
    )
    each.error(
        "ShapeError",
        lambda s: s(s.array(3, 3), [s.indices(3, 2), s.indices(3, 4)]),
        contains=["index", "broadcast", "(2,)", "(4,)"],
    )
index_.error(
    "IndexError",
    lambda s: s(s.array(3), [s.array(4, dtype="bool")]),
    contains=["mask", "(4,)", "(3,)"],
)
index_tensors_backward.error(
    "ShapeError",
    lambda s: s(s.array(2, 5), [s.indices(4, 3)], (4, 5)),
    contains=["grad", "(2, 5)", "(3, 5)"],
)


# ---- writing -------------------------------------------------------------------------------------------------------
index_put_ = Composite(
    "index_put_(Tensor(a)! self, Tensor?[] indices, Tensor|Scalar values, bool accumulate=False) -> Tensor(a)!",
    doc="""
    ``self[i, j, ...] = values`` with integer arrays and bool masks, or ``+=`` with `accumulate`, where an element named
    several times gets every addend. `values` broadcast to the shape of ``index(self, indices)``. Returns `self`.

    Raises: as `index`, and ShapeError if `values` do not broadcast.

    >>> import plait_core as pc
    >>> pc.zeros(3).index_put_([pc.tensor([0, 2])], 1).tolist()
    [1.0, 0.0, 1.0]
    """,
    dtypes="any",
)
index_put_tensors = Operator(
    "index_put_tensors_(Tensor(a)! self, Tensor?[] indices, Tensor|Scalar values, bool accumulate=False) -> Tensor(a)!",
    doc="`index_put_` with integer arrays only.",
    dtypes="any",
    internal=True,
    kernel="indices as for index_tensors; in[2] has the dtype of in[0] or is a number, and broadcasts.",
)


@index_put_.decompose
def _(self, indices, values, accumulate):
    return index_put_tensors_(self, index_columns(self, indices), values, accumulate)


@index_put_tensors.shape
def _(self, indices, values, accumulate):
    shape = index_shape("indices", self.shape, indices)
    cast_argument("indices", int64)
    if is_tensor(values):
        whole = broadcast("values", values.shape, "self[indices]", shape)
        check(whole == shape, f"`values` of shape {values.shape} must broadcast to {tuple(shape)}")
        cast_argument("values", self.dtype)
    fits("values", values, self.dtype)
    return self


@index_put_tensors.vjp("self")
def _(g, indices, accumulate):
    if accumulate:
        return g
    return index_put_tensors_(clone(g), indices, 0)


@index_put_tensors.vjp("values")
def _(g, indices, values, accumulate):
    picked = index_tensors(g, indices)
    if not accumulate:  # of values for one place the last one counts, which is the one that stays
        order = reshape(arange(numel(picked.shape), device=g.device), picked.shape)
        last = index_put_tensors_(zeros(g.shape, dtype=int64, device=g.device), indices, order)
        picked = where(eq(index_tensors(last, indices), order), picked, 0.0)
    return to_dtype(sum_to(picked, values.shape), values.dtype)


@index_put_tensors.reference
@index_put_.reference
def _(self, indices, values, accumulate=False):
    values = np.asarray(values).astype(self.dtype)
    if accumulate:
        np.add.at(self, _key(indices), values)
    else:
        self[_key(indices)] = values
    return self


@index_put_tensors.samples
@index_put_.samples
def _(s):
    def distinct(n, k):
        return s.rng.permutation(n)[:k]

    yield s(s.array(4, 5), [distinct(4, 3)], s.array(3, 5))
    yield s(s.array(4, 5), [distinct(4, 3)], 2.5)
    yield s(s.array(4, 5), [None, distinct(5, 2)], s.array(2))
    yield s(s.array(4, 5), [s.indices(4, 9)], s.array(9, 5), True)
    yield s(s.array(4, 5, dtype="int64"), [s.indices(4, 3), s.indices(5, 3)], 1, True)
    yield s(s.array(4, dtype="complex64"), [s.indices(4, 9)], s.array(9, dtype="complex64"), True)
    yield s(s.array(4, dtype="bool"), [s.indices(4, 3)], s.array(3, dtype="bool"), True)
    yield s(s.strided(4, 5), [distinct(4, 2), distinct(5, 2)], s.array(2))


for each in (index_put_, index_put_tensors):
    each.error(
        "IndexError", lambda s: s(s.array(3), [np.array([3])], 1.0), contains=["index_put", "3"]
    )
    each.error(
        "ShapeError",
        lambda s: s(s.array(4, 5), [s.indices(4, 3)], s.array(2)),
        contains=["index_put", "values", "(2,)", "(3, 5)"],
    )


unravel_index = Composite(
    "unravel_index(Tensor indices, int[] shape) -> Tensor[]",
    doc="""
    The coordinates of `indices`, which count the elements of a tensor of the given `shape` in C order: one int64 tensor of
    their shape for each dimension.

    Raises: DTypeError unless `indices` holds integers, ShapeError for negative sizes, IndexError for an index out of range.

    >>> import plait_core as pc
    >>> [x.tolist() for x in pc.unravel_index(pc.tensor([0, 5]), (2, 3))]
    [[0, 1], [0, 2]]
    """,
)


@unravel_index.decompose
def _(indices, shape):
    require("indices", indices.dtype, "integer")
    sizes("shape", shape)
    total = numel(shape)
    if numel(indices.shape) > 0:
        low = item(to_dtype(amin(indices), int64))
        high = item(to_dtype(amax(indices), int64))
        check(
            low >= 0 and high < total,
            f"`indices` must be in [0, {total}) for `shape` {shape}; got {low if low < 0 else high}",
            "IndexError",
        )
    rest = to_dtype(indices, int64)
    made = []
    for d in range(len(shape)):
        step = max(numel(shape[d + 1 :]), 1)
        made.append(floor_divide(rest, step))
        rest = remainder(rest, step)
    return made


unravel_index.reference(
    lambda indices, shape: [np.asarray(x, "int64") for x in np.unravel_index(indices, shape)]
)
unravel_index.samples(
    lambda s: iter(
        [
            s(s.indices(12, 5), (3, 4)),
            s(s.indices(24, 2, 2, dtype="int32"), (2, 3, 4)),
            s(s.indices(4), (4,)),
        ]
    )
)
unravel_index.error(
    "IndexError",
    lambda s: s(np.array([6]), (2, 3)),
    contains=["unravel_index", "indices", "6", "(2, 3)"],
)
unravel_index.error(
    "DTypeError", lambda s: s(s.array(2), (2, 3)), contains=["unravel_index", "indices", "float32"]
)
