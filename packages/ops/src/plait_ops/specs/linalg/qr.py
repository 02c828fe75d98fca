"""QR factors, and products of Householder reflections."""

import numpy as np

from plait_ops.calls import (
    cat,
    conj,
    diag_embed,
    diagonal,
    expand,
    eye,
    linalg_householder_product,
    linalg_qr,
    linalg_solve_triangular,
    narrow,
    pad_end,
    real,
    transpose,
    tril,
    triu,
    unsqueeze,
)
from plait_ops.calls import transpose as turned
from plait_ops.linear_words import require_matrix
from plait_ops.spec import Composite, Operator
from plait_ops.words import check, conjugate, is_complex, require_same, result, to_dtype

_MODES = """
    With k = min(m, n) and `mode` "reduced" Q is (..., m, k) and R (..., k, n); "complete": (..., m, m) and (..., m, n);
    "r": Q is empty, of shape (0,), and R (..., k, n). Dtypes: floating and complex.
    The gradient exists for m <= n and for "reduced", where the first k columns of `A` are independent.
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
    method=False,
    out=True,
    dtypes="inexact",
)


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


qr_backward = Composite(
    "qr_backward(Tensor grad_q, Tensor grad_r, Tensor q, Tensor r) -> Tensor",
    doc="The gradient of `linalg.qr` for a square R: ``(grad_q + Q copyltu(R grad_r^T - grad_q^T Q)^T) R^-T``.",
    internal=True,
    dtypes="inexact",
)


@qr_backward.decompose
def _(grad_q, grad_r, q, r):
    adjoint = conjugate(transpose(r, -2, -1))
    inner = triu(grad_r @ adjoint - conjugate(transpose(q, -2, -1)) @ grad_q)
    symmetric = triu(inner, 1) + conjugate(transpose(triu(inner), -2, -1))
    if is_complex(q.dtype):  # of the diagonal only the real part: R's is real
        own = to_dtype(real(diagonal(inner, 0, -2, -1)), q.dtype)
        symmetric = triu(inner, 1) + conj(transpose(triu(inner, 1), -2, -1)) + diag_embed(own)
    return linalg_solve_triangular(adjoint, grad_q + q @ symmetric, upper=False, left=False)


@qr_backward.reference
def _(grad_q, grad_r, q, r):
    def turned(x):
        return x.swapaxes(-1, -2)

    inner = np.triu(grad_r @ turned(r) - turned(q) @ grad_q)
    whole = grad_q + q @ (inner + turned(np.triu(inner, 1)))
    return turned(np.linalg.solve(r, turned(whole)))


def _triangle(s, n):
    return s.np.triu(s.array(n, n, low=-1.0, high=1.0)) + 3 * s.np.eye(n, dtype="float32")


qr_backward.samples(
    lambda s: iter([s(s.array(4, 3), s.array(3, 3), s.array(4, 3), _triangle(s, 3))])
)
qr_backward.error("TypeError", lambda s: s(1, 1, 1, 1), contains=["qr_backward", "grad_q"])


@linalg_qr_.vjp("A")
def _(g0, g1, A, result0, result1, mode):
    m = A.shape[-2]
    n = A.shape[-1]
    check(mode != "r", '`mode` "r" has no gradient: Q is needed', "NotImplementedError")
    check(
        mode == "reduced" or m <= n,
        '`mode` "complete" has no gradient where there are more rows than columns; use "reduced"',
        "NotImplementedError",
    )
    if m >= n:
        return qr_backward(g0, g1, result0, result1)
    # A = Q [R1 R2]: the columns after the first m depend on Q and R2 alone
    rest = narrow(g1, -1, m, n - m)
    more = narrow(A, -1, m, n - m) @ conjugate(transpose(rest, -2, -1))
    first = qr_backward(g0 + more, narrow(g1, -1, 0, m), result0, narrow(result1, -1, 0, m))
    return cat([first, result0 @ rest], -1)


@linalg_qr_.reference
def _(A, mode="reduced"):
    if mode == "r":
        return np.zeros(0, A.dtype), np.linalg.qr(A, mode="r")
    return tuple(np.linalg.qr(A, mode=mode))


@linalg_qr_.samples
def _(s):
    yield s(s.array(3, 3)).loosely(20)
    yield s(s.array(4, 2)).loosely(20)
    yield s(s.array(2, 2, 4)).loosely(20)
    yield s(s.array(2, 4, 2, dtype="float64"), "complete").loosely(20).without_gradient()
    yield s(s.array(2, 3), "complete").loosely(20)
    yield s(s.strided(4, 3), "r").loosely(20).without_gradient()
    yield s(s.array(3, 2, dtype="complex64")).loosely(20)
    yield s(s.array(0, 3, 2))
    yield s(s.array(3, 0))
    yield s(s.array(0, 3), "complete")


linalg_qr_.error("ShapeError", lambda s: s(s.array(3)), contains=["linalg_qr", "`A`", "(3,)"])
linalg_qr_.error(
    "ValueError", lambda s: s(s.array(2, 2), "full"), contains=["linalg_qr", "mode", "full"]
)
linalg_qr_.error(
    "DTypeError", lambda s: s(s.array(2, 2, dtype="int32")), contains=["linalg_qr", "int32"]
)


qr = Composite(
    "qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)",
    doc="""
    `linalg.qr`, "reduced" or, without `some`, "complete".

    >>> import plait_core as pc
    >>> tuple(pc.ones(3, 2).qr().R.shape)
    (2, 2)
    """,
    dtypes="inexact",
)


@qr.decompose
def _(self, some):
    return linalg_qr(self, "reduced" if some else "complete")


qr.reference(lambda self, some=True: linalg_qr_(self, "reduced" if some else "complete"))
qr.samples(lambda s: iter([s(s.array(3, 2)).loosely(20), s(s.array(2, 3), False).loosely(20)]))
qr.error("ShapeError", lambda s: s(s.array(3)), contains=["`A`", "2 dimensions", "(3,)"])


# ---- reflections ---------------------------------------------------------------------------------
def _reflections(a):
    """Return what LAPACK's geqrf returns, by the textbook."""
    x = np.array(a, "complex128" if a.dtype.kind == "c" else "float64")
    *batch, m, n = x.shape
    k = min(m, n)
    tau = np.zeros((*batch, k), x.dtype)
    for at in np.ndindex(*batch):
        for j in range(k):
            column = x[at][j:, j].copy()
            alpha, rest = column[0], np.linalg.norm(column[1:])
            if rest == 0 and alpha.imag == 0:
                continue
            beta = -np.copysign(np.hypot(abs(alpha), rest), alpha.real)
            tau[at][j] = (beta - alpha) / beta
            v = np.concatenate([[1.0], column[1:] / (alpha - beta)])
            part = x[at][j:, j:]
            part -= np.conj(tau[at][j]) * np.outer(v, v.conj() @ part)
            x[at][j:, j] = np.concatenate([[beta], v[1:]])
    return x.astype(a.dtype), tau.astype(a.dtype)


