"""Least squares."""

from plait_ops import calls as op
from plait_ops.costs import matrices, singular_values
from plait_ops.linear_words import require_matrix
from plait_ops.spec import Composite, Operator
from plait_ops.words import (
    broadcast,
    check,
    conjugate,
    float64,
    int64,
    is_unused,
    numel,
    real_dtype,
    require_same,
    result,
    sum_to,
)

lstsq_parts_ = Operator(
    "lstsq_parts(Tensor A, Tensor B, float rcond, bool values=True) -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
    doc="""
    Four results: the X that minimises ``|A X - B|`` (of several the shortest); the sum of squares that remains in every
    column of B (0 unless A has more rows than columns); the rank of A, where singular values up to `rcond` times the
    largest count as 0; and the singular values of A. Without `values` these are 0, and the rank may be that of a QR
    factorisation with the same limit for its conditions.
    """,
    kernel="optional: without a kernel other operators compute it; in[0] is (..., m, n), in[1] (..., m, k), of one dtype, any strides; leading dimensions broadcast; in[2] is the smallest singular value that counts, relative to the largest; results are in C order, out[2] is int64, out[1] and out[3] are real; without in[3] out[3] is 0.",
    internal=True,
    dtypes="inexact",
    auxiliary=(3,),
    lapack=True,
)


@lstsq_parts_.shape
def _(A, B):
    require_matrix("A", A)
    require_matrix("B", B)
    require_same("A", A, "B", B)
    m = A.shape[-2]
    n = A.shape[-1]
    check(
        B.shape[-2] == m, f"`B` of shape {B.shape} must have as many rows as `A` of shape {A.shape}"
    )
    batch = broadcast("A", A.shape[:-2], "B", B.shape[:-2])
    k = B.shape[-1]
    real = real_dtype(A.dtype)
    return (
        result(batch + [n, k], A.dtype),
        result(batch + [k], real),
        result(batch, int64),
        result(batch + [min(m, n)], real),
    )


@lstsq_parts_.decompose
def _(A, B, rcond, values):
    m = A.shape[-2]
    n = A.shape[-1]
    small = min(m, n)
    batch = broadcast("A", A.shape[:-2], "B", B.shape[:-2])
    u, s, vh = op.linalg_svd(A, False)
    if small == 0 or numel(A.shape) == 0:
        solution = op.zeros(batch + [n, B.shape[-1]], dtype=A.dtype, device=A.device)
        rank = op.zeros(batch, dtype=int64, device=A.device)
    else:
        cut = rcond
        if rcond < 0.0:
            cut = 2.220446049250313e-16 if s.dtype == float64 else 1.1920928955078125e-07
        counts = op.gt(s, op.narrow(s, -1, 0, 1) * cut)
        inverse = op.unsqueeze(op.where(counts, op.reciprocal(s), 0.0), -1)
        v = conjugate(op.transpose(vh, -2, -1))
        solution = v @ (inverse * (conjugate(op.transpose(u, -2, -1)) @ B))
        rank = op.clone(op.expand(op.sum(counts, [-1]), batch))
    if m > n:
        rest = op.abs(A @ solution - B)
        residuals = op.sum(rest * rest, [-2])
    else:
        residuals = op.zeros(batch + [B.shape[-1]], dtype=s.dtype, device=A.device)
    if values:
        return solution, residuals, rank, op.clone(op.expand(s, batch + [small]))
    return (
        solution,
        residuals,
        rank,
        op.zeros(batch + [small], dtype=s.dtype, device=A.device),
    )


@lstsq_parts_.cost
def _(A, result0):
    # approximately: by singular values, whose vectors are applied to B, also where there is less
    m = A.shape[-2]
    return matrices(A) * singular_values(m, A.shape[-1]) + 4 * m * numel(result0)


