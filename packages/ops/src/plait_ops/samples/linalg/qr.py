"""Test data of linalg/qr: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.linalg.qr import (
    geqrf,
    linalg_householder_product_,
    linalg_qr_,
    orgqr,
    ormqr,
    qr,
    qr_backward,
)


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


qr.reference(lambda self, some=True: linalg_qr_(self, "reduced" if some else "complete"))
qr.samples(lambda s: iter([s(s.array(3, 2)).loosely(20), s(s.array(2, 3), False).loosely(20)]))
qr.error("ShapeError", lambda s: s(s.array(3)), contains=["`A`", "2 dimensions", "(3,)"])


# ---- reflections ---------------------------------------------------------------------------------
def _reflections(a):
    """Return the result of LAPACK's geqrf, computed by the textbook's algorithm."""
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


geqrf.reference(lambda self: _reflections(self))


@geqrf.samples
def _(s):
    yield s(s.array(3, 3)).loosely(20)
    yield s(s.array(2, 4, 2, dtype="float64")).loosely(20)
    yield s(s.strided(2, 3)).loosely(20)
    yield s(s.array(3, 2, dtype="complex64")).loosely(20)
    yield s(s.array(0, 3, 2))


geqrf.error("ShapeError", lambda s: s(s.array(3)), contains=["geqrf", "`self`", "(3,)"])


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


@linalg_householder_product_.reference
def _(A, tau):
    *batch, m, n = A.shape
    result = np.zeros((*batch, m, n), A.dtype)
    for at in np.ndindex(*batch):
        q = np.eye(m, dtype=A.dtype)
        for i in range(tau.shape[-1]):
            v = np.concatenate([np.zeros(i), [1], A[at][i + 1 :, i]])
            q = q @ (np.eye(m) - tau[at][i] * np.outer(v, v.conj()))
        result[at] = q[:, :n]
    return result


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
