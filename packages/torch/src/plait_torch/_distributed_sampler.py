"""`DistributedSampler`, by default with the process group's size and rank."""

from __future__ import annotations

from typing import Any

import plait
from plait import _aliases
from plait_abi.components import require
from plait_torch import _distributed

__all__ = ["DistributedSampler"]


_DistributedSampler: Any = require("data").DistributedSampler


class DistributedSampler(_DistributedSampler):
    """Every process gets each `num_replicas`-th index from its rank on, all the same number.

    Args and errors: those of ``plait_data.DistributedSampler``; without a process group
    ``num_replicas`` and ``rank`` must be given.

    Example:
        >>> from plait_torch._distributed_sampler import DistributedSampler
        >>> list(DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False))
        [1, 3, 0]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        groups = require("distributed") if _aliases.is_installed("distributed") else _distributed
        replicas = groups.get_world_size() if num_replicas is None else num_replicas
        own_rank = groups.get_rank() if rank is None else rank
        super().__init__(dataset, replicas, own_rank, shuffle, seed, drop_last)

    def _permutation(self, size: int) -> Any:
        generator = plait.Generator().manual_seed(self.seed + self.epoch)
        return plait.randperm(size, generator=generator).numpy()
