"""Determinants of square matrices."""

from plait_ops import calls as op
from plait_ops.costs import lu, matrices
from plait_ops.linear_words import require_square
from plait_ops.spec import Composite, Operator
from plait_ops.words import (
    conjugate,
    float64,
    int32,
    is_complex,
    is_unused,
    numel,
    part,
    real_dtype,
    result,
    to_dtype,
    wide_dtype,
)

NAN = float("nan")


linalg_det_ = Operator(
    "linalg_det(Tensor A) -> Tensor",
    doc="""
    The determinant of every matrix of a batch.

    Args:
        A: A square matrix, or a batch of them: shape (..., n, n).

    Shapes: `A` is (..., n, n), the result (...). Dtypes: floating and complex. The gradient at a singular matrix is the
    limit of the gradients at regular matrices nearby.
    Raises: ShapeError if a matrix is not square, DTypeError for integers.

    >>> import plait_core as pc
    >>> pc.linalg.det(pc.tensor([[2.0, 1.0], [0.0, 4.0]])).item()
    8.0
    """,
    kernel="in[0] is (..., n, n) in any strides, n may be 0; a singular matrix gives 0.",
    dtypes="inexact",
    widens=True,
    lapack=True,
)
linalg_det_.batch("matrices")


@linalg_det_.shape
def _(A):
    require_square("A", A)
    return result(A.shape[:-2], A.dtype)


@part
def _made_regular(A):
    """`A` with a small number instead of every pivot that is 0, as cofactors are continuous."""
    LU, pivots, _info = op.linalg_lu_factor_ex(op.detach(A))
    P, L, U = op.lu_unpack(LU, pivots)
    sizes_ = op.abs(op.diagonal(U, 0, -2, -1))
    largest = op.amax(sizes_, [-1], True)
    little = 1e-10 if real_dtype(A.dtype) == float64 else 1e-5
    scale = op.where(op.eq(largest, 0), 1.0, largest) * little
    added = to_dtype(op.where(op.eq(sizes_, 0), scale, 0.0), A.dtype)
    return A + P @ (L * op.unsqueeze(added, -2))


@part
def _parity(pivots, dtype):
    """1 or -1: whether the number of exchanged rows is even."""
    n = pivots.shape[-1]
    places = op.arange_start(1, n + 1, dtype=int32, device=pivots.device)
    signs = op.where(op.eq(pivots, places), 1.0, -1.0)
    return to_dtype(op.prod_dim(signs, -1), dtype)


@linalg_det_.decompose
def _(A):
    LU, pivots, _info = op.linalg_lu_factor_ex(A)
    return op.prod_dim(op.diagonal(LU, 0, -2, -1), -1) * _parity(pivots, A.dtype)


@linalg_det_.vjp("A")
def _(g, A):
    if numel(A.shape) == 0:
        return op.zeros_like(A)
    regular_ = _made_regular(A)
    scale = op.unsqueeze(op.unsqueeze(g * conjugate(op.linalg_det(regular_)), -1), -1)
    return scale * conjugate(op.transpose(op.linalg_inv(regular_), -2, -1))


linalg_slogdet_ = Operator(
    "linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)",
    doc="""
    The sign of the determinant and the logarithm of its magnitude: ``det(A) == sign * exp(logabsdet)``; it does not
    overflow. For a singular matrix, `sign` is 0 and `logabsdet` is -inf.

    Args:
        A: A square matrix, or a batch of them: shape (..., n, n).

    Shapes: `A` is (..., n, n), `sign` and `logabsdet` are (...). Dtypes: floating and complex; `logabsdet` is real.
    The gradient needs a regular matrix.
    Raises: ShapeError if a matrix is not square, DTypeError for integers.

    >>> import plait_core as pc
    >>> sign, logabsdet = pc.linalg.slogdet(pc.tensor([[-1.0, 0.0], [0.0, 1.0]]))
    >>> sign.item(), logabsdet.item()
    (-1.0, 0.0)
    """,
    kernel="in[0] is (..., n, n) in any strides, n may be 0; out[1] is real also of complex matrices; a singular matrix gives sign 0 and -inf.",
    dtypes="inexact",
    lapack=True,
)
linalg_slogdet_.batch("matrices")


@linalg_slogdet_.shape
def _(A):
    require_square("A", A)
    return result(A.shape[:-2], A.dtype), result(A.shape[:-2], real_dtype(A.dtype))


@linalg_det_.cost
@linalg_slogdet_.cost
def _(A):
    return matrices(A) * lu(A.shape[-1], A.shape[-1])


@linalg_slogdet_.vjp("A")
def _(g0, g1, A, result0):
    scale = g1
    if is_complex(A.dtype) and not is_unused(g0):  # the sign changes too
        turn = op.conj(g0) * result0
        scale = g1 - (turn - op.conj(turn)) * 0.5
    return op.unsqueeze(op.unsqueeze(scale, -1), -1) * conjugate(
        op.transpose(op.linalg_inv(A), -2, -1)
    )


det = Composite(
    "det(Tensor self) -> Tensor",
    doc="""
    The determinant of every matrix of a batch: `linalg.det`.

    >>> import plait_core as pc
    >>> pc.eye(3).det().item()
    1.0
    """,
    dtypes="inexact",
    variants="function method",
)
slogdet = Composite(
    "slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)",
    doc="""
    The sign, and the logarithm of the magnitude, of determinants: `linalg.slogdet`.

    >>> import plait_core as pc
    >>> pc.eye(3).slogdet().logabsdet.item()
    0.0
    """,
    dtypes="inexact",
    variants="function method",
)
logdet = Composite(
    "logdet(Tensor self) -> Tensor",
    doc="""
    The logarithm of the determinant of every matrix of a batch: NaN where the determinant is negative, -inf where it is 0;
    for complex matrices the complex logarithm.

    Raises: as `linalg.slogdet`.

    >>> import plait_core as pc
    >>> pc.eye(3).logdet().item()
    0.0
    """,
    dtypes="inexact",
    variants="function method",
)


@det.decompose
def _(self):
    return op.linalg_det(self)


@slogdet.decompose
def _(self):
    return op.linalg_slogdet(self)


@logdet.decompose
def _(self):
    sign, logabsdet = op.linalg_slogdet(self)
    if is_complex(self.dtype):
        return op.log(sign) + logabsdet
    return op.masked_fill(logabsdet, op.lt(sign, 0), NAN)


@linalg_slogdet_.decompose
def _(A):
    LU, pivots, _info = op.linalg_lu_factor_ex(to_dtype(A, wide_dtype(A.dtype)))
    on_diagonal = op.diagonal(LU, 0, -2, -1)
    sign = op.prod_dim(op.sgn(on_diagonal), -1) * _parity(pivots, LU.dtype)
    size = op.sum(op.log(op.abs(on_diagonal)), [-1])
    return to_dtype(sign, A.dtype), to_dtype(size, real_dtype(A.dtype))
