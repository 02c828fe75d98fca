"""`torch.nn.parallel`: several devices, of which there are none."""

from __future__ import annotations

from typing import Any

import plait

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]


class DataParallel(plait.nn.Module):
    """Call a module; PyTorch splits batches over GPUs, and without any calls the module.

    The module stands under the name ``module``, so that the ``state_dict`` has the names PyTorch's
    has.

    Args:
        module: the module.
        device_ids, output_device, dim: checked by nobody: there are no devices to choose from.

    Example:
        >>> import plait
        >>> from plait.torch._parallel import DataParallel
        >>> list(DataParallel(plait.nn.Linear(1, 1)).state_dict())
        ['module.weight', 'module.bias']
    """

    def __init__(
        self, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.module = module
        self.device_ids: list[Any] = []
        self.output_device = output_device
        self.dim = dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self.module(*inputs, **kwargs)


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
