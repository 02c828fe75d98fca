"""Systems of linear equations, and inverses of square matrices."""

from plait_ops import calls as op
from plait_ops.costs import lu, matrices
from plait_ops.linear_words import require_square
from plait_ops.spec import Composite, Operator
from plait_ops.specs.linalg.ldl import check_factors
from plait_ops.words import (
    broadcast,
    check,
    conjugate,
    contiguous_strides,
    has_values,
    int32,
    int64,
    is_recorded,
    item,
    numel,
    part,
    require_same,
    result,
    result_as,
    sum_to,
    to_dtype,
    wide_dtype,
)

_SINGULAR = "RuntimeError if a matrix is singular (the text names its place in the batch)"


# ---- inverses ------------------------------------------------------------------------------------
linalg_inv_ = Operator(
    "linalg_inv(Tensor A) -> Tensor",
    doc=f"""
    The inverse of every matrix of a batch. To solve equations, `linalg.solve` is faster and more accurate.

    Shapes: `A` is (..., n, n), and so is the result. Dtypes: floating and complex.
    Raises: ShapeError if a matrix is not square, DTypeError for integers, {_SINGULAR}.

    >>> import plait_core as pc
    >>> pc.linalg.inv(pc.tensor([[2.0, 1.0], [0.0, 4.0]])).tolist()
    [[0.5, -0.125], [0.0, 0.25]]
    """,
    kernel="in[0] is (..., n, n) in any strides; results are in C order, n may be 0; a singular matrix is an error that names it.",
    dtypes="inexact",
    lapack=True,
)
linalg_inv_.batch("matrices")
linalg_inv_ex = Operator(
    "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
    doc="""
    `linalg.inv` that reports failure in `info` instead of raising: 0 where the inverse exists, else the column, counted
    from 1, whose pivot is 0.

    Args:
        A: A square matrix, or a batch of them: shape (..., n, n).

    Shapes: `A` is (..., n, n), `inverse` too, `info` is (...), int32. Dtypes: floating and complex.
    Raises: ShapeError if a matrix is not square, DTypeError for integers; with `check_errors` also what `linalg.inv`
    raises.

    >>> import plait_core as pc
    >>> pc.linalg.inv_ex(pc.zeros(2, 2)).info.item()
    1
    """,
    kernel="as for `linalg_inv`; out[1] is int32, 0 or the column of the pivot that is 0, from 1; an error only if in[1].",
    dtypes="inexact",
    lapack=True,
)
linalg_inv_ex.batch("matrices")


@linalg_inv_.shape
def _(A):
    require_square("A", A)
    return result(A.shape, A.dtype)


@linalg_inv_ex.shape
def _(A):
    require_square("A", A)
    return result(A.shape, A.dtype), result(A.shape[:-2], int32)


@linalg_inv_.cost
@linalg_inv_ex.cost
def _(A):
    return 2 * numel(A) * A.shape[-1]


@linalg_inv_.vjp("A")
def _(g, result):
    back = conjugate(op.transpose(result, -2, -1))
    return -(back @ g @ back)


@linalg_inv_ex.vjp("A")
def _(g0, result0):
    back = conjugate(op.transpose(result0, -2, -1))
    return -(back @ g0 @ back)


inverse = Composite(
    "inverse(Tensor self) -> Tensor",
    doc="""
    The inverses of matrices: `linalg.inv`.

    >>> import plait_core as pc
    >>> pc.tensor([[4.0]]).inverse().item()
    0.25
    """,
    dtypes="inexact",
    variants="function method",
)


@inverse.decompose
def _(self):
    return op.linalg_inv(self)


# ---- systems of equations ------------------------------------------------------------------------
_SOLVE = """
    Shapes: `A` is (..., n, n). `B` is a batch of matrices (..., n, k), or (..., k, n) with ``left=False``, and batches
    broadcast; or a vector (n,), or as many vectors as `A` has matrices, (..., n). The result has the shape of `B` with
    the broadcast batch. Dtypes: floating and complex, the same for both.
"""

