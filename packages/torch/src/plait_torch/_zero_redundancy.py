"""`torch.distributed.optim` with the package for several processes."""

from __future__ import annotations

from typing import Any

from plait_abi.imports import import_module

__all__ = ["ZeroRedundancyOptimizer"]

ZeroRedundancyOptimizer: Any = import_module("plait.distributed.optim").ZeroRedundancyOptimizer
