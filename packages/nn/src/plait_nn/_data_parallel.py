"""`DataParallel`, for programs that wrap their model in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plait_nn._module import Module

__all__ = ["DataParallel"]


class DataParallel(Module):
    """A wrapper that calls a module; there is only one device, so batches are not divided.

    Names in the state begin with ``module.``, as in PyTorch.

    Args:
        module: The module.
        device_ids: Unused: there are no further devices.
        output_device: Unused.
        dim: The dimension of the batch.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> model = nn.DataParallel(nn.Linear(2, 3))
        >>> tuple(model(pc.ones(4, 2)).shape), list(model.state_dict())
        ((4, 3), ['module.weight', 'module.bias'])
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        self.module = module
        self.device_ids: list[Any] = []
        self.output_device = output_device
        self.dim = dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)
