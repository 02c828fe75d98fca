"""`torch.distributed.tensor`: names of plait's, and a class that libraries look for."""

from __future__ import annotations

from dataclasses import dataclass

from plait_distributed.device_mesh import DeviceMesh
from plait_distributed.tensor import DTensor, Partial, Placement, Replicate, Shard

__all__ = ["DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "_StridedShard"]


@dataclass(frozen=True)
class _StridedShard(Placement):
    """Each process has parts of several groups along a dimension."""

    dim: int
    split_factor: int = 1