geqrf = Operator(
    "geqrf(Tensor self) -> (Tensor a, Tensor tau)",
    doc="""
    The QR factors as LAPACK keeps them: R on and above the diagonal of `a`; below it the vectors of reflections, whose
    factors are in `tau`. `linalg.householder_product` makes Q of them.

    Shapes: `self` is (..., m, n), `a` too, `tau` is (..., min(m, n)). Dtypes: floating and complex.
    Raises: ShapeError for fewer than 2 dimensions, DTypeError for integers.

    >>> import plait_core as pc
    >>> a, tau = pc.geqrf(pc.tensor([[3.0], [4.0]]))
    >>> a[0].item(), f"{tau.item():.1f}"
    (-5.0, '1.6')
    """,
    out=True,
    dtypes="inexact",
)


@geqrf.shape
def _(self):
    require_matrix("self", self)
    small = min(self.shape[-2], self.shape[-1])
    return result(self.shape, self.dtype), result(self.shape[:-2] + [small], self.dtype)


geqrf.reference(lambda self: _reflections(self))


@geqrf.samples
def _(s):
    yield s(s.array(3, 3)).loosely(20)
    yield s(s.array(2, 4, 2, dtype="float64")).loosely(20)
    yield s(s.strided(2, 3)).loosely(20)
    yield s(s.array(3, 2, dtype="complex64")).loosely(20)
    yield s(s.array(0, 3, 2))


geqrf.error("ShapeError", lambda s: s(s.array(3)), contains=["geqrf", "`self`", "(3,)"])


