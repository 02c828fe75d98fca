"""The standard's extension for linear algebra."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from plait_abi import ShapeError
from plait_core._core import Tensor, is_tensor
from plait_core._namespaces import shown as _shown
from plait_core.array_api._data_types import finfo
from plait_core.array_api._elementwise import common, conj
from plait_core.array_api._manipulation import broadcast_arrays
from plait_core.array_api._operators import axes_of, call, several, wrap_axis
from plait_core.array_api._reductions import sum as total

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]

__dir__ = _shown(globals())


class EighResult(NamedTuple):
    """The result of `eigh`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """The result of `qr`."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """The result of `slogdet`."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """The result of `svd`."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """Return the triangular factor of positive definite matrices."""
    return call("linalg_cholesky", x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return the cross products of vectors of three numbers along an axis."""
    a, b = common(x1, x2)
    if a.shape[axis] != 3 or b.shape[axis] != 3:
        raise ShapeError(
            f"cross: size 3 is required along `axis` {axis}, got shapes {tuple(a.shape)} and "
            f"{tuple(b.shape)}"
        )
    a, b = (each.movedim(axis, -1) for each in broadcast_arrays(a, b))
    (a0, a1, a2), (b0, b1, b2) = a.unbind(-1), b.unbind(-1)
    parts = [a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0]
    return call("stack", parts, -1).movedim(-1, axis)


