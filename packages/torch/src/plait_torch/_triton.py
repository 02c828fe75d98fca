"""`torch.utils._triton`: whether the compiler of kernels `triton` can be used."""

from __future__ import annotations

import importlib.util

__all__ = ["has_triton", "has_triton_package"]


def has_triton_package() -> bool:
    """Return whether the package is installed.

    Example:
        >>> from plait_torch._triton import has_triton_package
        >>> isinstance(has_triton_package(), bool)
        True
    """
    return importlib.util.find_spec("triton") is not None


def has_triton(device_type: str | None = None) -> bool:
    """Return False: its kernels take PyTorch's tensors."""
    return False
