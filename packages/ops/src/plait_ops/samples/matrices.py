"""Matrices for the samples of linear algebra: well conditioned, definite, in every layout."""

from __future__ import annotations

from typing import Any

import numpy as np

from plait_ops.sampling import Sampler

__all__ = [
    "definite",
    "eigenproducts",
    "ldl",
    "lu",
    "regular",
    "singular_products",
    "triangular",
    "unldl",
]

Array = Any


def regular(s: Sampler, *shape: int, dtype: str = "float32") -> Array:
    """Draw square matrices that are far from singular."""
    a = s.array(*shape, dtype=dtype)
    return (a + 5 * s.np.eye(shape[-1])).astype(dtype)


def definite(s: Sampler, *shape: int, dtype: str = "float32") -> Array:
    """Draw symmetric (Hermitian) positive definite matrices."""
    a = s.array(*shape, dtype=dtype, low=-1.0, high=1.0)
    return (a @ a.conj().swapaxes(-1, -2) + s.np.eye(shape[-1])).astype(dtype)


def triangular(s: Sampler, *shape: int, upper: bool = False, dtype: str = "float32") -> Array:
    """Draw triangular matrices with a diagonal around 3."""
    one = s.np.eye(shape[-1], dtype=dtype)
    a = s.array(*shape, dtype=dtype, low=-1.0, high=1.0) * (1 - one) + 3 * one
    return (s.np.triu(a) if upper else s.np.tril(a)).astype(dtype)


def lu(matrices: Array) -> tuple[Array, Array]:
    """Return the factors of a batch and the exchanges of rows, counted from 1, as LAPACK does."""
    import numpy as np

    a = np.array(matrices, "complex128" if matrices.dtype.kind == "c" else "float64")
    *batch, m, n = a.shape
    pivots = np.zeros((*batch, min(m, n)), "int32")
    for at in np.ndindex(*batch):
        x = a[at]
        for k in range(min(m, n)):
            # LAPACK compares the sums of magnitudes of complex parts
            row = k + int(np.argmax(abs(x[k:, k].real) + abs(x[k:, k].imag)))
            pivots[at][k] = row + 1
            x[[k, row]] = x[[row, k]]
            if x[k, k] != 0:
                x[k + 1 :, k] /= x[k, k]
                x[k + 1 :, k + 1 :] -= np.outer(x[k + 1 :, k], x[k, k + 1 :])
    return a.astype(matrices.dtype), pivots


def _ldl(x: Any, conj: Any) -> tuple[Any, list[int], int]:
    """Factor one lower triangle as LAPACK's sytf2 does; `conj` conjugates for Hermitian ones."""
    n, pivots, info, k = len(x), [0] * len(x), 0, 0
    alpha = (1 + np.sqrt(17)) / 8

    def size(z: Any) -> Any:
        return abs(z.real) + abs(z.imag)

    while k < n:
        step, kp, own = 1, k, abs(x[k, k].real) if conj is np.conj else size(x[k, k])
        below = size(x[k + 1 :, k])
        at = k + 1 + int(below.argmax()) if len(below) else k
        most = below.max() if len(below) else 0.0
        if max(own, most) == 0:
            info, pivots[k], k = info or k + 1, k + 1, k + 1
            continue
        if own < alpha * most:
            row = [*size(x[at, k:at]), *size(x[at + 1 :, at])]
            other = abs(x[at, at].real) if conj is np.conj else size(x[at, at])
            if own < alpha * most * (most / max(row)):
                kp, step = (at, 1) if other >= alpha * max(row) else (at, 2)
        full = np.tril(x) + conj(np.tril(x, -1)).T
        kk = k + step - 1
        order = list(range(n))
        order[kk], order[kp] = order[kp], order[kk]
        inner = full[k:, k:][np.ix_([i - k for i in order[k:]], [i - k for i in order[k:]])]
        block, column = inner[:step, :step], inner[step:, :step]
        factor = column @ np.linalg.inv(block) if len(column) else column
        inner[step:, step:] -= factor @ conj(column).T
        inner[step:, :step] = factor
        x[k:, k:] = np.tril(inner)
        for i in range(step):
            pivots[k + i] = kp + 1 if step == 1 else -(kp + 1)
        k += step
    return np.tril(x), pivots, info


def ldl(a: Any, hermitian: bool = False) -> tuple[Any, Any, Any]:
    """Return the factors of `a`, its pivots and info, as `linalg.ldl_factor_ex` does."""
    wide = "complex128" if a.dtype.kind == "c" else "float64"
    result, pivots = a.astype(wide), np.zeros(a.shape[:-1], "int32")
    info = np.zeros(a.shape[:-2], "int32")
    for at in np.ndindex(*a.shape[:-2]):
        result[at], pivots[at], info[at] = _ldl(
            result[at].copy(), np.conj if hermitian else np.array
        )
    return result.astype(a.dtype), pivots, info


def unldl(result: Any, pivots: Any, hermitian: bool = False) -> Any:
    """Return the matrices of which `ldl` made the factors."""
    conj = np.conj if hermitian else np.array
    out = np.zeros(result.shape, result.dtype)
    for at in np.ndindex(*result.shape[:-2]):
        x, p, n = result[at], pivots[at], result.shape[-1]
        starts, k = [], 0
        while k < n:
            starts.append((k, 1 if p[k] > 0 else 2))
            k += starts[-1][1]
        full = np.zeros((n, n), result.dtype)
        for k, step in reversed(starts):
            end = k + step
            block = np.tril(x[k:end, k:end])
            block = block + conj(np.tril(block, -1)).T
            column = x[end:, k:end] @ block
            full[end:, end:] += column @ conj(x[end:, k:end]).T
            full[k:end, k:end], full[end:, k:end] = block, column
            full[k:end, end:] = conj(column).T
            order, kp = list(range(n)), abs(int(p[k])) - 1
            order[end - 1], order[kp] = kp, end - 1
            full = full[np.ix_(order, order)]
        out[at] = full
    return out


def singular_products(u: Array, s: Array, vh: Array) -> tuple[Array, ...]:
    """Return what a singular value decomposition determines: the matrix, the values, and that the
    vectors are orthonormal. Their phases are free, and so is the basis of a space of several.
    """
    if u.ndim < 2:  # the values alone
        return u, s, vh
    k = s.shape[-1]
    matrix = u[..., :k] * s[..., None, :] @ vh[..., :k, :]
    return matrix, s, _gram(u), _gram(vh.conj().swapaxes(-1, -2))


def eigenproducts(w: Array, v: Array) -> tuple[Array, ...]:
    """Return what the eigenvectors of a symmetric (Hermitian) matrix determine, likewise."""
    if v.ndim < 2:
        return w, v
    return w, v * w[..., None, :] @ v.conj().swapaxes(-1, -2), _gram(v)


def _gram(columns: Array) -> Array:
    return columns.conj().swapaxes(-1, -2) @ columns
