"""`torch.cuda.profiler`, and of the CUDA runtime what programs call: plait speaks to the driver."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import plait
from plait_abi import components

__all__ = ["profile", "start", "stop"]


def _switch(on: bool) -> None:
    plait.cuda.synchronize()  # the device is in use, and nothing of before is recorded
    package = importlib.import_module(str(components.choose("cuda")))
    if hasattr(package, "profiler"):  # else there are no tools of NVIDIA
        package.profiler(on)


def start() -> None:
    """Let tools such as ``nsys profile --capture-range=cudaProfilerApi`` begin to record."""
    _switch(True)


def stop() -> None:
    """Let such tools end what they record."""
    _switch(False)


@contextmanager
def profile() -> Iterator[None]:
    """Return a context that such tools record."""
    start()
    try:
        yield
    finally:
        stop()


class Runtime:
    """What `torch.cuda.cudart` returns: the functions of the CUDA runtime that programs call to
    guide tools and to ask for memory. Each but `cudaMemGetInfo` returns 0, which means success.
    """

    def cudaProfilerStart(self) -> int:  # noqa: N802 - NVIDIA's names
        """Do what `torch.cuda.profiler.start` does."""
        start()
        return 0

    def cudaProfilerStop(self) -> int:  # noqa: N802
        """Do what `torch.cuda.profiler.stop` does."""
        stop()
        return 0

    def cudaMemGetInfo(self, device: Any = None) -> tuple[int, int]:  # noqa: N802
        """Return the free and the total bytes of a device."""
        result: tuple[int, int] = plait.cuda.mem_get_info(device)
        return result

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"torch.cuda.cudart().{name} is not available: plait calls the driver, and no CUDA "
            "runtime is loaded"
        )
