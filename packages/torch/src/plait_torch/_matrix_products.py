"""Products of matrices under the names that PyTorch has for them."""

from __future__ import annotations

from typing import Any

import plait
from plait.nn.functional import grouped_mm

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


_grouped_mm = grouped_mm
