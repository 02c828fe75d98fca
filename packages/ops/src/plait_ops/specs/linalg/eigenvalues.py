"""Eigenvalues and eigenvectors."""

from plait_ops import calls as op
from plait_ops.linear_words import require_square
from plait_ops.spec import Composite, Operator
from plait_ops.words import (
    check,
    complex_dtype,
    conjugate,
    is_recorded,
    is_unused,
    numel,
    part,
    real_dtype,
    result,
)


@part
def quotient(numerator, denominator):
    """Return the quotient, and 0 for 0 / 0: equal eigenvalues do not matter where no gradient
    depends on their vectors.
    """
    both = op.logical_and(op.eq(numerator, 0), op.eq(denominator, 0))
    return op.where(both, 0.0, numerator / op.where(both, 1.0, denominator))


_SYMMETRIC = """
    Shapes: `A` is (..., n, n), symmetric or Hermitian: only the triangle that `UPLO` names ("L" or "U") is read.
    `eigenvalues` is (..., n), real and ascending{}. Dtypes: floating and complex.
"""
_ERRORS = """Raises: ShapeError if a matrix is not square, DTypeError for integers, ValueError for another `UPLO`,
    RuntimeError for matrices with infinities or NaN."""

linalg_eigh_ = Operator(
    'linalg_eigh(Tensor A, str UPLO="L") -> (Tensor eigenvalues, Tensor eigenvectors)',
    doc=f"""
    The eigenvalues and orthonormal eigenvectors of symmetric (Hermitian) matrices: ``A = V diag(w) V^H``.
    {_SYMMETRIC.format(", `eigenvectors` (..., n, n), in columns; their signs (phases) are arbitrary")}    The gradient is that of a symmetric `A`, whose eigenvalues must be distinct if it depends on
    the vectors.
    {_ERRORS}

    >>> import plait_core as pc
    >>> pc.linalg.eigh(pc.tensor([[2.0, 1.0], [1.0, 2.0]])).eigenvalues.round().tolist()
    [1.0, 3.0]
    """,
    kernel="in[0] is (..., n, n) in any strides; results are in C order; reads the triangle that in[1] names, in upper or lower case; out[0] is real, in ascending order, out[1] holds vectors in columns, of any sign; an error names the matrix that does not converge or that holds nan or infinities.",
    dtypes="inexact",
    lapack=True,
)
linalg_eigh_.batch("matrices")
linalg_eigvalsh = Composite(
    'linalg_eigvalsh(Tensor A, str UPLO="L") -> Tensor',
    doc=f"""
    The eigenvalues of symmetric (Hermitian) matrices.
    {_SYMMETRIC.format("")}    The gradient is that of a symmetric `A`.
    {_ERRORS}

    >>> import plait_core as pc
    >>> pc.linalg.eigvalsh(pc.tensor([[2.0, 1.0], [1.0, 2.0]])).round().tolist()
    [1.0, 3.0]
    """,
    dtypes="inexact",
)
symmetric_eigenvalues = Operator(
    "symmetric_eigenvalues(Tensor A, str UPLO, bool vectors) -> (Tensor eigenvalues, Tensor eigenvectors)",
    doc="The eigenvalues; the vectors, which the derivative reads, or without `vectors` an empty tensor.",
    kernel="optional: without a kernel other operators compute it; as for `linalg_eigh`; out[1] is empty unless in[2].",
    internal=True,
    dtypes="inexact",
    auxiliary=(1,),
    lapack=True,
)
symmetric_eigenvalues.batch("code")


@linalg_eigh_.shape
def _(A, UPLO):
    require_square("A", A)
    check(UPLO in ("L", "U", "l", "u"), f'`UPLO` must be "L" or "U"; got "{UPLO}"', "ValueError")
    return result(A.shape[:-1], real_dtype(A.dtype)), result(A.shape, A.dtype)


@linalg_eigh_.cost
def _(A):
    # the counts of eigenvalues are approximations (Golub and Van Loan)
    return 9 * numel(A) * A.shape[-1]


@linalg_eigvalsh.decompose
def _(A, UPLO):
    values, _vectors = op.symmetric_eigenvalues(A, UPLO, is_recorded(A))
    return values


@symmetric_eigenvalues.shape
def _(A, UPLO, vectors):
    require_square("A", A)
    check(UPLO in ("L", "U", "l", "u"), f'`UPLO` must be "L" or "U"; got "{UPLO}"', "ValueError")
    return (
        result(A.shape[:-1], real_dtype(A.dtype)),
        result(A.shape if vectors else [0], A.dtype),
    )


@symmetric_eigenvalues.cost
def _(A):
    return 4 * numel(A) * A.shape[-1] // 3


