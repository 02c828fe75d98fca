"""`torch.nn.parallel` besides `DataParallel`, which calls a module on one device."""

from __future__ import annotations

from typing import Any

import plait
from plait_torch._refusal import refusing

__all__ = [
    "DistributedDataParallel",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
    "scatter_kwargs",
]


class DistributedDataParallel(plait.nn.Module):
    """A class whose constructor raises: plait-distributed is not installed."""

    def __init__(self, module: Any, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "torch.nn.parallel.DistributedDataParallel: the package plait-distributed is not "
            "installed (pip install plait-distributed); or use the program's single-process path"
        )


def data_parallel(
    module: Any,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Call a module with inputs, a tuple or a single input."""
    positional = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*positional, **(module_kwargs or {}))


def _between_devices(name: str) -> Any:
    text = (
        f"torch.nn.parallel.{name}: a process computes on one device; call the module, or "
        "`DataParallel` of it; `DistributedDataParallel` uses several devices"
    )
    doc = "Refuse: a process computes on one device."
    return refusing(name, lambda: NotImplementedError(text), doc)


gather = _between_devices("gather")
parallel_apply = _between_devices("parallel_apply")
replicate = _between_devices("replicate")
scatter = _between_devices("scatter")
scatter_kwargs = _between_devices("scatter_kwargs")
