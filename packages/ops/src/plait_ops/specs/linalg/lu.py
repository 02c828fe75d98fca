"""Factors of a square or rectangular matrix, P A = L U, and solutions from them."""

from plait_ops import calls as op
from plait_ops.costs import lu, matrices
from plait_ops.linear_words import require_matrix
from plait_ops.spec import Composite, Operator
from plait_ops.specs.linalg.ldl import check_factors
from plait_ops.words import broadcast, check, conjugate, int32, numel, part, result


def _factor(name, schema, results, example):
    return Operator(
        schema,
        doc=f"""
        The LU factors of `A` with partial pivoting, stored in one matrix: U on and above the diagonal, L below it. The
        diagonal of L is 1 and not stored.

        Shapes: `A` is (..., m, n), `LU` too; `pivots` is (..., min(m, n)), int32: row i was exchanged with row
        ``pivots[i] - 1``{results}. Dtypes: floating and complex. `lu_unpack` separates the factors.
        Raises: ShapeError for fewer than 2 dimensions, DTypeError for integers, NotImplementedError for ``pivot=False``.

        >>> import plait_core as pc
        >>> {example}
        """,
        kernel="in[0] is (..., m, n) in any strides; results are in C order; L without its diagonal of ones and U share out[0]; out[1] is int32, the row that row i was exchanged with, from 1; in[1] is true; of `linalg_lu_factor_ex`, out[2] is int32, 0 or the place of the first zero on the diagonal of U, from 1, which is an error only if in[2].",
        dtypes="inexact",
        lapack=True,
    )


linalg_lu_factor_ = _factor(
    "lu_factor",
    "linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
    "",
    "pc.linalg.lu_factor(pc.tensor([[2.0, 1.0], [4.0, 3.0]])).LU.tolist()\n"
    "        [[4.0, 3.0], [0.5, -0.5]]",
)
linalg_lu_factor_.batch("matrices")
linalg_lu_factor_ex = _factor(
    "lu_factor_ex",
    "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)",
    "; `info` is (...), int32: the first zero on the diagonal of U, counted from 1, or 0",
    "pc.linalg.lu_factor_ex(pc.zeros(2, 2)).info.item()\n        1",
)
linalg_lu_factor_ex.batch("matrices")


@linalg_lu_factor_.shape
def _(A, pivot):
    require_matrix("A", A)
    check(
        pivot,
        "`pivot` must be True on this device, which always exchanges rows; got False",
        "NotImplementedError",
    )
    small = min(A.shape[-2], A.shape[-1])
    return result(A.shape, A.dtype), result(A.shape[:-2] + [small], int32)


@linalg_lu_factor_ex.shape
def _(A, pivot):
    require_matrix("A", A)
    check(
        pivot,
        "`pivot` must be True on this device, which always exchanges rows; got False",
        "NotImplementedError",
    )
    small = min(A.shape[-2], A.shape[-1])
    return (
        result(A.shape, A.dtype),
        result(A.shape[:-2] + [small], int32),
        result(A.shape[:-2], int32),
    )


@linalg_lu_factor_.cost
@linalg_lu_factor_ex.cost
def _(A):
    return matrices(A) * lu(A.shape[-2], A.shape[-1])


@linalg_lu_factor_.decompose
def _(A, pivot):
    LU, pivots, _info = linalg_lu_factor_ex(A, pivot=pivot)
    return LU, pivots


