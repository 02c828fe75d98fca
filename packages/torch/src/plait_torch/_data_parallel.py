"""`torch.nn.parallel.DistributedDataParallel` with the package for several processes."""

from __future__ import annotations

from typing import Any

from plait_abi.components import require

__all__ = ["DistributedDataParallel"]

DistributedDataParallel: Any = require("distributed").DistributedDataParallel
