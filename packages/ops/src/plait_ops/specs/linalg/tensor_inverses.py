"""Inverses of tensors, and equations with tensors."""

import numpy as np

from plait_ops.calls import linalg_inv, linalg_solve, movedim, reshape
from plait_ops.linear_samples import regular
from plait_ops.spec import Composite
from plait_ops.words import check, numel, wrap_dim

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
