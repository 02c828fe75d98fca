"""`torch.utils.data._utils`: parts of PyTorch's loader that libraries refer to."""

from __future__ import annotations

from typing import Any

import numpy as np

import plait
from plait_data import WorkerInfo, get_worker_info

__all__ = [
    "MP_STATUS_CHECK_INTERVAL",
    "WorkerInfo",
    "_generate_state",
    "get_worker_info",
    "pin_memory",
]

# seconds between two looks whether PyTorch's workers live
MP_STATUS_CHECK_INTERVAL = 5.0


def __getattr__(name: str) -> Any:
    if name == "_worker_info":  # in PyTorch a variable of each worker
        return get_worker_info()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def pin_memory(data: Any, device: Any = None) -> Any:
    """Return tensors in containers, in memory that an accelerator reads directly if there is one.

    Example:
        >>> import plait
        >>> from plait_torch._data_utils import pin_memory
        >>> pin_memory({"x": plait.ones(2)})
        {'x': tensor([1., 1.])}
    """
    if not plait.accelerator.is_available():
        return data
    if isinstance(data, plait.Tensor):
        return data.pin_memory()
    if isinstance(data, dict):
        return {key: pin_memory(value, device) for key, value in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(each, device) for each in data))
    if isinstance(data, (list, tuple)):
        return type(data)(pin_memory(each, device) for each in data)
    return data.pin_memory() if hasattr(data, "pin_memory") else data


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Return four numbers for the seed of NumPy's generator in a worker: those of PyTorch, which
    are those of `numpy.random.SeedSequence`.

    Example:
        >>> from plait_torch._data_utils import _generate_state
        >>> _generate_state(3, 0)
        [2613022947, 1532590702, 2872237355, 332208895]
    """
    entropy = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return [int(word) for word in np.random.SeedSequence(entropy).generate_state(4)]
