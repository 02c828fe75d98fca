"""Linear algebra of tensors: systems over several dimensions, diagonals, Vandermonde matrices."""

import numpy as np

from plait_ops.calls import (
    arange,
    diagonal,
    flip,
    linalg_inv,
    linalg_solve,
    linalg_vander,
    matmul,
    movedim,
    pow,
    reshape,
    unsqueeze,
)
from plait_ops.linear_samples import regular
from plait_ops.spec import Composite
from plait_ops.words import check, numel, require, wrap_dim

linalg_diagonal = Composite(
    "linalg_diagonal(Tensor(a) A|self, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
    doc="""
    `diagonal` of the matrices in the last two dimensions.

    >>> import plait_core as pc
    >>> pc.linalg.diagonal(pc.tensor([[[1, 2], [3, 4]]])).tolist()
    [[1, 4]]
    """,
    method=False,
    dtypes="any",
)


@linalg_diagonal.decompose
def _(A, offset, dim1, dim2):
    return diagonal(A, offset, dim1, dim2)


linalg_diagonal.reference(lambda A, offset=0, dim1=-2, dim2=-1: np.diagonal(A, offset, dim1, dim2))
linalg_diagonal.samples(
    lambda s: iter([s(s.array(2, 3, 4)), s(s.array(2, 3, 4), offset=1, dim1=0, dim2=2)])
)
linalg_diagonal.error("ShapeError", lambda s: s(s.array(3)), contains=["diagonal", "(3,)"])


linalg_matmul = Composite(
    "linalg_matmul(Tensor self|x1, Tensor other|x2) -> Tensor",
    doc="""
    The products of matrices: `matmul`.

    >>> import plait_core as pc
    >>> pc.linalg.matmul(pc.ones(1, 2), pc.ones(2, 1)).item()
    2.0
    """,
    method=False,
    out=True,
    dtypes="arithmetic",
)


@linalg_matmul.decompose
def _(self, other):
    return matmul(self, other)


linalg_matmul.reference(lambda self, other: np.matmul(self, other))
linalg_matmul.samples(lambda s: iter([s(s.array(2, 3), s.array(3, 2))]))
linalg_matmul.error("ShapeError", lambda s: s(s.array(2, 3), s.array(2)), contains=["(2, 3)"])


linalg_vander_ = Composite(
    "linalg_vander(Tensor x, *, int? N=None) -> Tensor",
    doc="""
    Vandermonde matrices: ``out[..., i, j] = x[..., i] ** j`` for j < `N` (by default as many as `x` has elements in a row).

    Shapes: `x` is (..., n), the result (..., n, N). Dtypes: numbers.
    A 0-d `x` counts as one of shape (1,). Raises: ValueError for a negative `N`.

    >>> import plait_core as pc
    >>> pc.linalg.vander(pc.tensor([1, 2, 3])).tolist()
    [[1, 1, 1], [1, 2, 4], [1, 3, 9]]
    """,
    method=False,
    dtypes="arithmetic",
)
vander = Composite(
    "vander(Tensor x, int? N=None, bool increasing=False) -> Tensor",
    doc="""
    The Vandermonde matrix of a vector: powers from the highest to 0, or from 0 on if `increasing`.

    Shapes: `x` is (n,), the result (n, N). Raises: ShapeError for other shapes, ValueError for a negative `N`.

    >>> import plait_core as pc
    >>> pc.vander(pc.tensor([1, 2, 3])).tolist()
    [[1, 1, 1], [4, 2, 1], [9, 3, 1]]
    """,
    method=False,
    dtypes="arithmetic",
)


@linalg_vander_.decompose
def _(x, N):
    require("x", x.dtype, "arithmetic")
    if x.ndim == 0:
        return linalg_vander(reshape(x, [1]), N=N)
    count = x.shape[-1] if N is None else N
    check(count >= 0, f"`N` must not be negative; got {count}", "ValueError")
    return pow(unsqueeze(x, -1), arange(count, device=x.device))


@vander.decompose
def _(x, N, increasing):
    check(x.ndim == 1, f"`x` must have 1 dimension; got shape {x.shape}")
    made = linalg_vander(x, N=N)
    if increasing:
        return made
    return flip(made, [-1])


@linalg_vander_.reference
def _(x, N=None):
    x = x.reshape(x.shape or (1,))
    count = x.shape[-1] if N is None else N
    return (
        x[..., None] ** np.arange(count, dtype=x.dtype if x.dtype.kind in "iu" else "int64")
    ).astype(x.dtype)


