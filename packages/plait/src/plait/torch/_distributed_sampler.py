"""`DistributedSampler`: the part of a dataset's indices that one of several processes takes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import plait
from plait.torch._distributed import get_rank, get_world_size
from plait_abi.components import require

__all__ = ["DistributedSampler"]


# without the umbrella's alias, which tells the strand what batches are
_Sampler: Any = require("data").Sampler


class DistributedSampler(_Sampler):
    """Every process takes each `num_replicas`-th index, from its rank on; all as many.

    Args:
        dataset: what is sampled.
        num_replicas, rank: how many processes there are, and which one this is; without a process
            group both must be given.
        shuffle: whether the order differs from epoch to epoch, see `set_epoch`.
        seed: of the order; the same in all processes.
        drop_last: leave out indices so that the parts are equal, instead of repeating some.

    Example:
        >>> from plait.torch._distributed_sampler import DistributedSampler
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
        self.num_replicas = get_world_size() if num_replicas is None else num_replicas
        self.rank = get_rank() if rank is None else rank
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError(
                f"DistributedSampler: `rank` must be in [0, {self.num_replicas - 1}], got {rank}"
            )
        self.dataset, self.shuffle, self.seed, self.drop_last = dataset, shuffle, seed, drop_last
        self.epoch = 0
        share = len(dataset) / self.num_replicas
        self.num_samples = math.floor(share) if drop_last else math.ceil(share)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        indices = list(range(len(self.dataset)))
        if self.shuffle:
            generator = plait.Generator().manual_seed(self.seed + self.epoch)
            indices = plait.randperm(len(indices), generator=generator).tolist()
        if indices and not self.drop_last:
            indices *= math.ceil(self.total_size / len(indices))
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of an epoch."""
        self.epoch = epoch
