"""Matrices for the samples of linear algebra: well conditioned, definite, in every layout."""

from __future__ import annotations

from typing import Any

from plait_ops.samples import Sampler

__all__ = ["definite", "lu", "regular", "triangular"]

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