@linalg_eigh_.vjp("A")
def _(g0, g1, result0, result1):
    adjoint = conjugate(op.transpose(result1, -2, -1))
    if is_unused(g1):
        return (result1 * op.unsqueeze(g0, -2)) @ adjoint
    n = result0.shape[-1]
    one = op.eye(n, dtype=result0.dtype, device=result0.device)
    gaps = op.unsqueeze(result0, -2) - op.unsqueeze(result0, -1) + one
    # eigenvectors stay orthonormal: they turn, and a small turn is skew-Hermitian
    product = adjoint @ g1
    turn = (product - conjugate(op.transpose(product, -2, -1))) * 0.5
    inner = quotient(turn, gaps) * (1 - one)
    if not is_unused(g0):
        inner = inner + op.unsqueeze(g0, -1) * one
    return result1 @ inner @ adjoint


@symmetric_eigenvalues.vjp("A")
def _(g0, A, result1, UPLO, vectors):
    v = result1
    if not vectors or is_recorded(A):  # derivatives of the derivative go through the vectors
        _values, v = op.linalg_eigh(A, UPLO)
    return (v * op.unsqueeze(g0, -2)) @ conjugate(op.transpose(v, -2, -1))


_GENERAL = """
    Shapes: `A` is (..., n, n), `eigenvalues` (..., n){}. Dtypes: floating and complex; the results are complex.
    Raises: ShapeError if a matrix is not square, DTypeError for integers, RuntimeError for matrices with infinities or NaN.
"""

linalg_eig = Operator(
    "linalg_eig(Tensor A) -> (Tensor eigenvalues, Tensor eigenvectors)",
    doc=f"""
    The eigenvalues and eigenvectors of square matrices: ``A v = w v``, in no particular order.
    {_GENERAL.format(", `eigenvectors` (..., n, n), in columns of length 1")}
    >>> import plait_core as pc
    >>> pc.linalg.eig(pc.tensor([[0.0, -1.0], [1.0, 0.0]])).eigenvalues.tolist()
    [1j, -1j]
    """,
    kernel="in[0] is (..., n, n) in any strides; results are in C order and complex; eigenvalues in any order, vectors in columns, of length 1; errors as for `linalg_eigh`.",
    dtypes="inexact",
    lapack=True,
)
linalg_eig.batch("matrices")
linalg_eigvals = Operator(
    "linalg_eigvals(Tensor A) -> Tensor",
    doc=f"""
    The eigenvalues of square matrices.
    {_GENERAL.format("")}
    >>> import plait_core as pc
    >>> pc.linalg.eigvals(pc.tensor([[0.0, -1.0], [1.0, 0.0]])).tolist()
    [1j, -1j]
    """,
    kernel="as for `linalg_eig`, without vectors.",
    dtypes="inexact",
    lapack=True,
)
linalg_eigvals.batch("matrices")


@linalg_eig.vjp("A")
def _(g0, g1, result0, result1):
    adjoint = op.conj(op.transpose(result1, -2, -1))
    if is_unused(g1):
        return op.linalg_solve(adjoint, op.unsqueeze(g0, -1) * adjoint)
    # the part of g1 along a vector would change its length, which is 1
    n = result0.shape[-1]
    one = op.eye(n, dtype=g1.dtype, device=g1.device)
    product = adjoint @ g1
    lengths = op.real(op.diagonal(product, 0, -2, -1))
    turned = product - (adjoint @ result1) * op.unsqueeze(lengths, -2)
    gaps = op.conj(op.unsqueeze(result0, -2) - op.unsqueeze(result0, -1)) + one
    inner = quotient(turned, gaps) * (1 - one)
    if not is_unused(g0):
        inner = inner + op.unsqueeze(g0, -1) * one
    return op.linalg_solve(adjoint, inner @ adjoint)


@linalg_eigvals.vjp("A")
def _(g, A):
    _values, vectors = linalg_eig(A)
    adjoint = op.conj(op.transpose(vectors, -2, -1))
    return op.linalg_solve(adjoint, op.unsqueeze(g, -1) * adjoint)


@linalg_eig.shape
def _(A):
    require_square("A", A)
    dtype = complex_dtype(A.dtype)
    return result(A.shape[:-1], dtype), result(A.shape, dtype)


@linalg_eig.cost
def _(A):
    return 25 * numel(A) * A.shape[-1]


@linalg_eigvals.shape
def _(A):
    require_square("A", A)
    return result(A.shape[:-1], complex_dtype(A.dtype))


@linalg_eigvals.cost
def _(A):
    return 10 * numel(A) * A.shape[-1]


@symmetric_eigenvalues.decompose
def _(A, UPLO, vectors):
    values, v = linalg_eigh_(A, UPLO)
    if vectors:
        return values, v
    return values, op.zeros([0], dtype=A.dtype, device=A.device)


@linalg_eigvals.decompose
def _(A):
    values, _vectors = linalg_eig(A)
    return values
