"""QR factors, and products of Householder reflections."""

from plait_ops import calls as op
from plait_ops.costs import householder, matrices, reflectors
from plait_ops.linear_words import require_matrix
from plait_ops.spec import Composite, Operator
from plait_ops.words import (
    check,
    conjugate,
    is_complex,
    is_unused,
    require_same,
    result,
    to_dtype,
)

_MODES = """
    Let k = min(m, n). With `mode` "reduced" Q is (..., m, k) and R (..., k, n); with "complete" they are (..., m, m) and
    (..., m, n); with "r" Q is empty, of shape (0,), and R is (..., k, n). Dtypes: floating and complex. The gradient exists
    for m <= n, and with "reduced" for any shape, where the first k columns of `A` are linearly independent.
"""

linalg_qr_ = Operator(
    'linalg_qr(Tensor A, str mode="reduced") -> (Tensor Q, Tensor R)',
    doc=f"""
    The factors ``A = Q R``: the columns of Q are orthonormal, R is upper triangular.

    Shapes: `A` is (..., m, n).{_MODES}    Raises: ShapeError for fewer than 2 dimensions, DTypeError for integers, ValueError for another `mode`.

    >>> import plait_core as pc
    >>> q, r = pc.linalg.qr(pc.tensor([[3.0], [4.0]]))
    >>> abs(r).tolist()
    [[5.0]]
    """,
    kernel="in[0] is (..., m, n) in any strides; results are in C order; in[1] is reduced, complete or r; with r, out[0] has shape (0) and there is nothing to write to it; zeros below the diagonal of out[1].",
    dtypes="inexact",
    lapack=True,
)
linalg_qr_.batch("code")


@linalg_qr_.shape
def _(A, mode):
    require_matrix("A", A)
    check(
        mode == "reduced" or mode == "complete" or mode == "r",
        f'`mode` must be "reduced", "complete" or "r"; got "{mode}"',
        "ValueError",
    )
    m = A.shape[-2]
    n = A.shape[-1]
    k = min(m, n)
    batch = A.shape[:-2]
    if mode == "complete":
        return result(batch + [m, m], A.dtype), result(batch + [m, n], A.dtype)
    if mode == "r":
        return result([0], A.dtype), result(batch + [k, n], A.dtype)
    return result(batch + [m, k], A.dtype), result(batch + [k, n], A.dtype)


@linalg_qr_.cost
def _(A, mode, result0):
    m = A.shape[-2]
    n = A.shape[-1]
    each = reflectors(m, n)
    if mode != "r":
        each = each + householder(m, result0.shape[-1], min(m, n))
    return matrices(A) * each


qr_backward = Composite(
    "qr_backward(Tensor? grad_q, Tensor? grad_r, Tensor q, Tensor r) -> Tensor",
    doc="The gradient of `linalg.qr` for a square R: ``(grad_q + Q copyltu(R grad_r^T - grad_q^T Q)^T) R^-T``.",
    internal=True,
    dtypes="inexact",
)


@qr_backward.decompose
def _(grad_q, grad_r, q, r):
    adjoint = conjugate(op.transpose(r, -2, -1))
    if grad_q is None:
        inner = op.triu(grad_r @ adjoint)
    else:
        inner = -(conjugate(op.transpose(q, -2, -1)) @ grad_q)
        inner = op.triu(inner if grad_r is None else grad_r @ adjoint + inner)
    symmetric = op.triu(inner, 1) + conjugate(op.transpose(op.triu(inner), -2, -1))
    if is_complex(q.dtype):  # only the real part of the diagonal counts, as R's diagonal is real
        own = to_dtype(op.real(op.diagonal(inner, 0, -2, -1)), q.dtype)
        symmetric = (
            op.triu(inner, 1)
            + op.conj(op.transpose(op.triu(inner, 1), -2, -1))
            + op.diag_embed(own)
        )
    turned = q @ symmetric
    if grad_q is not None:
        turned = grad_q + turned
    return op.linalg_solve_triangular(adjoint, turned, upper=False, left=False)