def det(x: Tensor, /) -> Tensor:
    """Return the determinants."""
    return call("linalg_det", x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """Return the diagonals of matrices, a view."""
    return call("diagonal", x, offset, -2, -1)


def eigh(x: Tensor, /) -> EighResult:
    """Return eigenvalues and eigenvectors of symmetric or Hermitian matrices."""
    return EighResult(*several("linalg_eigh", x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """Return the eigenvalues of symmetric or Hermitian matrices."""
    return call("linalg_eigvalsh", x)


def inv(x: Tensor, /) -> Tensor:
    """Return the inverses."""
    return call("linalg_inv", x)


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return the products of matrices, or of a matrix and a vector."""
    return call("matmul", *common(x1, x2))


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """Return norms of matrices."""
    if x.ndim < 2:
        raise ShapeError(f"matrix_norm: at least 2 dimensions are required, got {tuple(x.shape)}")
    large = (*x.shape[:-2], 1, 1)
    if ord in (2, -2, "nuc"):
        values = svdvals(x)
        if ord == "nuc" or values.shape[-1] == 0:
            result = call("sum", values, (-1,))
        else:
            result = call("amax" if ord == 2 else "amin", values, (-1,))
    elif ord in ("fro", None):
        result = vector_norm(x, axis=(-2, -1))
    elif ord in (1, -1, math.inf, -math.inf):
        along = -2 if abs(ord) == 1 else -1
        sums = call("sum", call("abs", x), (along,))
        result = (
            call("amax" if ord > 0 else "amin", sums, (-1,)) if sums.shape[-1] else sums.sum(-1)
        )
    else:
        raise ValueError(f"matrix_norm: `ord` must be 1, 2, inf, 'fro' or 'nuc', got {ord!r}")
    return result.reshape(large) if keepdims else result


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Return the n-th powers of matrices."""
    return call("linalg_matrix_power", x, n)


def _limit(name: str, values: Tensor, x: Tensor, rtol: Any) -> Tensor:
    largest = call("amax", values, (-1,), keepdim=True)
    if rtol is None:
        rtol = max(x.shape[-2:]) * finfo(x.dtype).eps
    elif is_tensor(rtol):
        rtol = rtol.to(values.dtype).unsqueeze(-1)
    return call("mul", largest, rtol)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """Return how many singular values are above `rtol` times the largest."""
    if x.ndim < 2:
        raise ShapeError(f"matrix_rank: at least 2 dimensions are required, got {tuple(x.shape)}")
    values = svdvals(x)
    if values.shape[-1] == 0:
        return call("zeros", tuple(x.shape[:-2]), dtype="int64")
    return call("sum", (values > _limit("matrix_rank", values, x, rtol)).to("int64"), (-1,))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Return the transposed matrices, a view."""
    return x.mT


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return the outer product of two vectors."""
    a, b = common(x1, x2)
    if a.ndim != 1 or b.ndim != 1:
        raise ShapeError(
            f"outer: vectors are required, got shapes {tuple(a.shape)} and {tuple(b.shape)}"
        )
    return call("mul", a.unsqueeze(1), b)


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """Return pseudo-inverses; singular values below `rtol` times the largest count as 0."""
    if 0 in x.shape:
        return call("zeros", (*x.shape[:-2], x.shape[-1], x.shape[-2]), dtype=x.dtype)
    u, s, vh = svd(x, full_matrices=False)
    large = s > _limit("pinv", s, x, rtol)
    inverse = call("where", large, 1 / s, call("zeros_like", s)).unsqueeze(-2).to(x.dtype)
    return call("matmul", conj(vh.mT) * inverse, conj(u.mT))


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """Return orthonormal and upper triangular factors."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f'qr: `mode` must be "reduced" or "complete", got {mode!r}')
    return QRResult(*several("linalg_qr", x, mode))


def slogdet(x: Tensor, /) -> SlogdetResult:
    """Return the sign and the logarithm of the magnitude of determinants."""
    return SlogdetResult(*several("linalg_slogdet", x))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return the x of ``x1 @ x = x2``; `x2` is a vector only if it has one dimension."""
    a, b = common(x1, x2)
    vector = b.ndim == 1
    if vector:
        b = b.unsqueeze(-1)
    while b.ndim < a.ndim:  # a matrix is never read as a batch of vectors
        b = b.unsqueeze(0)
    while a.ndim < b.ndim:
        a = a.unsqueeze(0)
    result = call("linalg_solve", a, b)
    return result.squeeze(-1) if vector else result


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """Return the singular value decomposition."""
    return SVDResult(*several("linalg_svd", x, full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """Return the singular values."""
    return call("linalg_svdvals", x)


def tensordot(
    x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Tensor:
    """Return the sum of products over pairs of axes: the last of `x1` with the first of `x2`, or
    those that are named.
    """
    a, b = common(x1, x2)
    if isinstance(axes, int):
        first, second = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    else:
        first = [wrap_axis("tensordot", each, a.ndim) for each in axes[0]]
        second = [wrap_axis("tensordot", each, b.ndim) for each in axes[1]]
    if [a.shape[i] for i in first] != [b.shape[i] for i in second]:
        raise ShapeError(
            f"tensordot: the axes {first} of shape {tuple(a.shape)} must be as long as "
            f"{second} of {tuple(b.shape)}"
        )
    left = [i for i in range(a.ndim) if i not in first]
    right = [i for i in range(b.ndim) if i not in second]
    inner = math.prod(a.shape[i] for i in first)
    shape = (*(a.shape[i] for i in left), *(b.shape[i] for i in right))
    rows = math.prod(a.shape[i] for i in left)
    columns = math.prod(b.shape[i] for i in right)
    matrix = a.permute((*left, *first)).reshape((rows, inner))
    other = b.permute((*second, *right)).reshape((inner, columns))
    return call("matmul", matrix, other).reshape(shape)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """Return the sums of diagonals."""
    return total(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return the sums of ``conj(x1) * x2`` along an axis; the others broadcast."""
    a, b = common(x1, x2)
    for each in (a, b):
        wrap_axis("vecdot", axis, each.ndim)
    if a.shape[axis] != b.shape[axis]:
        raise ShapeError(
            f"vecdot: equal sizes along `axis` {axis} are required, got shapes {tuple(a.shape)} "
            f"and {tuple(b.shape)}"
        )
    a, b = (each.movedim(axis, -1) for each in (a, b))
    return call("sum", conj(a) * b, (-1,), dtype=a.dtype)


def vector_norm(
    x: Tensor,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    ord: float = 2,
) -> Tensor:
    """Return norms of vectors, which lie along one axis or several."""
    axes = axes_of("vector_norm", axis, x.ndim)
    size = call("abs", x)
    if not axes:
        return (size != 0).to(size.dtype) if ord == 0 else size
    if ord in (math.inf, -math.inf):
        if any(x.shape[i] == 0 for i in axes) and ord == math.inf:
            return call("sum", size, axes, keepdim=keepdims)
        return call("amax" if ord > 0 else "amin", size, axes, keepdim=keepdims)
    if ord == 0:
        return call("sum", (size != 0).to(size.dtype), axes, keepdim=keepdims)
    if ord == 1:
        return call("sum", size, axes, keepdim=keepdims)
    if ord == 2:
        return call("sqrt", call("sum", size * size, axes, keepdim=keepdims))
    return call("pow", call("sum", size**ord, axes, keepdim=keepdims), 1 / ord)
