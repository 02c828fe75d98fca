"""What NVIDIA's tools are told by a program."""

from __future__ import annotations

import ctypes

__all__ = ["profiler"]


def profiler(on: bool) -> None:
    """Tell NVIDIA's tools that wait for the program to begin or to end what they record.

    ``nsys profile --capture-range=cudaProfilerApi`` is one of them.

    Args:
        on: begin, or end.

    Raises:
        RuntimeError: if the driver refuses.

    Example:
        >>> import plait_core as pc
        >>> import plait_cuda
        >>> if plait_cuda.is_available():
        ...     x = pc.ones(1, device="cuda")
        ...     plait_cuda.profiler(True)
        ...     plait_cuda.profiler(False)
    """
    # the driver, or the emulation, is open: this finds it by its name
    library = ctypes.CDLL("libcuda.so.1")
    status = library.cuProfilerStart() if on else library.cuProfilerStop()
    if status:
        raise RuntimeError(f"profiler: error {status} of the driver")