@lstsq_parts_.vjp("A", "B")
def _(g0, g1, A, B, result0, rcond):
    P = op.linalg_pinv(A, rtol=rcond, atol=0.0)
    gB = conjugate(op.transpose(P, -2, -1)) @ g0
    gA = op.pinv_backward(g0 @ conjugate(op.transpose(B, -2, -1)), A, P)
    # |A X - B|^2 is minimal at X, so its derivative has no part through X
    if A.shape[-2] > A.shape[-1] and not is_unused(g1):
        pull = (A @ result0 - B) * op.unsqueeze(g1 * 2.0, -2)
        gA = gA + pull @ conjugate(op.transpose(result0, -2, -1))
        gB = gB - pull
    return sum_to(gA, A.shape), sum_to(gB, B.shape)


linalg_lstsq = Composite(
    "linalg_lstsq(Tensor A, Tensor B|b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
    doc="""
    Least squares: the X that minimises ``|A X - B|``; of several the shortest.

    Shapes: `A` is (..., m, n); `B` (..., m, k), or one vector for every matrix of `A`, (..., m); `solution` is (..., n, k)
    or (..., n). `driver` is "gelsy" (the default, a QR factorisation that exchanges columns), "gels" (computed in the same way), or
    "gelsd" and "gelss" (both by singular values). `residuals`, the sums of squares that remain, (..., k), are
    filled if m > n, by all but "gelsy"; `rank`, int64, by all but "gels", and `singular_values` by "gelsd" and "gelss" have
    the leading dimensions of `A`.
    Singular values up to `rcond` times the largest count as 0; by QR, columns that would make the condition of R larger than 1 / `rcond`. The default of `rcond` is the larger of m and n times the
    distance from 1 to the next number of the dtype. Unlike PyTorch, plait also returns residuals for matrices without full
    rank. Dtypes: floating and complex, the same for both.
    Raises: ShapeError for other shapes, DTypeError if dtypes differ, ValueError for another `driver`, RuntimeError for
    infinities or NaN. Gradients flow through `solution` and `residuals`, not through `singular_values`; for those use
    `linalg.svdvals`.

    >>> import plait_core as pc
    >>> a = pc.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> x = pc.linalg.lstsq(a, pc.tensor([[1.0], [3.0], [5.0]])).solution
    >>> [f"{v:.3f}" for v in x.flatten().tolist()]
    ['1.000', '2.000']
    """,
    dtypes="inexact",
    auxiliary=(3,),
)


@linalg_lstsq.decompose
def _(A, B, rcond, driver):
    require_matrix("A", A)
    require_same("A", A, "B", B)
    check(
        driver is None
        or driver == "gelsy"
        or driver == "gelsd"
        or driver == "gelss"
        or driver == "gels",
        f'`driver` must be "gels", "gelsy", "gelsd" or "gelss"; got "{driver}"',
        "ValueError",
    )
    eps = 2.220446049250313e-16 if real_dtype(A.dtype) == float64 else 1.1920928955078125e-07
    cut = eps * max(A.shape[-2], A.shape[-1])
    if rcond is not None:
        cut = rcond
    vector = B.ndim == 1 or (A.ndim == B.ndim + 1 and B.shape == A.shape[:-1])
    by_values = driver is not None and (driver == "gelsd" or driver == "gelss")
    columns = op.unsqueeze(B, -1) if vector else B
    solution, residuals, rank, values = op.lstsq_parts(A, columns, cut, by_values)
    nothing = op.zeros([0], dtype=real_dtype(A.dtype), device=A.device)
    if vector:
        solution = op.squeeze_dim(solution, [-1])
    # facts of A, which may have fewer batches
    extra = rank.ndim + 2 - A.ndim
    for d in range(rank.ndim):
        if rank.shape[d] > 1 and (d < extra or rank.shape[d] > A.shape[d - extra]):
            rank = op.contiguous(op.narrow(rank, d, 0, 1))
            values = op.contiguous(op.narrow(values, d, 0, 1))
    if extra > 0 and numel(rank.shape) > 0:
        rank = op.reshape(rank, A.shape[:-2])
        values = op.reshape(values, A.shape[:-2] + [values.shape[-1]])
    if A.shape[-2] <= A.shape[-1] or driver is None or driver == "gelsy":
        residuals = nothing
    if driver is not None and driver == "gels":
        rank = op.zeros([0], dtype=int64, device=A.device)
    if driver is None or driver == "gelsy" or driver == "gels":
        values = nothing
    return solution, residuals, rank, op.detach(values)
