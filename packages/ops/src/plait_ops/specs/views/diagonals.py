"""Matrices from diagonals, and the indices of triangles."""

import numpy as np

from plait_ops.calls import (
    amax,
    amin,
    clone,
    copy_,
    diag_embed,
    diagonal,
    floor_divide,
    nonzero_rows,
    ones,
    remainder,
    reshape,
    transpose,
    tril,
    triu,
    zeros,
)
from plait_ops.calls import diagonal as diagonal_view
from plait_ops.spec import Composite, Operator
from plait_ops.words import (
    bool_,
    check,
    int64,
    item,
    max_dims,
    numel,
    require,
    result,
    sizes,
    to_dtype,
    wrap_dim,
)

diag_embed_ = Operator(
    "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
    doc="""
    Matrices in dimensions `dim1` and `dim2` of the result with the vectors of the last dimension of `self` on their diagonal
    `offset`, which counts to the upper right, and 0 elsewhere.

    Raises: ShapeError for a 0-d tensor, IndexError for a dim out of range, ValueError if both are the same.

    >>> import plait_core as pc
    >>> pc.diag_embed(pc.tensor([1, 2]), 1).tolist()
    [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    """,
    dtypes="any",
    kernel="optional: it runs as other operators where there is none.",
)
FURTHEST = 2**31


@diag_embed_.shape
def _(self, offset, dim1, dim2):
    check(self.ndim >= 1, f"`self` must have at least 1 dimension; got shape {self.shape}")
    check(
        -FURTHEST <= offset <= FURTHEST,
        f"`offset` must be in [{-FURTHEST}, {FURTHEST}]; got {offset}",
        "ValueError",
    )
    max_dims("self", self.ndim + 1)
    shape = list(self.shape) + [1]
    a = wrap_dim("dim1", dim1, shape)
    b = wrap_dim("dim2", dim2, shape)
    check(a != b, f"`dim1` and `dim2` must differ; got {dim1} and {dim2}", "ValueError")
    n = self.shape[-1] + abs(offset)
    made = []
    at = 0
    for i in range(self.ndim + 1):
        if i in (a, b):
            made.append(n)
        else:
            made.append(self.shape[at])
            at += 1
    sizes("self", made)
    return result(made, self.dtype)


@diag_embed_.decompose
def _(self, offset, dim1, dim2):
    shape = list(self.shape) + [1]
    a = wrap_dim("dim1", dim1, shape)
    b = wrap_dim("dim2", dim2, shape)
    n = self.shape[-1] + abs(offset)
    size = []
    at = 0
    for i in range(self.ndim + 1):
        if i in (a, b):
            size.append(n)
        else:
            size.append(self.shape[at])
            at += 1
    made = zeros(size, dtype=self.dtype, device=self.device)
    copy_(diagonal(made, offset, a, b), self)
    return made


@diag_embed_.vjp("self")
def _(g, offset, dim1, dim2):
    return diagonal(g, offset, dim1, dim2)


@diag_embed_.reference
def _(self, offset=0, dim1=-2, dim2=-1):
    n = self.shape[-1] + abs(offset)
    made = np.zeros((*self.shape[:-1], n, n), self.dtype)
    line = np.diagonal(made, offset, -2, -1)
    line.setflags(write=True)
    line[...] = self
    return np.moveaxis(made, (-2, -1), (dim1, dim2))


@diag_embed_.samples
def _(s):
    yield s(s.array(3))
    yield s(s.array(2, 3), 1)
    yield s(s.array(2, 3), -2, 0, 2)
    yield s(s.strided(2, 3), 0, -1, 0)
    yield s(s.array(3, dtype="complex64"))
    yield s(s.array(0))


diag_embed_.error("ShapeError", lambda s: s(s.array()), contains=["diag_embed", "self", "()"])
diag_embed_.error(
    "ValueError", lambda s: s(s.array(3), 0, 1, -1), contains=["diag_embed", "dim1", "dim2"]
)
diag_embed_.error(
    "IndexError", lambda s: s(s.array(3), 0, 0, 2), contains=["diag_embed", "dim2", "2"]
)