linalg_solve_ = Composite(
    "linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
    doc=f"""
    The X of ``A X = B``, or of ``X A = B`` with ``left=False``.
    {_SOLVE}    Raises: ShapeError for other shapes, DTypeError if dtypes differ, {_SINGULAR}.

    >>> import plait_core as pc
    >>> pc.linalg.solve(pc.tensor([[2.0, 0.0], [0.0, 4.0]]), pc.tensor([1.0, 1.0])).tolist()
    [0.5, 0.25]
    """,
    dtypes="inexact",
)
linalg_solve_ex = Operator(
    "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)",
    doc=f"""
    `linalg.solve` that reports failure in `info` instead of raising: 0 where there is a solution, else the column, counted
    from 1, whose pivot is 0.
    {_SOLVE}    Raises: ShapeError for other shapes, DTypeError if dtypes differ; with
    `check_errors` also what `linalg.solve` raises.

    >>> import plait_core as pc
    >>> pc.linalg.solve_ex(pc.zeros(2, 2), pc.ones(2)).info.item()
    1
    """,
    kernel="in[0] is (..., n, n), in[1] (..., n, k), or (..., k, n) without in[2] (left), of one dtype, any strides; in[1] holds vectors if it is 1-d, or has one dimension less than in[0] and so does the result; leading dimensions broadcast to those of the result, which is in C order; out[1] is int32, one for each matrix, 0 or the column of the pivot that is 0, from 1; an error that names the matrix only if in[3].",
    dtypes="inexact",
    lapack=True,
)
linalg_solve_ex.batch("code")
regular_factors = Operator(
    "regular_factors(Tensor A) -> (Tensor LU, Tensor pivots)",
    doc="`linalg.lu_factor` of regular matrices: a singular one is an error. Both results are constants for derivatives.",
    kernel="optional: without a kernel other operators compute it; as for `linalg_lu_factor`, but each matrix of out[0] is in column order, and a singular matrix is an error that names it.",
    internal=True,
    dtypes="inexact",
    auxiliary=(0, 1),
    lapack=True,
)
regular_factors.batch("matrices")
solve_by_factors = Operator(
    "solve_by_factors(Tensor A, Tensor LU, Tensor pivots, Tensor B, bool left, bool adjoint) -> Tensor",
    doc="""
    `linalg.lu_solve` with what `regular_factors` gives for `A`; a derivative of any order goes through `A`, and solves with
    the same factors.
    """,
    kernel="optional: without a kernel other operators compute it; without in[0] the arguments and the result are those of `linalg_lu_solve`, and so is what a kernel must check; in[0] is not read.",
    internal=True,
    dtypes="inexact",
    lapack=True,
)
solve_by_factors.batch("code")


@part
def are_vectors(A, B):
    """Return whether `B` is one vector, or a vector for each matrix of `A`."""
    return B.ndim == 1 or (A.ndim == B.ndim + 1 and B.shape == A.shape[:-1])


@part
def _solve_batch(A, B, left):
    """Check the arguments of a solution; return the batch of the result."""
    require_square("A", A)
    require_same("A", A, "B", B)
    vector = are_vectors(A, B)
    check(left or not vector, "`left` must be True where `B` is a vector; got False", "ValueError")
    check(B.ndim >= 1, f"`B` must have at least 1 dimension; got shape {B.shape}")
    last = B.shape[-1] if vector or not left else B.shape[-2]
    check(
        last == A.shape[-1],
        f"`B` of shape {B.shape} must have as many {'rows' if left else 'columns'} as `A` of shape {A.shape}",
    )
    return broadcast("A", A.shape[:-2], "B", B.shape[:-1] if vector else B.shape[:-2])


@linalg_solve_ex.shape
def _(A, B, left):
    batch = _solve_batch(A, B, left)
    one = A.shape[-1:] if are_vectors(A, B) else B.shape[-2:]
    return result(batch + one, A.dtype), result(batch, int32)


@linalg_solve_ex.cost
def _(A, result0):
    n = A.shape[-1]
    return matrices(A) * lu(n, n) + 2 * n * numel(result0)


@linalg_solve_ex.vjp("A", "B")
def _(g0, A, B, result0, left):
    back = op.linalg_solve(conjugate(op.transpose(A, -2, -1)), g0, left=left)
    if are_vectors(A, B):
        outer = op.unsqueeze(back, -1) * op.unsqueeze(conjugate(result0), -2)
        return sum_to(-outer, A.shape), sum_to(back, B.shape)
    x = conjugate(op.transpose(result0, -2, -1))
    gA = back @ x if left else x @ back
    return sum_to(-gA, A.shape), sum_to(back, B.shape)


@part
def _columns_first(shape):
    """The strides of matrices whose columns lie one after the other."""
    strides = contiguous_strides(shape)
    strides[len(shape) - 1] = max(shape[len(shape) - 2], 1)
    strides[len(shape) - 2] = 1
    return strides


