"""Exponentials and powers of matrices."""

from plait_ops import calls as op
from plait_ops.linear_words import require_square
from plait_ops.spec import Composite, Operator
from plait_ops.words import check, conjugate, int64, item, numel, result, to_dtype

NAN = float("nan")

linalg_matrix_exp_ = Operator(
    "linalg_matrix_exp(Tensor A) -> Tensor",
    doc="""
    The exponential of matrices, ``sum_k A^k / k!``: of A / 2^s by an approximant, which is then squared s times (Higham
    2005). A matrix with an infinity or NaN gives NaN.

    Args:
        A: A square matrix, or a batch of them: shape (..., n, n).

    Shapes: `A` is (..., n, n), and so is the result. Dtypes: floating and complex.
    Raises: ShapeError if a matrix is not square, DTypeError for integers.

    >>> import plait_core as pc
    >>> pc.linalg.matrix_exp(pc.zeros(2, 2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """,
    kernel="optional: without a kernel other operators compute it; in[0] is (..., n, n) in any strides; results are in C order; n may be 0.",
    dtypes="inexact",
    lapack=True,
)
linalg_matrix_exp_.batch("matrices")


@linalg_matrix_exp_.shape
def _(A):
    require_square("A", A)
    return result(A.shape, A.dtype)


@linalg_matrix_exp_.decompose
def _(A):
    if numel(A.shape) == 0:
        return op.clone(A)
    # the sum up to A^16 / 16! is exact in float64 for norms below 0.8
    norm = op.amax(op.sum(op.abs(A), [-2], True), [-1], True)
    finite = op.isfinite(norm)
    times = op.where(finite, op.clamp_min(op.ceil(op.log2(norm / 0.75)), 0.0), 0.0)
    x = A * op.exp2(-times)
    x2 = x @ x
    x3 = x2 @ x
    x4 = x2 @ x2
    unit = op.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    made = x
    tail = x4
    for j in range(4):
        k = 12 - 4 * j  # `made` becomes the sum from A^k on, divided by A^k / k!
        made = unit + (x + (x2 + (x3 + tail / (k + 4)) / (k + 3)) / (k + 2)) / (k + 1)
        if j < 3:
            tail = x4 @ made
    for j in range(item(to_dtype(op.amax(op.reshape(times, [-1]), [0]), int64))):
        made = op.where(op.lt(j, times), made @ made, made)
    return op.where(finite, made, NAN)


@linalg_matrix_exp_.cost
def _(A):
    # 6 products and a system of equations; how often it is squared depends on the values
    return 44 * numel(A) * A.shape[-1] // 3


@linalg_matrix_exp_.vjp("A")
def _(g, A):
    # exp of [[A^T, g], [0, A^T]] holds the derivative in its upper right corner
    n = A.shape[-1]
    turned = conjugate(op.transpose(A, -2, -1))
    top = op.cat([turned, g], -1)
    bottom = op.cat([op.zeros_like(g), turned], -1)
    whole = op.linalg_matrix_exp(op.cat([top, bottom], -2))
    return op.narrow(op.narrow(whole, -2, 0, n), -1, n, n)


matrix_exp = Composite(
    "matrix_exp(Tensor self) -> Tensor",
    doc="""
    The exponentials of matrices: `linalg.matrix_exp`.

    >>> import plait_core as pc
    >>> pc.zeros(1, 1).matrix_exp().item()
    1.0
    """,
    dtypes="inexact",
    variants="function method",
)


@matrix_exp.decompose
def _(self):
    return op.linalg_matrix_exp(self)


linalg_matrix_power_ = Composite(
    "linalg_matrix_power(Tensor A, int n) -> Tensor",
    doc="""
    The n-th power of square matrices. For a negative `n` it is a power of the inverse, for 0 the identity.

    Args:
        n: The exponent, an integer; a negative one needs invertible matrices.
        A: A square matrix, or a batch of them: shape (..., n, n).

    Shapes: `A` is (..., k, k), and so is the result. Dtypes: those of `linalg.inv` for a negative `n`, else those of
    `matmul`.
    Raises: ShapeError if a matrix is not square, RuntimeError for the inverse of a singular one.

    >>> import plait_core as pc
    >>> pc.linalg.matrix_power(pc.tensor([[2.0, 0.0], [0.0, 3.0]]), 2).tolist()
    [[4.0, 0.0], [0.0, 9.0]]
    """,
    dtypes="arithmetic",
)
matrix_power = Composite(
    "matrix_power(Tensor self, int n) -> Tensor",
    doc="""
    The `n`-th powers of matrices: `linalg.matrix_power`.

    Args:
        n: The exponent, an integer; a negative one needs invertible matrices.

    >>> import plait_core as pc
    >>> pc.tensor([[2.0]]).matrix_power(3).item()
    8.0
    """,
    dtypes="arithmetic",
    variants="function method",
)


@linalg_matrix_power_.decompose
def _(A, n):
    check(
        A.ndim >= 2 and A.shape[-1] == A.shape[-2],
        f"`A` must be square in its last two dimensions; got shape {A.shape}",
    )
    check(n > -9223372036854775807, f"`n` must be larger than -2**63 + 1; got {n}", "ValueError")
    left = n
    factor = A * 1
    if n < 0:
        factor = op.linalg_inv(A)
        left = -n
    made = op.expand(op.eye(A.shape[-1], dtype=A.dtype, device=A.device), A.shape) * 1
    started = False
    while left > 0:
        if left % 2 == 1:
            made = op.matmul(made, factor) if started else factor
            started = True
        left = left // 2
        if left > 0:
            factor = op.matmul(factor, factor)
    return made


@matrix_power.decompose
def _(self, n):
    return op.linalg_matrix_power(self, n)
