"""What `torch.cuda` asks NVIDIA's management library: use, temperature, power and processes of a
device. It is spoken to by the package pynvml (``pip install nvidia-ml-py``).
"""

from __future__ import annotations

from typing import Any

import plait

__all__ = [
    "clock_rate",
    "device_memory_used",
    "list_gpu_processes",
    "memory_usage",
    "power_draw",
    "temperature",
    "utilization",
]


def _library() -> Any:
    try:
        import pynvml
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "pynvml does not seem to be installed or it can't be imported: "
            "pip install nvidia-ml-py",
            name="pynvml",
        ) from error
    pynvml.nvmlInit()
    return pynvml


def _opened(device: Any) -> tuple[Any, Any]:
    """Return the library, and its handle of a device."""
    library = _library()
    number = plait.cuda.get_device_properties(device).uuid
    return library, library.nvmlDeviceGetHandleByUUID(f"GPU-{number}")


def utilization(device: Any = None) -> int:
    """Return the percentage of the last second or less in which a kernel ran on the device."""
    library, handle = _opened(device)
    return int(library.nvmlDeviceGetUtilizationRates(handle).gpu)


def memory_usage(device: Any = None) -> int:
    """Return the percentage of the last second or less in which memory was read or written."""
    library, handle = _opened(device)
    return int(library.nvmlDeviceGetUtilizationRates(handle).memory)


def device_memory_used(device: Any = None) -> int:
    """Return the bytes of the device that all processes use."""
    library, handle = _opened(device)
    return int(library.nvmlDeviceGetMemoryInfo(handle).used)


def temperature(device: Any = None) -> int:
    """Return the temperature of the device in degrees Celsius."""
    library, handle = _opened(device)
    return int(library.nvmlDeviceGetTemperature(handle, 0))


def power_draw(device: Any = None) -> int:
    """Return the power of the device in milliwatts."""
    library, handle = _opened(device)
    return int(library.nvmlDeviceGetPowerUsage(handle))


def clock_rate(device: Any = None) -> int:
    """Return the clock of the device's multiprocessors in megahertz."""
    library, handle = _opened(device)
    return int(library.nvmlDeviceGetClockInfo(handle, 1))


def list_gpu_processes(device: Any = None) -> str:
    """Return a text with the processes that compute on the device, and their memory."""
    try:
        library, handle = _opened(device)
    except ModuleNotFoundError:
        return "pynvml module not found, please install pynvml"
    lines = [f"GPU:{plait.device('cuda' if device is None else device).index or 0}"]
    processes = library.nvmlDeviceGetComputeRunningProcesses(handle)
    if not processes:
        lines.append("no processes are running")
    for each in processes:
        used = (each.usedGpuMemory or 0) / (1024 * 1024)
        lines.append(f"process {each.pid:>10d} uses {used:>12.3f} MB GPU memory")
    return "\n".join(lines)
