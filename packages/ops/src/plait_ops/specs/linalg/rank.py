"""Ranks and pseudo-inverses, by singular values."""

from plait_ops import calls as op
from plait_ops.linear_words import require_matrix, require_square
from plait_ops.spec import Composite, Operator
from plait_ops.words import conjugate, float64, int64, is_complex, is_tensor, numel, result

rank_tolerance_ = Composite(
    "rank_tolerance(Tensor S, Tensor|Scalar? atol, Tensor|Scalar? rtol, int size) -> Tensor",
    doc="""
    The magnitude, of shape (..., 1), up to which singular values `S` count as 0: ``max(atol, rtol * S.max())``. By default
    rtol is the larger side of the matrix times the distance from 1 to the next number of the dtype, or 0 if `atol` is
    given.
    """,
    internal=True,
    dtypes="floating",
)


@rank_tolerance_.decompose
def _(S, atol, rtol, size):
    eps = 2.220446049250313e-16 if S.dtype == float64 else 1.1920928955078125e-07
    top = op.amax(S, [-1], True)
    cut = top * (eps * size if atol is None else 0.0)
    if rtol is not None:
        if is_tensor(rtol):
            cut = top * op.unsqueeze(rtol, -1)
        else:
            cut = top * rtol
    if atol is not None:
        if is_tensor(atol):
            cut = op.clamp_min(cut, op.unsqueeze(atol, -1))
        else:
            cut = op.clamp_min(cut, atol)
    return cut


linalg_matrix_rank_ = Composite(
    "linalg_matrix_rank(Tensor A, *, Tensor|Scalar? atol=None, Tensor|Scalar? rtol=None, bool hermitian=False) -> Tensor",
    doc="""
    How many singular values of `A` are larger than ``max(atol, rtol * largest)``. By default `atol` is 0 and `rtol` is the
    larger side of the matrix times the distance from 1 to the next number of the dtype, or 0 if `atol` is given.

    Args:
        rtol: Singular values below this part of the largest one count as 0; None: a value for dtype and shape.
        atol: Singular values below this count as 0; None: 0.

    Shapes: `A` is (..., m, n), the result (...), int64; tolerances broadcast with it. With `hermitian` eigenvalues
    are used, which is faster. Dtypes: floating and complex.
    Raises: ShapeError for fewer than 2 dimensions, DTypeError for integers.

    >>> import plait_core as pc
    >>> pc.linalg.matrix_rank(pc.ones(3, 3)).item()
    1
    """,
    dtypes="inexact",
)
linalg_matrix_rank_tol = Composite(
    "linalg_matrix_rank.tol(Tensor A, Tensor|Scalar tol, bool hermitian=False) -> Tensor",
    doc="""
    The rank with `tol` as absolute tolerance.

    >>> import plait_core as pc
    >>> pc.linalg.matrix_rank(pc.eye(3) * 0.5, 1.0).item()
    0
    """,
    dtypes="inexact",
)


@linalg_matrix_rank_.decompose
def _(A, atol, rtol, hermitian):
    require_matrix("A", A)
    if numel(A.shape) == 0:
        return op.zeros(A.shape[:-2], dtype=int64, device=A.device)
    values = op.abs(op.linalg_eigvalsh(A)) if hermitian else op.linalg_svdvals(A)
    cut = op.rank_tolerance(values, atol, rtol, max(A.shape[-2], A.shape[-1]))
    return op.sum(op.gt(values, cut), [-1])


@linalg_matrix_rank_tol.decompose
def _(A, tol, hermitian):
    return op.linalg_matrix_rank(A, atol=tol, rtol=0.0, hermitian=hermitian)


linalg_pinv_ = Operator(
    "linalg_pinv(Tensor A, *, Tensor|Scalar? atol=None, Tensor|Scalar? rtol=None, bool hermitian=False) -> Tensor",
    doc="""
    The pseudo-inverse (Moore and Penrose), computed with singular values: those up to ``max(atol, rtol * largest)`` count
    as 0. The defaults of `atol` and `rtol` are those of `linalg.matrix_rank`. With `hermitian` only the lower triangle is
    read.

    Args:
        rtol: Singular values below this part of the largest one count as 0; None: a value for dtype and shape.
        atol: Singular values below this count as 0; None: 0.

    Shapes: `A` is (..., m, n), the result (..., n, m). Dtypes: floating and complex. The gradient is correct where the rank
    does not change. Raises: ShapeError for fewer than 2 dimensions, or with `hermitian` for a matrix that is not square;
    DTypeError for integers.

    >>> import plait_core as pc
    >>> pc.linalg.pinv(pc.tensor([[2.0], [0.0]])).tolist()
    [[0.5, 0.0]]
    """,
    kernel="optional: without a kernel other operators compute it; in[1] and in[2] are None, numbers or tensors that broadcast to the leading dimensions; in[3]: the matrices are symmetric or Hermitian, and only the lower triangle is read.",
    dtypes="inexact",
)


