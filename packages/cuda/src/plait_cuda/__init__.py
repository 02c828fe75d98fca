"""NVIDIA GPUs: importing this package brings the device type ``cuda``.

The driver (libcuda.so.1) is opened at the first use of a device, so importing works where there is
none. With PLAIT_CUDA_EMULATION=1 in the environment an emulation of the driver takes its place, for
tests: it runs the kernels on the CPU, slowly, and checks what they do.

Example:
    >>> import plait_cuda
    >>> plait_cuda.device_count() >= 0
    True
"""

from __future__ import annotations

import plait_abi
from plait_abi import binding
from plait_cuda._memory import limit_memory, memory_limit
from plait_cuda._nccl import nccl_version
from plait_cuda._profiler import profiler

__all__ = [
    "device_count",
    "is_available",
    "limit_memory",
    "memory_limit",
    "nccl_version",
    "profiler",
]

__version__ = "0.2.0"

plait_abi.load(plait_abi.paths("plait_cuda")["libplait_cuda.so"])


def device_count() -> int:
    """Return the number of GPUs: 0 where there is no driver."""
    return int(binding.device_count("cuda"))


def is_available() -> bool:
    """Return whether there is a GPU."""
    return device_count() > 0
