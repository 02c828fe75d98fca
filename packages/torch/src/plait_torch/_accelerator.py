"""`torch.accelerator` beyond `plait.accelerator`; `torch.mps`, `torch.xpu` and `torch.cpu`."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any

import plait

__all__ = [
    "current_device_idx",
    "device_index",
    "set_device_idx",
    "set_device_index",
]


def current_device_idx() -> int:
    """Return the number of the current accelerator, as `current_device_index` does."""
    index: int = plait.accelerator.current_device_index()
    return index


def set_device_index(device: Any) -> None:
    """Accept the number of the current accelerator.

    Raises:
        NotImplementedError: for another one, which is chosen by the default device.
    """
    if device is not None and _number(device) != current_device_idx():
        raise NotImplementedError(
            f"set_device_index: use torch.set_default_device or torch.device, got {device!r}"
        )


set_device_idx = set_device_index


def device_index(device: int | None) -> AbstractContextManager[Any]:
    """Return a context in which this device of the current accelerator is the default device."""
    current = plait.accelerator.current_accelerator()
    if device is None or current is None:
        return nullcontext()
    chosen: AbstractContextManager[Any] = plait.device(current.type, device)
    return chosen


def _number(device: Any) -> int:
    return device if isinstance(device, int) else plait.device(device).index or 0


def _none() -> bool:
    return False


def _zero() -> int:
    return 0


def _module(name: str, **names: Any) -> ModuleType:
    module = ModuleType(f"torch.{name}", f"Questions about the device {name}.")
    module.__dict__.update(names, __all__=list(names), __path__=[])  # a package: torch.cpu.amp
    return module


def _nothing(*args: Any) -> None:
    return None


mps = _module(
    "mps",
    is_available=_none,
    device_count=_zero,
    empty_cache=_nothing,
    manual_seed=_nothing,
    synchronize=_nothing,
)
xpu = _module(
    "xpu",
    is_available=_none,
    device_count=_zero,
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
