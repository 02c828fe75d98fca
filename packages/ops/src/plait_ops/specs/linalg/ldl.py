"""Factors of a symmetric or Hermitian matrix that need not be positive definite, and solutions from
them.
"""

from plait_ops.linear_words import require_matrix, require_square
from plait_ops.spec import Operator
from plait_ops.words import broadcast, check, int32, numel, part, require_same, result


def _factor(schema, results, example):
    return Operator(
        schema,
        doc=f"""
        The factors ``A = L D L^T`` (``L D L^H`` with `hermitian`) of a symmetric matrix, with the pivoting of Bunch and
        Kaufman, stored in one matrix. D has blocks of size 1 and 2 and lies on the diagonal and directly below it; below D
        lies L without its unit diagonal. Only the lower triangle of `A` is read.

        Shapes: `A` is (..., n, n), `LD` too; `pivots` is (..., n), int32, as LAPACK's `sytrf` gives them{results}.
        Dtypes: floating and complex; `hermitian` changes the result only for complex dtypes. There is no gradient.
        Raises: ShapeError if `A` is not square, DTypeError for integers.

        >>> import plait_core as pc
        >>> {example}
        """,
        kernel="in[0] is (..., n, n) in any strides, its lower triangle is read; results are in C order, zero above the diagonal of out[0]; out[1] is int32 with LAPACK's pivots, from 1, negative in pairs for blocks of two; of `linalg_ldl_factor_ex`, out[2] is int32, 0 or the place of a zero on the diagonal, from 1, which is an error only if in[2].",
        dtypes="inexact",
        lapack=True,
    )


linalg_ldl_factor = _factor(
    "linalg_ldl_factor(Tensor A, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
    "",
    "pc.linalg.ldl_factor(pc.tensor([[2.0, 1.0], [1.0, 3.0]])).LD.tolist()\n"
    "        [[2.0, 0.0], [0.5, 2.5]]",
)
linalg_ldl_factor.batch("matrices")
linalg_ldl_factor_ex = _factor(
    "linalg_ldl_factor_ex(Tensor A, *, bool hermitian=False, bool check_errors=False)"
    " -> (Tensor LD, Tensor pivots, Tensor info)",
    "; `info` is (...), int32: the first zero on the diagonal of D, counted from 1, or 0",
    "pc.linalg.ldl_factor_ex(pc.zeros(2, 2)).info.item()\n        1",
)
linalg_ldl_factor_ex.batch("matrices")


@linalg_ldl_factor.shape
def _(A):
    require_square("A", A)
    return result(A.shape, A.dtype), result(A.shape[:-1], int32)


@linalg_ldl_factor_ex.shape
def _(A):
    require_square("A", A)
    return result(A.shape, A.dtype), result(A.shape[:-1], int32), result(A.shape[:-2], int32)


@linalg_ldl_factor.cost
@linalg_ldl_factor_ex.cost
def _(A):
    return numel(A) * A.shape[-1] // 3


linalg_ldl_solve = Operator(
    "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
    doc="""
    Solve ``A X = B`` with the factors of `linalg.ldl_factor`. There is no gradient.

    Args:
        B: The right-hand sides: shape (..., n, k).

    Shapes: `LD` is (..., n, n), `pivots` (..., n), `B` (..., n, k); batches broadcast.
    Dtypes: floating and complex, the same for `LD` and `B`; `pivots` is int32.
    Raises: ShapeError for other shapes, DTypeError for other dtypes, RuntimeError for pivots out of range.

    >>> import plait_core as pc
    >>> ld, pivots = pc.linalg.ldl_factor(pc.tensor([[2.0, 0.0], [0.0, 4.0]]))
    >>> pc.linalg.ldl_solve(ld, pivots, pc.ones(2, 1)).tolist()
    [[0.5], [0.25]]
    """,
    kernel="in[0] and in[1], int32, are the results of `linalg_ldl_factor` (a kernel must check the pivots: numbers out of range are an error), in[2] is (..., n, k) of in[0]'s dtype; any strides; leading dimensions of in[0] and in[2] broadcast; the result is in C order.",
    dtypes="inexact",
    lapack=True,
)


@part
def check_factors(name, factors, pivots, B):
    require_square(name, factors)
    require_matrix("B", B)
    require_same(name, factors, "B", B)
    check(pivots.dtype == int32, f"`pivots` must be int32; got {pivots.dtype}", "DTypeError")
    check(
        pivots.shape == factors.shape[:-1],
        f"`pivots` of shape {pivots.shape} must have the shape {factors.shape[:-1]} for `{name}` of shape {factors.shape}",
    )


@linalg_ldl_solve.shape
def _(LD, pivots, B):
    check_factors("LD", LD, pivots, B)
    check(
        B.shape[-2] == LD.shape[-1],
        f"`B` of shape {B.shape} must have as many rows as `LD` of shape {LD.shape}",
    )
    batch = broadcast("LD", LD.shape[:-2], "B", B.shape[:-2])
    return result(batch + B.shape[-2:], B.dtype)


@linalg_ldl_solve.cost
def _(LD, result):
    return 2 * LD.shape[-1] * numel(result)
