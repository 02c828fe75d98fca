"""NCCL, whose collectives are the provider ``nccl`` of the role `communicator`."""

from __future__ import annotations

from plait_cuda._library import library


def nccl_version() -> tuple[int, int, int] | None:
    """Return the version of NCCL; None where it is not installed.

    The library, libnccl.so.2, is that of the package nvidia-nccl-cu13, which
    ``pip install plait-cuda[libraries]`` brings, or the system's. PLAIT_CUDA_NCCL=0 in the
    environment does without it.

    Example:
        >>> import plait_cuda
        >>> version = plait_cuda.nccl_version()
        >>> version is None or version >= (2, 13, 0)
        True
    """
    number = int(library.plait_cuda_nccl_version())
    return (number // 10000, number // 100 % 100, number % 100) if number else None