@regular_factors.shape
def _(A):
    require_square("A", A)
    return result_as(A.shape, A.dtype, _columns_first(A.shape)), result(A.shape[:-1], int32)


@regular_factors.cost
def _(A):
    return matrices(A) * lu(A.shape[-1], A.shape[-1])


@solve_by_factors.shape
def _(A, LU, pivots, B, left):
    check_factors("LU", LU, pivots, B)
    return result(_solve_batch(A, B, left) + B.shape[-2:], B.dtype)


@solve_by_factors.cost
def _(LU, result):
    return 2 * LU.shape[-1] * numel(result)


@solve_by_factors.vjp("A", "B")
def _(g, A, LU, pivots, B, result, left, adjoint):
    back = op.solve_by_factors(A, LU, pivots, g, left, not adjoint)
    # gA of X = B / A is -back X^H, or -X^H back; of A^H in place of A it is the adjoint of that
    first = result if adjoint else back
    second = conjugate(op.transpose(back if adjoint else result, -2, -1))
    gA = first @ second if left else second @ first
    return sum_to(-gA, A.shape), sum_to(back, B.shape)


@part
def failed_matrix(info):
    """The position in a batch of the first matrix that has no result, or -1."""
    if numel(info.shape) == 0 or not has_values(info):
        return -1
    if item(op.count_nonzero(info)) == 0:
        return -1
    return item(op.argmax(op.ne(op.reshape(info, [-1]), 0), 0))


@part
def batch_index(position, shape):
    """The index of a position in C order."""
    index = [0] * len(shape)
    rest = position
    for i in reversed(range(len(shape))):
        index[i] = rest % shape[i]
        rest = rest // shape[i]
    return index


@part
def _refuse_singular(info):
    position = failed_matrix(info)
    if position >= 0:
        column = item(to_dtype(op.select(op.reshape(info, [-1]), 0, position), int64))
        place = batch_index(position, info.shape)
        check(
            info.ndim > 0,
            f"`A` is singular: the pivot in column {column} is 0, so it has no inverse; solve in the least squares sense with linalg.lstsq or linalg.pinv",
            "LinAlgError",
        )
        check(
            False,
            f"`A` at batch index {tuple(place)} is singular: the pivot in column {column} is 0, so it has no inverse; solve in the least squares sense with linalg.lstsq or linalg.pinv",
            "LinAlgError",
        )


@linalg_solve_.decompose
def _(A, B, left):
    recorded = is_recorded(A) or is_recorded(B)
    _solve_batch(A, B, left)
    if not recorded or numel(B.shape) == 0 or A.dtype != wide_dtype(A.dtype):
        X, _info = linalg_solve_ex(A, B, left=left, check_errors=True)
        return X
    vectors = are_vectors(A, B)
    LU, pivots = op.regular_factors(op.detach(A))
    columns = op.unsqueeze(B, -1) if vectors else B
    X = op.solve_by_factors(A, LU, pivots, columns, left, False)
    return op.squeeze_dim(X, [-1]) if vectors else X


@regular_factors.decompose
def _(A):
    LU, pivots, info = op.linalg_lu_factor_ex(A)
    _refuse_singular(info)
    turned = op.contiguous(op.transpose(LU, -2, -1))
    return op.transpose(turned, -2, -1), pivots


@solve_by_factors.decompose
def _(LU, pivots, B, left, adjoint):
    return op.linalg_lu_solve(LU, pivots, B, left=left, adjoint=adjoint)


@linalg_solve_ex.decompose
def _(A, B, left, check_errors):
    wide = wide_dtype(A.dtype)
    LU, pivots, info = op.linalg_lu_factor_ex(to_dtype(A, wide))
    if check_errors:
        _refuse_singular(info)
    vectors = are_vectors(A, B)
    columns = op.unsqueeze(B, -1) if vectors else B
    X = op.linalg_lu_solve(LU, pivots, to_dtype(columns, wide), left=left)
    X = to_dtype(X, A.dtype)
    each = op.expand(info, X.shape[:-2])
    return op.squeeze_dim(X, [-1]) if vectors else X, op.clone(each)


@linalg_inv_.decompose
def _(A):
    inverse_, _info = linalg_inv_ex(A, check_errors=True)
    return inverse_


@linalg_inv_ex.decompose
def _(A, check_errors):
    # expanded, as one matrix may have the shape of a vector for each matrix of `A`
    one = op.expand(op.eye(A.shape[-1], dtype=A.dtype, device=A.device), A.shape)
    return linalg_solve_ex(A, one, check_errors=check_errors)