@part
def _factor_gradient(g, LU, pivots):
    """The gradient of A from that of both factors in one matrix."""
    P, L, U = op.lu_unpack(LU, pivots)
    m = LU.shape[-2]
    n = LU.shape[-1]
    k = min(m, n)
    lh = conjugate(op.transpose(op.narrow(L, -2, 0, k), -2, -1))
    uh = conjugate(op.transpose(op.narrow(U, -1, 0, k), -2, -1))
    square = op.narrow(op.narrow(g, -1, 0, k), -2, 0, k)
    below = lh @ op.tril(square, -1)
    above = op.triu(square) @ uh
    if n > k:
        wide = op.narrow(op.narrow(g, -2, 0, k), -1, k, n - k)
        below = below - wide @ conjugate(op.transpose(op.narrow(U, -1, k, n - k), -2, -1))
    if m > k:
        tall = op.narrow(op.narrow(g, -1, 0, k), -2, k, m - k)
        above = above - conjugate(op.transpose(op.narrow(L, -2, k, m - k), -2, -1)) @ tall
    inner = op.linalg_solve_triangular(
        lh, op.tril(below, -1) + op.triu(above), upper=True, unitriangular=True
    )
    made = op.linalg_solve_triangular(uh, inner, upper=False, left=False)
    if n > k:
        rest = op.narrow(op.narrow(g, -2, 0, k), -1, k, n - k)
        made = op.cat(
            [made, op.linalg_solve_triangular(lh, rest, upper=True, unitriangular=True)], -1
        )
    if m > k:
        rest = op.narrow(op.narrow(g, -1, 0, k), -2, k, m - k)
        made = op.cat([made, op.linalg_solve_triangular(uh, rest, upper=False, left=False)], -2)
    return P @ made


@linalg_lu_factor_.vjp("A")
@linalg_lu_factor_ex.vjp("A")
def _(g0, result0, result1):
    return _factor_gradient(g0, result0, result1)


lu_unpack_ = Operator(
    "lu_unpack(Tensor LU_data, Tensor LU_pivots) -> (Tensor P, Tensor L, Tensor U)",
    doc="""
    P, L and U of the factors that `linalg.lu_factor` made: ``A = P @ L @ U``.

    Shapes: for (..., m, n) with k = min(m, n): P (..., m, m), L (..., m, k), U (..., k, n).
    Dtypes: floating and complex; `LU_pivots` is int32.
    Raises: ShapeError if the shapes do not fit together, DTypeError for other dtypes, RuntimeError for pivots out of
    range.

    >>> import plait_core as pc
    >>> p, l, u = pc.lu_unpack(*pc.linalg.lu_factor(pc.tensor([[2.0, 1.0], [4.0, 3.0]])))
    >>> (p @ l @ u).tolist()
    [[2.0, 1.0], [4.0, 3.0]]
    """,
    kernel="in[0] and in[1], int32, are what `linalg_lu_factor` gave, any strides; a kernel must check the pivots: numbers outside 1 to m are an error; results are in C order, out[0] is the permutation as a matrix.",
    dtypes="inexact",
)
lu_unpack_.batch("matrices")


@lu_unpack_.shape
def _(LU_data, LU_pivots):
    require_matrix("LU_data", LU_data)
    m = LU_data.shape[-2]
    n = LU_data.shape[-1]
    k = min(m, n)
    check(
        LU_pivots.dtype == int32, f"`LU_pivots` must be int32; got {LU_pivots.dtype}", "DTypeError"
    )
    check(
        LU_pivots.shape == LU_data.shape[:-2] + [k],
        f"`LU_pivots` of shape {LU_pivots.shape} must have the shape {LU_data.shape[:-2] + [k]} for `LU_data` of shape {LU_data.shape}",
    )
    batch = LU_data.shape[:-2]
    return (
        result(batch + [m, m], LU_data.dtype),
        result(batch + [m, k], LU_data.dtype),
        result(batch + [k, n], LU_data.dtype),
    )


@lu_unpack_.vjp("LU_data")
def _(g1, g2, LU_data):
    return op.pad_end(op.tril(g1, -1), LU_data.shape) + op.pad_end(op.triu(g2), LU_data.shape)


linalg_lu = Composite(
    "linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
    doc="""
    Factors ``A = P @ L @ U``: P permutes rows, L is lower triangular with 1 on its diagonal, U is upper triangular.

    Raises: as `linalg.lu_factor`.

    >>> import plait_core as pc
    >>> pc.linalg.lu(pc.tensor([[2.0, 1.0], [4.0, 3.0]])).U.tolist()
    [[4.0, 3.0], [0.0, -0.5]]
    """,
    dtypes="inexact",
)


