"""The common part of cost functions: bytes of tensors, logarithms, and LAPACK's counts for
matrices.

The counts are those of the algorithms that LAPACK uses (Anderson et al., LAPACK Working Note 41;
Golub and Van Loan, Matrix Computations), without terms of lower order. Those of eigenvalues and of
singular values are approximations: how many steps the iterations take depends on the values.
"""

from __future__ import annotations

from typing import Any

from plait_ops.words import itemsize, numel, part

__all__ = ["householder", "log2", "lu", "matrices", "nbytes", "reflectors", "singular_values"]


@part
def nbytes(tensor: Any) -> int:
    """The bytes of a tensor's elements; those that an expanded dimension repeats count once."""
    total = itemsize(tensor.dtype)
    for size, step in zip(tensor.shape, tensor.strides, strict=True):
        if step != 0 or size == 0:
            total = total * size
    return total


@part
def log2(n: int) -> int:
    """The logarithm of n to base 2, rounded up; 0 for n below 2."""
    power = 1
    exponent = 0
    while power < n:
        power = power * 2
        exponent = exponent + 1
    return exponent


@part
def matrices(tensor: Any) -> int:
    """The number of matrices in a batch."""
    return numel(tensor.shape[:-2])


@part
def lu(m: int, n: int) -> int:
    """Operations of the LU factors of an m x n matrix: 2/3 n^3 of a square one."""
    k = min(m, n)
    return 2 * m * n * k - (m + n) * k * k + 2 * k * k * k // 3


@part
def reflectors(m: int, n: int) -> int:
    """Operations of the QR factors of an m x n matrix, Q as reflectors: 4/3 n^3 of a square one."""
    k = min(m, n)
    return 2 * max(m, n) * k * k - 2 * k * k * k // 3


@part
def householder(m: int, n: int, k: int) -> int:
    """Operations of the first n columns of the product of k reflectors of size m."""
    return 4 * m * n * k - 2 * (m + n) * k * k + 4 * k * k * k // 3


@part
def singular_values(m: int, n: int) -> int:
    """Operations of the singular values of an m x n matrix, approximately."""
    k = min(m, n)
    return 2 * max(m, n) * k * k + 2 * k * k * k