diag = Composite(
    "diag(Tensor self, int diagonal|k=0) -> Tensor",
    doc="""
    The `diagonal` of a matrix, or the matrix that has a vector there and 0 elsewhere. A copy.

    Raises: ShapeError unless `self` has 1 or 2 dimensions.

    >>> import plait_core as pc
    >>> pc.diag(pc.tensor([1, 2])).tolist(), pc.diag(pc.tensor([[1, 2], [3, 4]]), 1).tolist()
    ([[1, 0], [0, 2]], [2])
    """,
    dtypes="any",
)
diagflat = Composite(
    "diagflat(Tensor self, int offset=0) -> Tensor",
    doc="""
    The matrix with the elements of `self`, of any shape, on the diagonal `offset` and 0 elsewhere.

    >>> import plait_core as pc
    >>> pc.diagflat(pc.tensor([[1], [2]])).tolist()
    [[1, 0], [0, 2]]
    """,
    dtypes="any",
)


@diag.decompose
def _(self, diagonal):
    check(
        self.ndim == 1 or self.ndim == 2,
        f"`self` must have 1 or 2 dimensions; got shape {self.shape}",
    )
    if self.ndim == 1:
        return diag_embed(self, diagonal)
    return clone(diagonal_view(self, diagonal))


@diagflat.decompose
def _(self, offset):
    return diag_embed(reshape(self, [-1]), offset)


diag.reference(lambda self, diagonal=0: np.diag(self, diagonal))
diagflat.reference(lambda self, offset=0: np.diagflat(self, offset))
diag.samples(
    lambda s: iter([s(s.array(3)), s(s.array(3, 4), 1), s(s.array(3, 4), -1), s(s.array(2), -2)])
)
diagflat.samples(lambda s: iter([s(s.array(2, 2)), s(s.array(), 1), s(s.array(3), -1)]))
diag.error("ShapeError", lambda s: s(s.array(2, 2, 2)), contains=["diag", "self", "(2, 2, 2)"])
diagflat.error(
    "ValueError", lambda s: s(s.array(2), 2**40), contains=["diag_embed", "offset", str(2**40)]
)


# ---- indices of triangles ----------------------------------------------------------------------
def _triangle(name, what, reference):
    operator = Composite(
        f"{name}_indices(int row, int col, int offset=0, *, dtype dtype=int64, device? device=None) -> Tensor",
        doc=f"""
    Where the {what} triangle of a matrix of `row` rows and `col` columns is: row numbers and column numbers, shape (2, n),
    row by row. `offset` moves its edge to the upper right.

    Raises: ValueError for a negative size, DTypeError unless `dtype` is int32 or int64.

    >>> import plait_core as pc
    >>> pc.{name}_indices(2, 2).tolist()
    {np.stack(reference(2, 0, 2)).tolist()}
    """,
    )
    operator.reference(
        lambda row, col, offset=0, dtype="int64": np.stack(reference(row, offset, col)).astype(
            dtype
        )
    )
    operator.samples(
        lambda s: iter(
            [s(3, 3), s(3, 4, 1), s(4, 3, -1, dtype="int32"), s(0, 3), s(2, 2, 5), s(2, 2, -5)]
        )
    )
    operator.error("ValueError", lambda s: s(-1, 3), contains=[f"{name}_indices", "row", "-1"])
    operator.error(
        "DTypeError",
        lambda s: s(2, 3, dtype="float32"),
        contains=[f"{name}_indices", "dtype", "float32"],
    )
    return operator


tril_indices = _triangle("tril", "lower", np.tril_indices)
triu_indices = _triangle("triu", "upper", np.triu_indices)


def _places(triangle, lower):
    def decompose(row, col, offset, dtype, device):
        check(
            row >= 0 and col >= 0,
            f"`row` and `col` must not be negative; got {row} and {col}",
            "ValueError",
        )
        require("dtype", dtype, "integer")
        square = triangle(ones([row, col], dtype=bool_, device=device), offset)
        # Row i holds start + i places left of the edge, but not below 0, and not beyond `col`. So
        # the shape is known without looking, and on device meta.
        start = offset + (1 if lower else 0)
        some = min(max(1 - start, 0), row)
        full = min(max(col - start, some), row)
        below = (full - some) * (2 * start + full + some - 1) // 2 + (row - full) * col
        rows = nonzero_rows(square, below if lower else row * col - below)
        return clone(transpose(to_dtype(rows, dtype), 0, 1))

    return decompose


tril_indices.decompose(_places(tril, True))
triu_indices.decompose(_places(triu, False))


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