@linalg_lu.decompose
def _(A, pivot):
    LU, pivots = op.linalg_lu_factor(A, pivot=pivot)
    return op.lu_unpack(LU, pivots)


linalg_lu_solve_ = Operator(
    "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
    doc="""
    Solve ``A X = B`` with the factors of `linalg.lu_factor`; with ``left=False`` solve ``X A = B``. With `adjoint` the
    conjugate transpose of A takes the place of A.

    Args:
        B: The right-hand sides: shape (..., n, k).

    Shapes: `LU` is (..., n, n), `pivots` (..., n), `B` (..., n, k), or (..., k, n) with ``left=False``; batches broadcast.
    Dtypes: floating and complex, the same for `LU` and `B`.
    Raises: ShapeError for other shapes, DTypeError for other dtypes, RuntimeError for pivots out of range.

    >>> import plait_core as pc
    >>> lu, pivots = pc.linalg.lu_factor(pc.tensor([[2.0, 0.0], [0.0, 4.0]]))
    >>> pc.linalg.lu_solve(lu, pivots, pc.ones(2, 1)).tolist()
    [[0.5], [0.25]]
    """,
    kernel="optional: without a kernel other operators compute it; in[0] and in[1], int32, are what `linalg_lu_factor` gave (numbers outside 1 to n are refused), in[2] is (..., n, k), or (..., k, n) without in[3] (left), of in[0]'s dtype; leading dimensions of in[0] and in[2] broadcast; the result is in C order.",
    dtypes="inexact",
    lapack=True,
)


@linalg_lu_solve_.shape
def _(LU, pivots, B, left):
    check_factors("LU", LU, pivots, B)
    check(
        (B.shape[-2] if left else B.shape[-1]) == LU.shape[-1],
        f"`B` of shape {B.shape} must have as many {'rows' if left else 'columns'} as `LU` of shape {LU.shape}",
    )
    batch = broadcast("LU", LU.shape[:-2], "B", B.shape[:-2])
    return result(batch + B.shape[-2:], B.dtype)


@linalg_lu_solve_.cost
def _(LU, result):
    return 2 * LU.shape[-1] * numel(result)


@linalg_lu_solve_.decompose
def _(LU, pivots, B, left, adjoint):
    P, L, U = op.lu_unpack(LU, pivots)
    if left and not adjoint:
        inner = op.linalg_solve_triangular(
            L, op.transpose(P, -2, -1) @ B, upper=False, unitriangular=True
        )
        return op.linalg_solve_triangular(U, inner, upper=True)
    if not left and not adjoint:
        first = op.linalg_solve_triangular(U, B, upper=True, left=False)
        inner = op.linalg_solve_triangular(L, first, upper=False, left=False, unitriangular=True)
        return inner @ op.transpose(P, -2, -1)
    lh = conjugate(op.transpose(L, -2, -1))
    uh = conjugate(op.transpose(U, -2, -1))
    if left:
        first = op.linalg_solve_triangular(uh, B, upper=False)
        return P @ op.linalg_solve_triangular(lh, first, upper=True, unitriangular=True)
    inner = op.linalg_solve_triangular(lh, B @ P, upper=True, left=False, unitriangular=True)
    return op.linalg_solve_triangular(uh, inner, upper=False, left=False)


lu_solve = Composite(
    "lu_solve(Tensor self|b, Tensor LU_data, Tensor LU_pivots) -> Tensor",
    doc="""
    `linalg.lu_solve` with the right-hand sides as first argument.

    >>> import plait_core as pc
    >>> pc.lu_solve(pc.ones(1, 1), *pc.linalg.lu_factor(pc.tensor([[4.0]]))).item()
    0.25
    """,
    dtypes="inexact",
    variants="function method",
)


@lu_solve.decompose
def _(self, LU_data, LU_pivots):
    return op.linalg_lu_solve(LU_data, LU_pivots, self)
