"""Tensors that several processes hold together, under the names of `torch.distributed.tensor`."""

from __future__ import annotations

from plait_distributed.device_mesh import DeviceMesh, init_device_mesh
from plait_distributed.tensor._dtensor import DTensor, distribute_tensor
from plait_distributed.tensor._factories import (
    distribute_module,
    empty,
    full,
    ones,
    rand,
    randn,
    zeros,
)
from plait_distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor",
    "DeviceMesh",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
    "empty",
    "full",
    "init_device_mesh",
    "ones",
    "rand",
    "randn",
    "zeros",
]
