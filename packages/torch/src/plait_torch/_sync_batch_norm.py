"""`torch.nn.SyncBatchNorm` with the package for several processes."""

from __future__ import annotations

from typing import Any

from plait_abi.components import require

__all__ = ["SyncBatchNorm"]

SyncBatchNorm: Any = require("distributed").SyncBatchNorm