@linalg_pinv_.shape
def _(A, hermitian):
    require_matrix("A", A)
    if hermitian:
        require_square("A", A)
    return result(A.shape[:-2] + [A.shape[-1], A.shape[-2]], A.dtype)


@linalg_pinv_.decompose
def _(A, atol, rtol, hermitian):
    if numel(A.shape) == 0:
        turned = A.shape[:-2] + [A.shape[-1], A.shape[-2]]
        return op.zeros(turned, dtype=A.dtype, device=A.device)
    if hermitian:
        values, v = op.linalg_eigh(A)
        size = op.abs(values)
        kept = op.gt(size, op.rank_tolerance(size, atol, rtol, A.shape[-1]))
        inverse = op.where(kept, op.reciprocal(values), 0.0)
        return (v * op.unsqueeze(inverse, -2)) @ op.transpose(
            op.conj(v) if is_complex(A.dtype) else v, -2, -1
        )
    u, s, vh = op.linalg_svd(A, False)
    kept = op.gt(s, op.rank_tolerance(s, atol, rtol, max(A.shape[-2], A.shape[-1])))
    inverse = op.where(kept, op.reciprocal(s), 0.0)
    v = op.transpose(op.conj(vh) if is_complex(A.dtype) else vh, -2, -1)
    ut = op.transpose(op.conj(u) if is_complex(A.dtype) else u, -2, -1)
    return (v * op.unsqueeze(inverse, -2)) @ ut


pinv_backward = Composite(
    "pinv_backward(Tensor grad, Tensor A, Tensor P) -> Tensor",
    doc="""
    The gradient of the pseudo-inverse P of constant rank (Golub and Pereyra 1973):
    ``-P^T g P^T + (I - A P) g^T P P^T + P^T P g^T (I - P A)``.
    """,
    internal=True,
    dtypes="inexact",
)


@pinv_backward.decompose
def _(grad, A, P):
    pt = conjugate(op.transpose(P, -2, -1))
    gt_ = conjugate(op.transpose(grad, -2, -1))
    rows = gt_ - A @ (P @ gt_)
    columns = gt_ - (gt_ @ P) @ A
    return rows @ P @ pt + pt @ P @ columns - pt @ grad @ pt


@linalg_pinv_.vjp("A")
def _(g, A, result, hermitian):
    if hermitian:  # the upper triangle is not read
        whole = op.tril(A) + conjugate(op.transpose(op.tril(A, -1), -2, -1))
        return pinv_backward(g, whole, result)
    return pinv_backward(g, A, result)


linalg_pinv_.constant("atol", "rtol")

linalg_pinv_rcond = Composite(
    "linalg_pinv.rcond(Tensor A, Tensor|Scalar rcond, bool hermitian=False) -> Tensor",
    doc="""
    The pseudo-inverse with `rcond` as relative tolerance.

    >>> import plait_core as pc
    >>> pc.linalg.pinv(pc.tensor([[4.0]]), 1e-3).item()
    0.25
    """,
    dtypes="inexact",
)
pinverse = Composite(
    "pinverse(Tensor self, float rcond=1e-15) -> Tensor",
    doc="""
    `linalg.pinv` with a relative tolerance.

    >>> import plait_core as pc
    >>> pc.tensor([[4.0]]).pinverse().item()
    0.25
    """,
    dtypes="inexact",
    variants="function method",
)


@linalg_pinv_rcond.decompose
def _(A, rcond, hermitian):
    return op.linalg_pinv(A, rtol=rcond, atol=0.0, hermitian=hermitian)


@pinverse.decompose
def _(self, rcond):
    return op.linalg_pinv(self, rtol=rcond, atol=0.0)
