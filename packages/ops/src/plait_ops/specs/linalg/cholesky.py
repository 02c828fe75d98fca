"""Cholesky factors of positive definite matrices, and triangular systems."""

from plait_ops import calls as op
from plait_ops.linear_words import require_matrix, require_square
from plait_ops.spec import Composite, Operator
from plait_ops.specs.linalg.systems import batch_index, failed_matrix
from plait_ops.words import (
    broadcast,
    check,
    conjugate,
    int32,
    numel,
    require_same,
    result,
    sum_to,
    to_dtype,
    wide_dtype,
)

_DEFINITE = (
    "RuntimeError if a matrix is not positive definite (the text names its place in the batch)"
)


# ---- factors -------------------------------------------------------------------------------------
linalg_cholesky_ = Operator(
    "linalg_cholesky(Tensor A, *, bool upper=False) -> Tensor",
    doc=f"""
    The lower triangular L with a positive diagonal for which ``A = L L^H``; with `upper`, L^H is returned. Only one
    triangle of `A` is read: the upper one with `upper`, else the lower one.

    Shapes: `A` is (..., n, n), symmetric or Hermitian positive definite; the result has the same shape. Dtypes: floating
    and complex. The gradient is that of a symmetric `A`.
    Raises: ShapeError if a matrix is not square, DTypeError for integers, {_DEFINITE}.

    >>> import plait_core as pc
    >>> pc.linalg.cholesky(pc.tensor([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """,
    kernel="in[0] is (..., n, n) in any strides; results are in C order; reads one triangle of in[0], in[1] says which, and writes zeros to the other one of the result; a matrix that is not positive definite is an error that names it.",
    dtypes="inexact",
    lapack=True,
)
linalg_cholesky_.batch("matrices")
linalg_cholesky_ex = Operator(
    "linalg_cholesky_ex(Tensor A, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
    doc="""
    `linalg.cholesky` that reports failure in `info` instead of raising: 0 where there is a factor, else the order of the
    first leading minor that is not positive.

    Args:
        A: A Hermitian positive definite matrix (symmetric if real), or a batch of them: shape (..., n, n).

    Shapes: `A` is (..., n, n), `L` too, `info` is (...), int32. Dtypes: floating and complex. Raises: ShapeError if a
    matrix is not square, DTypeError for integers; with `check_errors` also what `linalg.cholesky` raises.

    >>> import plait_core as pc
    >>> pc.linalg.cholesky_ex(pc.tensor([[1.0, 2.0], [2.0, 1.0]])).info.item()
    2
    """,
    kernel="as for `linalg_cholesky`; out[1] is int32, 0 or the order of the leading minor that is not positive; an error only if in[2].",
    dtypes="inexact",
    lapack=True,
)
linalg_cholesky_ex.batch("matrices")
cholesky = Operator(
    "cholesky(Tensor self, bool upper=False) -> Tensor",
    doc=f"""
    The triangular factors of positive definite matrices: `linalg.cholesky`.

    Shapes: `self` is (..., n, n), and so is the result. Dtypes: floating and complex. The gradient is that of a symmetric
    `self`.
    Raises: ShapeError if a matrix is not square, DTypeError for integers, {_DEFINITE}.

    >>> import plait_core as pc
    >>> pc.tensor([[4.0]]).cholesky().item()
    2.0
    """,
    kernel="as for `linalg_cholesky`.",
    dtypes="inexact",
    variants="function method",
    lapack=True,
)
cholesky.batch("matrices")


@linalg_cholesky_.shape
def _(A):
    require_square("A", A)
    return result(A.shape, A.dtype)


@linalg_cholesky_ex.shape
def _(A):
    require_square("A", A)
    return result(A.shape, A.dtype), result(A.shape[:-2], int32)


@linalg_cholesky_.cost
@linalg_cholesky_ex.cost
def _(A):
    return numel(A) * A.shape[-1] // 3


@cholesky.shape
def _(self):
    require_square("self", self)
    return result(self.shape, self.dtype)


@cholesky.cost
def _(self):
    return numel(self) * self.shape[-1] // 3


cholesky_backward = Composite(
    "cholesky_backward(Tensor grad, Tensor L, bool upper) -> Tensor",
    doc="The gradient of `linalg.cholesky` from its result: ``L^-H phi(L^H grad) L^-1``, where ``phi`` mirrors the lower triangle and takes half of it.",
    internal=True,
    dtypes="inexact",
)


