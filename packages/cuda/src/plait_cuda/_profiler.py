"""What NVIDIA's tools are told by a program."""

from __future__ import annotations

from plait_abi import binding
from plait_cuda._library import library

__all__ = ["profiler"]


def profiler(on: bool) -> None:
    """Tell NVIDIA's tools that wait for the program to begin or to end what they record.

    ``nsys profile --capture-range=cudaProfilerApi`` is one of them.

    Args:
        on: begin, or end.

    Raises:
        RuntimeError: if there is no GPU, or the driver refuses.

    Example:
        >>> import plait_core as pc
        >>> import plait_cuda
        >>> if plait_cuda.is_available():
        ...     x = pc.ones(1, device="cuda")
        ...     plait_cuda.profiler(True)
        ...     plait_cuda.profiler(False)
    """
    if not binding.device_count("cuda"):  # it starts the driver
        raise RuntimeError("profiler: there is no GPU")
    status = library.plait_cuda_profiler(int(on))
    if status:
        raise RuntimeError(f"profiler: error {status} of the driver")
