"""`torch.utils._foreach_utils`, which optimizers of others group their tensors with."""

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
        >>> [(key[1], places) for key, (lists, places) in groups.items()]
        [(plait.float32, [0, 2]), (plait.float64, [1])]
    """
    groups: dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]] = {}
    for place, first in enumerate(tensorlistlist[0]):
        lists, places = groups.setdefault(
            (first.device, first.dtype), ([[] for _ in tensorlistlist], [])
        )
        for column, values in zip(lists, tensorlistlist, strict=True):
            if len(values):  # a list may be empty, of a state that is not kept
                column.append(values[place])
        if with_indices:
            places.append(place)
    return groups


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Return []: nowhere is one call for a list faster than calls one by one."""
    return []