@linalg_qr_.vjp("A")
def _(g0, g1, A, result0, result1, mode):
    m = A.shape[-2]
    n = A.shape[-1]
    check(
        mode != "r",
        '`mode` "r" has no derivative, as it does not compute Q; use "reduced"',
        "NotImplementedError",
    )
    check(
        mode == "reduced" or m <= n,
        '`mode` "complete" has no gradient where there are more rows than columns; use "reduced"',
        "NotImplementedError",
    )
    if m >= n:
        return qr_backward(
            None if is_unused(g0) else g0, None if is_unused(g1) else g1, result0, result1
        )
    # A = Q [R1 R2]: the columns after the first m depend on Q and R2 alone
    rest = op.narrow(g1, -1, m, n - m)
    more = op.narrow(A, -1, m, n - m) @ conjugate(op.transpose(rest, -2, -1))
    first = qr_backward(g0 + more, op.narrow(g1, -1, 0, m), result0, op.narrow(result1, -1, 0, m))
    return op.cat([first, result0 @ rest], -1)


qr = Composite(
    "qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)",
    doc="""
    `linalg.qr`, "reduced" or, without `some`, "complete".

    >>> import plait_core as pc
    >>> tuple(pc.ones(3, 2).qr().R.shape)
    (2, 2)
    """,
    dtypes="inexact",
    variants="function method",
)


@qr.decompose
def _(self, some):
    return op.linalg_qr(self, "reduced" if some else "complete")


geqrf = Operator(
    "geqrf(Tensor self) -> (Tensor a, Tensor tau)",
    doc="""
    The QR factors in LAPACK's form: R on and above the diagonal of `a`, below it the vectors of Householder reflections,
    whose factors are in `tau`. `linalg.householder_product` computes Q from them.

    Shapes: `self` is (..., m, n), `a` too, `tau` is (..., min(m, n)). Dtypes: floating and complex.
    Raises: ShapeError for fewer than 2 dimensions, DTypeError for integers.

    >>> import plait_core as pc
    >>> a, tau = pc.geqrf(pc.tensor([[3.0], [4.0]]))
    >>> a[0].item(), f"{tau.item():.1f}"
    (-5.0, '1.6')
    """,
    kernel="in[0] is (..., m, n) in any strides; results are in C order, as LAPACK's geqrf: R above, the reflections below the diagonal, their factors in out[1].",
    dtypes="inexact",
    variants="function method",
    lapack=True,
)
geqrf.batch("matrices")


@geqrf.shape
def _(self):
    require_matrix("self", self)
    small = min(self.shape[-2], self.shape[-1])
    return result(self.shape, self.dtype), result(self.shape[:-2] + [small], self.dtype)


@geqrf.cost
def _(self):
    return matrices(self) * reflectors(self.shape[-2], self.shape[-1])


linalg_householder_product_ = Operator(
    "linalg_householder_product(Tensor A, Tensor tau) -> Tensor",
    doc="""
    The first n columns of the product of k reflections ``I - tau[i] v v^H``, whose vectors stand below the diagonal of `A`,
    as `geqrf` returns them; the 1 on the diagonal, with which each vector begins, is not stored.

    Shapes: `A` is (..., m, n) with m >= n, `tau` (..., k) with k <= n; the result is (..., m, n).
    Dtypes: floating and complex, the same for both.
    Raises: ShapeError for other shapes, DTypeError if dtypes differ.

    >>> import plait_core as pc
    >>> q = pc.linalg.householder_product(*pc.geqrf(pc.tensor([[3.0], [4.0]])))
    >>> [round(x, 1) for x in q.flatten().tolist()]
    [-0.6, -0.8]
    """,
    kernel="optional: without a kernel other operators compute it; in[0] is (..., m, n) with m >= n, in[1] (..., k) with k <= n and the same leading dimensions and dtype, any strides; the result is in C order.",
    dtypes="inexact",
    lapack=True,
)
linalg_householder_product_.batch("matrices")
orgqr = Composite(
    "orgqr(Tensor self, Tensor tau|input2) -> Tensor",
    doc="""
    The orthonormal columns that Householder vectors represent: `linalg.householder_product`.

    >>> import plait_core as pc
    >>> pc.orgqr(*pc.geqrf(pc.ones(1, 1))).item()
    1.0
    """,
    dtypes="inexact",
    variants="function method",
)