vander.reference(lambda x, N=None, increasing=False: np.vander(x, N, increasing).astype(x.dtype))
linalg_vander_.samples(
    lambda s: iter(
        [
            s(s.array(3)).loosely(4),
            s(s.array(2, 3), N=4).loosely(4),
            s(s.array(3, dtype="int64"), N=2),
            s(s.array(3), N=0),
            s(s.array(0)),
            s(s.array(), N=3),
        ]
    )
)
vander.samples(
    lambda s: iter(
        [s(s.array(3)).loosely(4), s(s.array(3, dtype="int64"), 4), s(s.array(3), 2, True)]
    )
)
linalg_vander_.error(
    "ValueError", lambda s: s(s.array(2), N=-1), contains=["linalg_vander", "`N`", "-1"]
)
vander.error("ShapeError", lambda s: s(s.array(2, 2)), contains=["vander", "`x`", "(2, 2)"])


linalg_tensorinv = Composite(
    "linalg_tensorinv(Tensor A, int ind=2) -> Tensor",
    doc="""
    The inverse for `tensordot` over `ind` dimensions: `A` counts as a matrix whose rows are its first `ind` dimensions.

    Shapes: ``A.shape[ind:] + A.shape[:ind]`` is the shape of the result. Dtypes: floating and complex.
    Raises: ValueError for an `ind` below 1, ShapeError if rows and columns differ in number, RuntimeError for a singular `A`.

    >>> import plait_core as pc
    >>> tuple(pc.linalg.tensorinv(pc.eye(4).reshape(2, 2, 4), 2).shape)
    (4, 2, 2)
    """,
    method=False,
    dtypes="inexact",
)


@linalg_tensorinv.decompose
def _(A, ind):
    check(ind > 0, f"`ind` must be positive; got {ind}", "ValueError")
    check(
        numel(A.shape[:ind]) == numel(A.shape[ind:]),
        f"`A` of shape {A.shape} must have as many elements in its first {ind} dimensions as in the others",
    )
    n = numel(A.shape[:ind])
    return reshape(linalg_inv(reshape(A, [n, n])), A.shape[ind:] + A.shape[:ind])


linalg_tensorinv.reference(lambda A, ind=2: np.linalg.tensorinv(A, ind))
linalg_tensorinv.samples(
    lambda s: iter(
        [
            s(regular(s, 6, 6).reshape(2, 3, 6)).loosely(20),
            s(regular(s, 6, 6).reshape(6, 3, 2), 1).loosely(20),
        ]
    )
)
linalg_tensorinv.error(
    "ShapeError", lambda s: s(s.array(2, 3, 4)), contains=["linalg_tensorinv", "`A`", "(2, 3, 4)"]
)
linalg_tensorinv.error(
    "ValueError", lambda s: s(s.array(2, 2), 0), contains=["linalg_tensorinv", "ind", "0"]
)


linalg_tensorsolve = Composite(
    "linalg_tensorsolve(Tensor A, Tensor B, int[]? dims=None) -> Tensor",
    doc="""
    The X of ``tensordot(A, X, X.ndim) == B``: `A` counts as a square matrix whose rows are its first ``B.ndim`` dimensions,
    after `dims` were moved to the end.

    Raises: ShapeError if the shapes don't make a square matrix and its right side, RuntimeError for a singular one.

    >>> import plait_core as pc
    >>> pc.linalg.tensorsolve(pc.eye(4).reshape(4, 2, 2), pc.ones(4)).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """,
    method=False,
    dtypes="inexact",
)


@linalg_tensorsolve.decompose
def _(A, B, dims):
    order = []
    for i in range(A.ndim):
        order.append(i)
    if dims is not None:
        for dim in dims:
            at = wrap_dim("dims", dim, A.shape)
            check(at in order, f"`dims` must not repeat a dimension; got {dims}", "ValueError")
            order = [i for i in order if i != at] + [at]
    target = []
    for i in range(A.ndim):
        target.append(i)
    moved = movedim(A, order, target)
    n = numel(B.shape)
    check(
        moved.ndim >= B.ndim and numel(moved.shape) == n * n and numel(moved.shape[B.ndim :]) == n,
        f"`A` of shape {A.shape} must make a square matrix with as many rows as `B` of shape {B.shape} has elements",
    )
    x = linalg_solve(reshape(moved, [n, n]), reshape(B, [n]))
    return reshape(x, moved.shape[B.ndim :])


linalg_tensorsolve.reference(
    lambda A, B, dims=None: np.linalg.tensorsolve(A, B, None if dims is None else tuple(dims))
)
linalg_tensorsolve.samples(
    lambda s: iter(
        [
            s(regular(s, 6, 6).reshape(2, 3, 6), s.array(2, 3)).loosely(20),
            s(regular(s, 6, 6).reshape(6, 2, 3).transpose(1, 0, 2), s.array(6), (0, 2)).loosely(20),
        ]
    )
)
linalg_tensorsolve.error(
    "ShapeError",
    lambda s: s(s.array(2, 3, 4), s.array(2)),
    contains=["linalg_tensorsolve", "`A`", "(2, 3, 4)", "(2,)"],
)
