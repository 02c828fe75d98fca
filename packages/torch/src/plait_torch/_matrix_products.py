"""Products of matrices of integers, and of groups of rows with a matrix each."""

from __future__ import annotations

from typing import Any

import plait

__all__ = ["_grouped_mm", "_int_mm", "grouped_mm"]


def _int_mm(self: Any, mat2: Any, *, out: Any = None) -> Any:
    """Return the product of two matrices of int8, or uint8 and int8, as int32.

    Raises:
        RuntimeError: for other dtypes, or shapes that do not match.

    Example:
        >>> import plait
        >>> from plait_torch._matrix_products import _int_mm
        >>> _int_mm(plait.full((1, 3), 100, dtype=plait.int8), plait.eye(3, dtype=plait.int8) * 100)
        tensor([[10000, 10000, 10000]], dtype=int32)
    """
    if self.dtype not in (plait.int8, plait.uint8) or mat2.dtype != plait.int8:
        raise RuntimeError(
            "_int_mm: int8 or uint8, and int8 are required; got "
            f"{self.dtype.name} and {mat2.dtype.name}"
        )
    if self.dim() != 2 or mat2.dim() != 2 or self.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            "_int_mm: shapes (m, k) and (k, n) are required; got "
            f"{tuple(self.shape)} and {tuple(mat2.shape)}"
        )
    shape = (self.shape[0], mat2.shape[1])
    if out is not None and (out.dtype != plait.int32 or tuple(out.shape) != shape):
        raise RuntimeError(
            f"_int_mm: `out` must have the dtype int32 and the shape {shape}; got "
            f"{out.dtype.name} and {tuple(out.shape)}"
        )
    product = self.to(plait.int32) @ mat2.to(plait.int32)
    return product if out is None else out.copy_(product)


def grouped_mm(
    mat_a: Any, mat_b: Any, *, offs: Any = None, bias: Any = None, out_dtype: Any = None
) -> Any:
    """Return the products of groups, of which each has its own matrix.

    Args:
        mat_a: ``(m, k)``, or ``(g, m, k)`` for g groups.
        mat_b: ``(k, n)``, or ``(g, k, n)``.
        offs: where each group ends: for ``(m, k)`` and ``(g, k, n)`` in the rows of `mat_a`, for
            ``(g, m, k)`` and ``(k, n)`` in the columns of `mat_b`, and for two matrices along k;
            None with three dimensions each.
        bias: not available, as in PyTorch.
        out_dtype: the dtype of the result; None is that of `mat_a`.

    Returns:
        ``(m, n)`` where one argument has three dimensions, else ``(g, m, n)``. What lies behind the
        last group is 0.

    Raises:
        RuntimeError: for shapes that do not match, and for a `bias`.

    Example:
        >>> import plait
        >>> from plait_torch._matrix_products import grouped_mm
        >>> weights = plait.stack([plait.eye(2), 10 * plait.eye(2)])
        >>> grouped_mm(plait.ones(3, 2), weights, offs=plait.tensor([1, 3], dtype=plait.int32))
        tensor([[ 1.,  1.],
                [10., 10.],
                [10., 10.]])
    """
    _check_groups(mat_a, mat_b, offs, bias)
    dtype = mat_a.dtype if out_dtype is None else out_dtype
    if offs is None:
        return (mat_a @ mat_b).to(dtype)
    ends = [int(end) for end in offs.tolist()]
    spans = list(zip([0, *ends[:-1]], ends, strict=True))
    if mat_a.dim() == mat_b.dim() == 2:
        parts = [mat_a[:, first:end] @ mat_b[first:end] for first, end in spans]
        return plait.stack(parts).to(dtype)
    if mat_a.dim() == 2:
        parts = [mat_a[first:end] @ mat_b[i] for i, (first, end) in enumerate(spans)]
        rest = mat_a.new_zeros((mat_a.shape[0] - ends[-1], mat_b.shape[2]))
        return plait.cat([*parts, rest]).to(dtype)
    parts = [mat_a[i] @ mat_b[:, first:end] for i, (first, end) in enumerate(spans)]
    rest = mat_a.new_zeros((mat_a.shape[1], mat_b.shape[1] - ends[-1]))
    return plait.cat([*parts, rest], 1).to(dtype)


def _check_groups(mat_a: Any, mat_b: Any, offs: Any, bias: Any) -> None:
    shapes = f"{tuple(mat_a.shape)} and {tuple(mat_b.shape)}"
    if bias is not None:
        raise RuntimeError("grouped_mm: `bias` is not available; add it to the result")
    if mat_a.dim() not in (2, 3) or mat_b.dim() not in (2, 3):
        raise RuntimeError(f"grouped_mm: two or three dimensions are required; got {shapes}")
    if mat_a.shape[-1] != mat_b.shape[-2]:
        raise RuntimeError(f"grouped_mm: the inner sizes must be equal; got {shapes}")
    if (offs is None) != (mat_a.dim() == mat_b.dim() == 3):
        raise RuntimeError(
            f"grouped_mm: `offs` is required unless both have three dimensions; got {shapes}"
        )
    if offs is None:
        if mat_a.shape[0] != mat_b.shape[0]:
            raise RuntimeError(f"grouped_mm: the numbers of groups must be equal; got {shapes}")
        return
    groups = mat_a.shape[0] if mat_a.dim() == 3 else mat_b.shape[0] if mat_b.dim() == 3 else None
    if offs.dim() != 1 or (groups is not None and len(offs) != groups):
        raise RuntimeError(
            f"grouped_mm: `offs` must have one number for each group of {shapes}; got the shape "
            f"{tuple(offs.shape)}"
        )
    if mat_a.dim() == mat_b.dim() == 2:
        length = mat_a.shape[1]
    else:
        length = mat_a.shape[0] if mat_a.dim() == 2 else mat_b.shape[1]
    ends = offs.tolist()
    if ends != sorted(ends) or not ends or ends[0] < 0 or ends[-1] > length:
        raise RuntimeError(f"grouped_mm: `offs` must grow from 0 to at most {length}; got {ends}")


_grouped_mm = grouped_mm