@cholesky_backward.decompose
def _(grad, L, upper):
    low = conjugate(op.transpose(L, -2, -1)) if upper else L
    g = conjugate(op.transpose(grad, -2, -1)) if upper else grad
    high = conjugate(op.transpose(low, -2, -1))
    product = high @ g
    mirrored = (op.tril(product) + conjugate(op.transpose(op.tril(product, -1), -2, -1))) * 0.5
    left = op.linalg_solve_triangular(high, mirrored, upper=True)
    return op.linalg_solve_triangular(low, left, upper=False, left=False)


@linalg_cholesky_.vjp("A")
@cholesky.vjp("self")
def _(g, result, upper):
    return cholesky_backward(g, result, upper)


@linalg_cholesky_ex.vjp("A")
def _(g0, result0, upper):
    return cholesky_backward(g0, result0, upper)


@linalg_cholesky_.decompose
def _(A, upper):
    L, _info = linalg_cholesky_ex(A, upper=upper, check_errors=True)
    return L


@cholesky.decompose
def _(self, upper):
    L, info = linalg_cholesky_ex(self, upper=upper)
    position = failed_matrix(info)
    if position >= 0:
        place = batch_index(position, info.shape)
        check(
            info.ndim > 0,
            "`self` is not positive definite; add a multiple of the identity, or use linalg.eigh or linalg.lu_factor",
            "LinAlgError",
        )
        check(
            False,
            f"`self` at batch index {tuple(place)} is not positive definite; add a multiple of the identity, or use linalg.eigh or linalg.lu_factor",
            "LinAlgError",
        )
    return L


# ---- what factors solve --------------------------------------------------------------------------
cholesky_solve = Operator(
    "cholesky_solve(Tensor self|B, Tensor L|input2, bool upper=False) -> Tensor",
    doc="""
    The X of ``A X = self``, computed from a Cholesky factor of A: ``A = L L^H``, or ``L^H L`` with `upper`.

    Shapes: `self` is (..., n, k), `L` (..., n, n); batches broadcast. Dtypes: floating and complex, the same for both.
    Raises: ShapeError for other shapes, DTypeError if dtypes differ.

    >>> import plait_core as pc
    >>> pc.cholesky_solve(pc.ones(1, 1), pc.tensor([[2.0]])).item()
    0.25
    """,
    kernel="in[0] is (..., n, k), in[1] (..., n, n), of one dtype, any strides; their leading dimensions broadcast to those of the result, which is in C order; reads the triangle of in[1] that in[2] names.",
    dtypes="inexact",
    variants="function method",
    lapack=True,
)
cholesky_solve.batch("code")


@cholesky_solve.shape
def _(self, L):
    require_square("L", L)
    require_matrix("self", self)
    require_same("self", self, "L", L)
    check(
        self.shape[-2] == L.shape[-1],
        f"`self` of shape {self.shape} must have as many rows as `L` of shape {L.shape}",
    )
    batch = broadcast("self", self.shape[:-2], "L", L.shape[:-2])
    return result(batch + self.shape[-2:], self.dtype)


@cholesky_solve.cost
def _(L, result):
    return 2 * L.shape[-1] * numel(result)


@cholesky_solve.vjp("self", "L", meta=["self"])
def _(g, self, L, result, upper):
    back = cholesky_solve(g, L, upper)
    outer = back @ conjugate(op.transpose(result, -2, -1))
    both = outer + conjugate(op.transpose(outer, -2, -1))
    gL = -op.triu(op.triu(L) @ both) if upper else -op.tril(both @ op.tril(L))
    return sum_to(back, self.shape), sum_to(gL, L.shape)


@cholesky_solve.decompose
def _(self, L, upper):
    wide = wide_dtype(L.dtype)
    own = to_dtype(L, wide)
    other = conjugate(op.transpose(own, -2, -1))
    low = other if upper else own
    high = own if upper else other
    inner = op.linalg_solve_triangular(low, to_dtype(self, wide), upper=False)
    return to_dtype(op.linalg_solve_triangular(high, inner, upper=True), self.dtype)


