"""Inverses of tensors, and equations with tensors."""

from plait_ops import calls as op
from plait_ops.spec import Composite
from plait_ops.words import check, numel, wrap_dim

linalg_tensorinv = Composite(
    "linalg_tensorinv(Tensor A, int ind=2) -> Tensor",
    doc="""
    The inverse of `A` with respect to `tensordot` over `ind` dimensions: `A` counts as a matrix whose rows are its first
    `ind` dimensions.

    Args:
        A: The tensor, a map between the spaces of its first and its last dimensions.

    Shapes: ``A.shape[ind:] + A.shape[:ind]`` is the shape of the result. Dtypes: floating and complex.
    Raises: ValueError for an `ind` below 1, ShapeError if the numbers of rows and columns differ, RuntimeError for a
    singular `A`.

    >>> import plait_core as pc
    >>> tuple(pc.linalg.tensorinv(pc.eye(4).reshape(2, 2, 4), 2).shape)
    (4, 2, 2)
    """,
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
    return op.reshape(op.linalg_inv(op.reshape(A, [n, n])), A.shape[ind:] + A.shape[:ind])


linalg_tensorsolve = Composite(
    "linalg_tensorsolve(Tensor A, Tensor B|other, int[]? dims=None) -> Tensor",
    doc="""
    The X of ``tensordot(A, X, X.ndim) == B``: `A` counts as a square matrix whose rows are its first ``B.ndim`` dimensions,
    after `dims` were moved to the end.

    Args:
        dims: The dimensions of `A` that are moved to its end first, or None.
        B: The right-hand side.
        A: The coefficients: the shape of `B` and then that of the unknown.

    Raises: ShapeError if the shapes are not those of a square matrix and its right-hand side, RuntimeError for a singular
    matrix.

    >>> import plait_core as pc
    >>> pc.linalg.tensorsolve(pc.eye(4).reshape(4, 2, 2), pc.ones(4)).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """,
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
    moved = op.movedim(A, order, target)
    n = numel(B.shape)
    check(
        moved.ndim >= B.ndim and numel(moved.shape) == n * n and numel(moved.shape[B.ndim :]) == n,
        f"`A` of shape {A.shape} must make a square matrix with as many rows as `B` of shape {B.shape} has elements",
    )
    x = op.linalg_solve(op.reshape(moved, [n, n]), op.reshape(B, [n]))
    return op.reshape(x, moved.shape[B.ndim :])
