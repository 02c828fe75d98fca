"""`torch.accelerator`, `torch.mps`, `torch.xpu`, `torch.cpu`: plait has the CPU only."""

from __future__ import annotations

from types import ModuleType
from typing import Any

__all__ = [
    "current_accelerator",
    "current_device_index",
    "device_count",
    "is_available",
    "synchronize",
]


def is_available() -> bool:
    """Return False: there is no accelerator."""
    return False


def device_count() -> int:
    """Return 0, the number of accelerators."""
    return 0


def current_accelerator(check_available: bool = False) -> None:
    """Return None: there is no accelerator."""
    return None


def current_device_index() -> int:
    """Raise: there is no accelerator."""
    raise RuntimeError("torch.accelerator: there is none; ask is_available() first")


def synchronize(device: Any = None) -> None:
    """Raise: there is no accelerator to wait for."""
    raise RuntimeError("torch.accelerator: there is none; ask is_available() first")


def _module(name: str, **names: Any) -> ModuleType:
    module = ModuleType(f"torch.{name}", f"Questions about the device {name}.")
    module.__dict__.update(names, __all__=list(names), __path__=[])  # a package: torch.cpu.amp
    return module


def _nothing(*args: Any) -> None:
    return None


mps = _module(
    "mps",
    is_available=is_available,
    device_count=device_count,
    empty_cache=_nothing,
    manual_seed=_nothing,
    synchronize=_nothing,
)
xpu = _module(
    "xpu",
    is_available=is_available,
    device_count=device_count,
    empty_cache=_nothing,
    manual_seed=_nothing,
    manual_seed_all=_nothing,
)
cpu = _module(
    "cpu",
    is_available=lambda: True,
    device_count=lambda: 1,
    current_device=lambda: "cpu",
    synchronize=_nothing,
)
