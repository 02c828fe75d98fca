"""Test data of linalg/rank: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.samples.matrices import definite
from plait_ops.specs.linalg.rank import (
    linalg_matrix_rank_,
    linalg_matrix_rank_tol,
    linalg_pinv_,
    linalg_pinv_rcond,
    pinv_backward,
    pinverse,
    rank_tolerance_,
)


@rank_tolerance_.reference
def _(S, atol, rtol, size):
    relative = np.finfo(S.dtype).eps * size if atol is None else 0.0
    relative = np.asarray(relative if rtol is None else rtol, S.dtype)[..., None]
    absolute = np.asarray(0.0 if atol is None else atol, S.dtype)[..., None]
    return np.maximum(S.max(-1, keepdims=True) * relative, absolute)


rank_tolerance_.samples(
    lambda s: iter(
        [
            s(abs(s.distinct(2, 3)), None, None, 3),
            s(abs(s.distinct(2, 3)), 0.5, s.array(2, low=0.1, high=0.5), 3),
            s(abs(s.distinct(3)), s.array(low=0.1, high=0.2), None, 3),
        ]
    )
)
rank_tolerance_.error(
    "TypeError", lambda s: s(1, None, None, 2), contains=["rank_tolerance", "`S`"]
)


@linalg_matrix_rank_.reference
def _(A, atol=None, rtol=None, hermitian=False):
    values = np.linalg.svd(A, compute_uv=False)
    if not A.size:
        return np.zeros(A.shape[:-2], "int64")
    cut = rank_tolerance_(values, atol, rtol, max(A.shape[-2:]))
    return np.asarray((values > cut).sum(-1))


linalg_matrix_rank_tol.reference(
    lambda A, tol, hermitian=False: linalg_matrix_rank_(A, atol=tol, rtol=0.0, hermitian=hermitian)
)


@linalg_matrix_rank_.samples
def _(s):
    low = s.array(4, 2) @ s.array(2, 3)
    yield s(low)
    yield s(s.np.stack([s.array(3, 3), s.np.ones((3, 3), "float32")]))
    yield s(s.array(3, 3), rtol=0.5)
    yield s(s.array(2, 3, 3), atol=s.array(2, low=0.1, high=1.0))
    yield s(definite(s, 3, 3), hermitian=True)
    yield s(s.array(3, 3, dtype="complex64"))
    yield s(s.array(2, 0, 3))


linalg_matrix_rank_tol.samples(lambda s: iter([s(s.array(3, 3), 0.5)]))
linalg_matrix_rank_.error(
    "ShapeError", lambda s: s(s.array(3)), contains=["linalg_matrix_rank", "`A`", "(3,)"]
)
linalg_matrix_rank_tol.error(
    "ShapeError", lambda s: s(s.array(3), 0.1), contains=["linalg_matrix_rank", "`A`", "(3,)"]
)


pinv_backward.samples(lambda s: iter([s(s.array(2, 3), s.array(3, 2), s.array(2, 3)).loosely(20)]))


@pinv_backward.reference
def _(grad, A, P):
    g, pt = grad.swapaxes(-1, -2), P.swapaxes(-1, -2)
    return (g - A @ P @ g) @ P @ pt + pt @ P @ (g - g @ P @ A) - pt @ grad @ pt


pinv_backward.error("TypeError", lambda s: s(1, 1, 1), contains=["pinv_backward", "grad"])


@linalg_pinv_.reference
def _(A, atol=None, rtol=None, hermitian=False):
    if not A.size:
        return np.zeros((*A.shape[:-2], A.shape[-1], A.shape[-2]), A.dtype)
    u, s, vh = np.linalg.svd(A, False)
    cut = rank_tolerance_(s, atol, rtol, max(A.shape[-2:]))
    with np.errstate(all="ignore"):
        inverse = np.where(s > cut, 1 / s, 0)
    return (vh.conj().swapaxes(-1, -2) * inverse[..., None, :]) @ u.conj().swapaxes(-1, -2)


@linalg_pinv_.samples
def _(s):
    yield s(s.array(3, 2)).loosely(50)
    yield s(s.array(2, 2, 4)).loosely(50)
    yield s(s.array(3, 1) @ s.array(1, 3), rtol=1e-3).loosely(50).without_gradient()
    yield s(definite(s, 3, 3), hermitian=True).loosely(50).without_gradient()
    yield s(s.strided(3, 4), atol=0.1).loosely(50)
    yield s(s.array(3, 2, dtype="complex64")).loosely(50)
    yield s(s.array(2, 0, 3))


linalg_pinv_.error(
    "ShapeError", lambda s: s(s.array(3)), contains=["linalg_pinv", "`A`", "2 dimensions", "(3,)"]
)
linalg_pinv_.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), hermitian=True),
    contains=["linalg_pinv", "`A`", "square", "(2, 3)"],
)


linalg_pinv_rcond.reference(
    lambda A, rcond, hermitian=False: linalg_pinv_(A, atol=0.0, rtol=rcond, hermitian=hermitian)
)
pinverse.reference(lambda self, rcond=1e-15: linalg_pinv_(self, atol=0.0, rtol=rcond))
linalg_pinv_rcond.samples(lambda s: iter([s(s.array(3, 2), 1e-3).loosely(50)]))
pinverse.samples(lambda s: iter([s(s.array(3, 2)).loosely(50)]))
linalg_pinv_rcond.error("ShapeError", lambda s: s(s.array(3), 0.1), contains=["`A`", "(3,)"])
pinverse.error("ShapeError", lambda s: s(s.array(3)), contains=["`A`", "(3,)"])
