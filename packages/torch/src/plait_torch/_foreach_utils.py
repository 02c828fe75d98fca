"""`torch.utils._foreach_utils`, by which third-party optimizers group tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["_get_foreach_kernels_supported_devices", "_group_tensors_by_device_and_dtype"]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Any]], with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]]:
    """Return the columns of lists of tensors, by the device and the dtype of the first list.

    Example:
        >>> import plait
        >>> from plait_torch._foreach_utils import _group_tensors_by_device_and_dtype
        >>> a, b = plait.ones(1), plait.ones(1).double()
        >>> groups = _group_tensors_by_device_and_dtype([[a, b, a], [b, b, b]], with_indices=True)
        >>> [(key[1], indices) for key, (lists, indices) in groups.items()]
        [(plait.float32, [0, 2]), (plait.float64, [1])]
    """
    groups: dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]] = {}
    for index, first in enumerate(tensorlistlist[0]):
        lists, indices = groups.setdefault(
            (first.device, first.dtype), ([[] for _ in tensorlistlist], [])
        )
        for column, values in zip(lists, tensorlistlist, strict=True):
            if len(values):  # the list of an unused state may be empty
                column.append(values[index])
        if with_indices:
            indices.append(index)
    return groups


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Return []: one call for a list is never faster than single calls."""
    return []
