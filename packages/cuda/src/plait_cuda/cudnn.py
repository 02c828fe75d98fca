"""cuDNN, NVIDIA's library of convolutions, which is used where it is installed.

It is that of the package nvidia-cudnn-cu13 (``pip install "plait-cuda[libraries]"``) or of the
system, and is opened at its first use. With PLAIT_CUDA_CUDNN=0 in the environment it never is.
Without it convolutions run by plait-cuda's own kernels.

Example:
    >>> from plait_cuda import cudnn
    >>> cudnn.is_available() == (cudnn.version() is not None)
    True
"""

from __future__ import annotations

import ctypes

from plait_cuda._library import library

__all__ = ["is_available", "is_enabled", "set_enabled", "version"]

library.plait_cuda_cudnn_version.restype = ctypes.c_int64


def version() -> int | None:
    """Return the library's version, such as 91300 for 9.13.0; None where it is not used.

    Example:
        >>> from plait_cuda import cudnn
        >>> (cudnn.version() or 90000) >= 90000
        True
    """
    number: int = library.plait_cuda_cudnn_version()
    return number or None


def is_available() -> bool:
    """Return whether the library was found.

    Example:
        >>> from plait_cuda import cudnn
        >>> cudnn.is_available() in (True, False)
        True
    """
    return version() is not None


def set_enabled(mode: bool) -> None:
    """Let convolutions go to the library, or to plait-cuda's own kernels; at first they go to it.

    Example:
        >>> from plait_cuda import cudnn
        >>> cudnn.set_enabled(False)
        >>> cudnn.is_enabled()
        False
        >>> cudnn.set_enabled(True)
    """
    library.plait_cuda_enable_cudnn(bool(mode))


def is_enabled() -> bool:
    """Return whether convolutions may go to the library: see `set_enabled`.

    Example:
        >>> from plait_cuda import cudnn
        >>> cudnn.is_enabled()
        True
    """
    return bool(library.plait_cuda_cudnn_enabled())
