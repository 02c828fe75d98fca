"""`torch.nn.parallel` beside `DataParallel`: several devices, of which there are none."""

from __future__ import annotations

from typing import Any

import plait

__all__ = ["DistributedDataParallel", "data_parallel"]


class DistributedDataParallel(plait.nn.Module):
    """Refused when it is made: plait trains in one process. The name is there to be imported."""

    def __init__(self, module: Any, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "torch.nn.parallel.DistributedDataParallel: plait trains in one process; leave the "
            "launcher out and use the program's single-process path"
        )


def data_parallel(
    module: Any,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Call a module with inputs, a tuple or the only one."""
    positional = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*positional, **(module_kwargs or {}))
