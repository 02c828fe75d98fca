"""`torch.utils._foreach_utils`, by which third-party optimizers group tensors.

torchtune and brevitas use it.
"""

from __future__ import annotations

from plait_optim._groups import group_tensors as _group_tensors_by_device_and_dtype

__all__ = ["_get_foreach_kernels_supported_devices", "_group_tensors_by_device_and_dtype"]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Return []: one call for a list is never faster than single calls."""
    return []
