"""Additions to plait's `nn.functional`: masks of attention, products of groups, annotations."""

from __future__ import annotations

from typing import Any

import plait
from plait_abi.frames import warn
from plait_torch._matrix_products import grouped_mm

__all__ = ["Tensor", "_canonical_mask", "_none_or_dtype", "grouped_mm"]

Tensor = plait.Tensor


def _none_or_dtype(input: Any) -> Any:
    """Return the dtype of a tensor, and None for None.

    Raises:
        RuntimeError: for other values.
    """
    if input is None:
        return None
    if isinstance(input, plait.Tensor):
        return input.dtype
    raise RuntimeError(f"_none_or_dtype: `input` must be a Tensor or None, got {input!r}")


def _canonical_mask(
    mask: Any,
    mask_name: str,
    other_type: Any,
    other_name: str,
    target_type: Any,
    check_other: bool = True,
) -> Any:
    """Return a mask of attention as numbers that are added: True becomes minus infinity.

    Raises:
        AssertionError: if the mask is of integers.

    Example:
        >>> import plait
        >>> from plait_torch._nn_functional import _canonical_mask
        >>> _canonical_mask(plait.tensor([True, False]), "mask", None, "", plait.float32)
        tensor([-inf, 0.])
    """
    if mask is None:
        return None
    is_float = mask.dtype.is_floating_point
    if mask.dtype != plait.bool and not is_float:
        raise AssertionError(
            f"_canonical_mask: {mask_name} must be bool or floating point, got {mask.dtype}"
        )
    if check_other and other_type is not None and mask.dtype != other_type:
        warn(
            f"{mask_name} is of {mask.dtype} and {other_name} of {other_type}: use one dtype for "
            "both"
        )
    if is_float:
        return mask
    return plait.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))