cholesky_inverse = Operator(
    "cholesky_inverse(Tensor self|L, bool upper=False) -> Tensor",
    doc="""
    The inverse of ``A = L L^H`` (``L^H L`` with `upper`) from its Cholesky factor `self`.

    Shapes: `self` is (..., n, n), and so is the result. Dtypes: floating and complex.
    Raises: ShapeError if a matrix is not square, DTypeError for integers, RuntimeError for a 0 on the diagonal.

    >>> import plait_core as pc
    >>> pc.cholesky_inverse(pc.tensor([[2.0]])).item()
    0.25
    """,
    kernel="in[0] is (..., n, n) in any strides; results are in C order; reads the triangle of in[0] that in[1] names and writes the whole inverse.",
    dtypes="inexact",
    variants="function method",
    lapack=True,
)
cholesky_inverse.batch("matrices")


@cholesky_inverse.shape
def _(self):
    require_square("self", self)
    return result(self.shape, self.dtype)


@cholesky_inverse.cost
def _(self):
    return 2 * numel(self) * self.shape[-1] // 3


@cholesky_inverse.vjp("self")
def _(g, self, result, upper):
    both = result @ (g + conjugate(op.transpose(g, -2, -1))) @ result
    return -op.triu(op.triu(self) @ both) if upper else -op.tril(both @ op.tril(self))


# ---- triangular systems --------------------------------------------------------------------------
linalg_solve_triangular_ = Operator(
    "linalg_solve_triangular(Tensor A, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
    doc="""
    The X of ``A X = B``, or of ``X A = B`` with ``left=False``, for a triangular `A`. The other triangle is not read. With
    `unitriangular` the diagonal is not read either, and counts as 1. A 0 on the diagonal gives infinities.

    Args:
        A: A triangular matrix, or a batch of them: shape (..., n, n).

    Shapes: `A` is (..., n, n), `B` (..., n, k), or (..., k, n) with ``left=False``; batches broadcast.
    Dtypes: floating and complex, the same for both.
    Raises: ShapeError for other shapes, DTypeError if dtypes differ.

    >>> import plait_core as pc
    >>> a = pc.tensor([[2.0, 0.0], [1.0, 1.0]])
    >>> pc.linalg.solve_triangular(a, pc.tensor([[2.0], [3.0]]), upper=False).tolist()
    [[1.0], [2.0]]
    """,
    kernel="in[0] is (..., n, n), in[1] (..., n, k), or (..., k, n) without in[3] (left), of one dtype, any strides; leading dimensions broadcast to those of the result, which is in C order; reads the triangle that in[2] (upper) names, and no diagonal if in[4] (unitriangular).",
    dtypes="inexact",
    lapack=True,
)
linalg_solve_triangular_.batch("code")


@linalg_solve_triangular_.shape
def _(A, B, left):
    require_square("A", A)
    require_matrix("B", B)
    require_same("A", A, "B", B)
    check(
        (B.shape[-2] if left else B.shape[-1]) == A.shape[-1],
        f"`B` of shape {B.shape} must have as many {'rows' if left else 'columns'} as `A` of shape {A.shape}",
    )
    return result(broadcast("A", A.shape[:-2], "B", B.shape[:-2]) + B.shape[-2:], A.dtype)


@linalg_solve_triangular_.cost
def _(A, result):
    return A.shape[-1] * numel(result)


@linalg_solve_triangular_.vjp("A", "B")
def _(g, A, B, result, upper, left, unitriangular):
    back = op.linalg_solve_triangular(
        conjugate(op.transpose(A, -2, -1)),
        g,
        upper=not upper,
        left=left,
        unitriangular=unitriangular,
    )
    x = conjugate(op.transpose(result, -2, -1))
    full = back @ x if left else x @ back
    edge = 1 if unitriangular else 0
    gA = -op.triu(full, edge) if upper else -op.tril(full, -edge)
    return sum_to(gA, A.shape), sum_to(back, B.shape)


triangular_solve = Composite(
    "triangular_solve(Tensor self|b, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
    doc="""
    `linalg.solve_triangular` with `self` first, the upper triangle by default, and a copy of `A` as second result.

    Args:
        A: A triangular matrix, or a batch of them: shape (..., n, n).

    >>> import plait_core as pc
    >>> pc.triangular_solve(pc.ones(1, 1), pc.tensor([[4.0]])).solution.item()
    0.25
    """,
    dtypes="inexact",
    variants="function method",
)


@triangular_solve.decompose
def _(self, A, upper, transpose, unitriangular):
    if transpose:
        return (
            op.linalg_solve_triangular(
                op.swapaxes(A, -2, -1), self, upper=not upper, unitriangular=unitriangular
            ),
            op.clone(A),
        )
    return op.linalg_solve_triangular(A, self, upper=upper, unitriangular=unitriangular), op.clone(
        A
    )