linalg_householder_product_ = Operator(
    "linalg_householder_product(Tensor A, Tensor tau) -> Tensor",
    doc="""
    The first n columns of the product of k reflections ``I - tau[i] v v^H``, whose vectors stand below the diagonal of `A`
    with a 1 above them, as `geqrf` leaves them.

    Shapes: `A` is (..., m, n) with m >= n, `tau` (..., k) with k <= n; the result is (..., m, n).
    Dtypes: floating and complex, the same for both.
    Raises: ShapeError for other shapes, DTypeError if dtypes differ.

    >>> import plait_core as pc
    >>> q = pc.linalg.householder_product(*pc.geqrf(pc.tensor([[3.0], [4.0]])))
    >>> [round(x, 1) for x in q.flatten().tolist()]
    [-0.6, -0.8]
    """,
    method=False,
    out=True,
    dtypes="inexact",
)
orgqr = Composite(
    "orgqr(Tensor self, Tensor tau|input2) -> Tensor",
    doc="""
    The orthonormal columns that Householder vectors stand for: `linalg.householder_product`.

    >>> import plait_core as pc
    >>> pc.orgqr(*pc.geqrf(pc.ones(1, 1))).item()
    1.0
    """,
    dtypes="inexact",
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


@linalg_householder_product_.decompose
def _(A, tau):
    m = A.shape[-2]
    n = A.shape[-1]
    one = eye(m, n, dtype=A.dtype, device=A.device)
    vectors = tril(A, -1) + one
    made = expand(one, A.shape)
    for i in reversed(range(tau.shape[-1])):
        v = narrow(vectors, -1, i, 1)
        factor = unsqueeze(narrow(tau, -1, i, 1), -1)
        made = made - v @ (factor * (conjugate(transpose(v, -2, -1)) @ made))
    return made


ormqr = Composite(
    "ormqr(Tensor self|input, Tensor tau|input2, Tensor other|input3, bool left=True, bool transpose=False) -> Tensor",
    doc="""
    ``Q @ other``, or ``other @ Q`` with ``left=False``, where the square matrix Q is the product of the reflections that
    `geqrf` left in `self` and `tau`; with `transpose` its conjugate transpose.

    Shapes: `self` (..., m, k), `tau` (..., at most k), `other` (..., m, n), or (..., n, m) with ``left=False``, which is the
    result's. Dtypes: floating and complex, one for all.
    Raises: ShapeError for other shapes, DTypeError if dtypes differ.

    >>> import plait_core as pc
    >>> a, tau = pc.geqrf(pc.tensor([[3.0], [4.0]]))
    >>> [round(x, 1) for x in pc.ormqr(a, tau, pc.tensor([[3.0], [4.0]]), transpose=True).flatten().tolist()]
    [-5.0, 0.0]
    """,
    out=True,
    dtypes="inexact",
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
    q = linalg_householder_product(pad_end(narrow(self, -1, 0, k), self.shape[:-1] + [m]), tau)
    if transpose:
        q = conjugate(turned(q, -2, -1))
    return q @ other if left else other @ q


@ormqr.reference
def _(self, tau, other, left=True, transpose=False):
    m, k = self.shape[-2], tau.shape[-1]
    wide = np.zeros((*self.shape[:-1], m), self.dtype)
    wide[..., :k] = self[..., :k]
    q = linalg_householder_product_(wide, tau)
    q = q.conj().swapaxes(-1, -2) if transpose else q
    return q @ other if left else other @ q


@ormqr.samples
def _(s):
    a, tau = _reflections(s.array(3, 2))
    yield s(a, tau, s.array(3, 4)).loosely(20)
    yield s(a, tau, s.array(2, 3), False).loosely(20)
    yield s(a, tau, s.array(3, 2), True, True).loosely(20)
    a, tau = _reflections(s.array(2, 3, 3, dtype="complex64"))
    yield s(a, tau, s.array(2, 3, 1, dtype="complex64"), transpose=True).loosely(20)


ormqr.error(
    "ShapeError",
    lambda s: s(s.array(3, 2), s.array(2), s.array(2, 3)),
    contains=["ormqr", "other", "(2, 3)", "(3, 2)"],
)
ormqr.error(
    "ShapeError",
    lambda s: s(s.array(3, 2), s.array(3), s.array(3, 3)),
    contains=["ormqr", "tau", "(3,)", "(3, 2)"],
)


@orgqr.decompose
def _(self, tau):
    return linalg_householder_product(self, tau)


@linalg_householder_product_.reference
def _(A, tau):
    *batch, m, n = A.shape
    made = np.zeros((*batch, m, n), A.dtype)
    for at in np.ndindex(*batch):
        q = np.eye(m, dtype=A.dtype)
        for i in range(tau.shape[-1]):
            v = np.concatenate([np.zeros(i), [1], A[at][i + 1 :, i]])
            q = q @ (np.eye(m) - tau[at][i] * np.outer(v, v.conj()))
        made[at] = q[:, :n]
    return made


orgqr.reference(lambda self, tau: linalg_householder_product_(self, tau))


@linalg_householder_product_.samples
def _(s):
    yield s(*_reflections(s.array(3, 3))).loosely(20)
    yield s(*_reflections(s.array(2, 4, 2))).loosely(20)
    yield s(s.strided(4, 3, low=-0.5, high=0.5), s.array(2)).loosely(20)
    yield s(*_reflections(s.array(3, 2, dtype="complex64"))).loosely(20)
    yield s(s.array(0, 3, 2), s.array(0, 2))


orgqr.samples(lambda s: iter([s(*_reflections(s.array(3, 2))).loosely(20)]))
linalg_householder_product_.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(2)),
    contains=["linalg_householder_product", "`A`", "rows", "(2, 3)"],
)
linalg_householder_product_.error(
    "ShapeError",
    lambda s: s(s.array(3, 2), s.array(3)),
    contains=["linalg_householder_product", "`tau`", "(3,)", "(3, 2)"],
)
orgqr.error("ShapeError", lambda s: s(s.array(2, 3), s.array(2)), contains=["`A`", "(2, 3)"])
