"""Collectives with derivatives, and layers that use them."""

from __future__ import annotations

from plait_distributed.nn import functional
from plait_distributed.nn._sync_batch_norm import SyncBatchNorm
from plait_distributed.nn.functional import (
    all_gather,
    all_reduce,
    all_to_all,
    all_to_all_single,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    scatter,
)

__all__ = [
    "SyncBatchNorm",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "functional",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]
