"""Test data of linalg/least_squares: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.linalg.least_squares import linalg_lstsq, lstsq_parts_


@lstsq_parts_.reference
def _(A, B, rcond, values=True):
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    a = np.broadcast_to(A, (*batch, *A.shape[-2:]))
    b = np.broadcast_to(B, (*batch, *B.shape[-2:]))
    m, n, k = *A.shape[-2:], B.shape[-1]
    x = np.zeros((*batch, n, k), A.dtype)
    left = np.zeros((*batch, k), A.real.dtype)
    rank = np.zeros(batch, "int64")
    s = np.zeros((*batch, min(m, n)), A.real.dtype)
    for at in np.ndindex(*batch):
        x[at], _rest, rank[at], s[at] = np.linalg.lstsq(a[at], b[at], rcond)
        if m > n:
            q, _r = np.linalg.qr(a[at], mode="complete")
            left[at] = (abs(q.conj().T @ b[at])[n:] ** 2).sum(0)
    return x, left, rank, s if values else 0 * s


@lstsq_parts_.samples
def _(s):
    yield s(s.array(4, 2), s.array(4, 3), 1e-6).loosely(50)
    yield s(s.array(2, 4), s.array(2, 1), 1e-6).loosely(50)
    yield s(s.array(4, 2), s.array(4, 3), 1e-6, False).loosely(50)
    yield s(
        s.array(2, 4, dtype="complex64"), s.array(2, 1, dtype="complex64"), 1e-6, False
    ).loosely(50)
    yield s(s.array(2, 3, 3, dtype="float64"), s.array(3, 2, dtype="float64"), 1e-9).loosely(500)
    yield s(s.strided(4, 2), s.strided(4, 2), 1e-6).loosely(50)
    yield s(s.array(3, 2, dtype="complex64"), s.array(3, 1, dtype="complex64"), 1e-6).loosely(50)
    yield s(s.array(0, 3, 2), s.array(3, 2), 1e-6)
    yield s(s.array(2, 3, 0), s.array(2, 3, 2), 1e-6)  # nothing is fitted: B remains
    yield s(s.array(0, 3), s.array(0, 2), 1e-6)
    yield s(s.array(3, 2), s.array(3, 0), 1e-6)


lstsq_parts_.error(
    "ShapeError",
    lambda s: s(s.array(3, 2), s.array(2, 2), 0.0),
    contains=["lstsq_parts", "`B`", "rows", "(2, 2)", "(3, 2)"],
)


@linalg_lstsq.reference
def _(A, B, rcond=None, driver=None):
    cut = np.finfo(A.dtype).eps * max(A.shape[-2:]) if rcond is None else rcond
    vector = B.ndim == 1 or (A.ndim == B.ndim + 1 and B.shape == A.shape[:-1])
    x, left, rank, values = lstsq_parts_(A, B[..., None] if vector else B, cut)
    nothing = np.zeros(0, A.real.dtype)
    own = (0,) * (rank.ndim + 2 - A.ndim) + tuple(slice(n) for n in A.shape[:-2])
    rank, values = np.asarray(rank[own]), values[own]
    return (
        x[..., 0] if vector else x,
        left if A.shape[-2] > A.shape[-1] and driver not in (None, "gelsy") else nothing,
        np.zeros(0, "int64") if driver == "gels" else rank,
        values if driver in ("gelsd", "gelss") else nothing,
    )


@linalg_lstsq.samples
def _(s):
    yield s(s.array(4, 2), s.array(4, 3)).loosely(50)
    yield s(s.array(2, 4), s.array(2), driver="gelsd").loosely(50)
    yield s(s.array(4, 2), s.array(4), driver="gels").loosely(50)
    yield s(s.array(4, 2), s.array(4, 1), driver="gelss").loosely(50)
    yield s(s.array(2, 4, 3), s.array(2, 4), 1e-5).loosely(100)
    yield s(s.array(3, 3), s.array(2, 3, 1)).loosely(500)
    yield s(s.array(1, 4, 2), s.array(2, 3, 4, 1), driver="gelss").loosely(100)
    yield s(s.array(2, 1, 4, 2), s.array(1, 3, 4, 1), driver="gelsd").loosely(100)
    yield s(s.array(1, 4, 2), s.array(3, 4, 1)).loosely(50)
    yield s(s.array(2, 3, 0), s.array(2, 3), driver="gelsd")
    yield s(s.array(0, 3), s.array(0), driver="gelss")
    yield s(s.array(2, 3), s.array(2, 0), driver="gels")


linalg_lstsq.error(
    "ShapeError",
    lambda s: s(s.array(3, 2), s.array(2, 2)),
    contains=["`B`", "rows", "(2, 2)", "(3, 2)"],
)
linalg_lstsq.error(
    "ValueError",
    lambda s: s(s.array(3, 2), s.array(3), driver="qr"),
    contains=["linalg_lstsq", "driver", "qr"],
)
linalg_lstsq.error(
    "DTypeError",
    lambda s: s(s.array(3, 2), s.array(3, dtype="float64")),
    contains=["linalg_lstsq", "float32", "float64"],
)