@linalg_householder_product_.shape
def _(A, tau):
    require_matrix("A", A)
    require_same("A", A, "tau", tau)
    check(
        A.shape[-2] >= A.shape[-1],
        f"`A` must have at least as many rows as columns; got shape {A.shape}",
    )
    check(
        tau.ndim == A.ndim - 1 and tau.shape[:-1] == A.shape[:-2] and tau.shape[-1] <= A.shape[-1],
        f"`tau` of shape {tau.shape} must hold at most {A.shape[-1]} numbers for every matrix of `A` of shape {A.shape}",
    )
    return result(A.shape, A.dtype)


@linalg_householder_product_.cost
def _(A, tau):
    return matrices(A) * householder(A.shape[-2], A.shape[-1], tau.shape[-1])


@linalg_householder_product_.decompose
def _(A, tau):
    m = A.shape[-2]
    n = A.shape[-1]
    one = op.eye(m, n, dtype=A.dtype, device=A.device)
    vectors = op.tril(A, -1) + one
    made = op.expand(one, A.shape)
    for i in reversed(range(tau.shape[-1])):
        v = op.narrow(vectors, -1, i, 1)
        factor = op.unsqueeze(op.narrow(tau, -1, i, 1), -1)
        made = made - v @ (factor * (conjugate(op.transpose(v, -2, -1)) @ made))
    return made


ormqr = Composite(
    "ormqr(Tensor self|input, Tensor tau|input2, Tensor other|input3, bool left=True, bool transpose=False) -> Tensor",
    doc="""
    ``Q @ other``, or ``other @ Q`` with ``left=False``, where the square matrix Q is the product of the reflections that
    `geqrf` returned, here `self` and `tau`. With `transpose` the conjugate transpose of Q takes its place.

    Args:
        other: The matrices that are multiplied: shape (..., m, n).

    Shapes: `self` (..., m, k), `tau` (..., at most k), `other` (..., m, n), or (..., n, m) with ``left=False``, which is
    the shape of the result too. Dtypes: floating and complex, the same for all.
    Raises: ShapeError for other shapes, DTypeError if dtypes differ.

    >>> import plait_core as pc
    >>> a, tau = pc.geqrf(pc.tensor([[3.0], [4.0]]))
    >>> [round(x, 1) for x in pc.ormqr(a, tau, pc.tensor([[3.0], [4.0]]), transpose=True).flatten().tolist()]
    [-5.0, 0.0]
    """,
    dtypes="inexact",
    variants="function method",
)


@ormqr.decompose
def _(self, tau, other, left, transpose):
    require_matrix("self", self)
    require_matrix("other", other)
    require_same("self", self, "tau", tau)
    require_same("self", self, "other", other)
    m = self.shape[-2]
    check(
        tau.ndim == self.ndim - 1
        and tau.shape[:-1] == self.shape[:-2]
        and tau.shape[-1] <= min(m, self.shape[-1]),
        f"`tau` of shape {tau.shape} must hold at most {min(m, self.shape[-1])} numbers for every matrix of `self` of shape {self.shape}",
    )
    check(
        (other.shape[-2] if left else other.shape[-1]) == m and other.shape[:-2] == self.shape[:-2],
        f"`other` of shape {other.shape} must have {m} {'rows' if left else 'columns'} and the batch of `self` of shape {self.shape}",
    )
    k = tau.shape[-1]
    q = op.linalg_householder_product(
        op.pad_end(op.narrow(self, -1, 0, k), self.shape[:-1] + [m]), tau
    )
    if transpose:
        q = conjugate(op.transpose(q, -2, -1))
    return q @ other if left else other @ q


@orgqr.decompose
def _(self, tau):
    return op.linalg_householder_product(self, tau)
