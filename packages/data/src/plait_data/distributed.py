"""The share of each process in a dataset, for data-parallel training."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterator, Sized
from typing import Any

import numpy as np

from plait_data._sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th index of an order that all processes share, from `rank` on.

    All processes draw the same order of an epoch, from the seed and the epoch's number, so their
    shares are disjoint, except for the indices that fill up the last round.

    Args:
        dataset: an object with a length.
        num_replicas: the number of processes; None: of the default process group of
            `plait.distributed`, if there is one.
        rank: the number of this process; None: its rank in that group.
        shuffle: draw a random order for each epoch.
        seed: the seed of the orders, the same in all processes.
        drop_last: drop an incomplete last round; otherwise it is filled with indices from the
            beginning.

    Call `set_epoch` before each epoch; otherwise all epochs have the same order, as in PyTorch.

    Attributes:
        num_samples: the number of indices of an iteration, the same in all processes.
        total_size: the number of indices of all processes.

    Raises:
        ValueError: ``rank`` is out of range, or one of the two is missing. From an iteration:
            attributes, or the size of the dataset, were changed so that processes would get
            different numbers of indices, or no process some of the samples.
        TypeError: one of the numbers is not an integer.

    Example:
        >>> from plait_data import DistributedSampler
        >>> [list(DistributedSampler("abcde", 2, rank, shuffle=False)) for rank in range(2)]
        [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        groups: Any = sys.modules.get("plait_distributed")
        if groups is not None and groups.is_initialized():
            num_replicas = groups.get_world_size() if num_replicas is None else num_replicas
            rank = groups.get_rank() if rank is None else rank
        if num_replicas is None or rank is None:
            raise ValueError(
                "DistributedSampler: `num_replicas` and `rank` must be given, or "
                "plait.distributed.init_process_group() called before; got "
                f"{num_replicas} and {rank}"
            )
        num_replicas, rank, seed = _whole(num_replicas=num_replicas, rank=rank, seed=seed)
        if not 0 <= rank < num_replicas:
            raise ValueError(
                f"DistributedSampler: `rank` must be in [0, {num_replicas}); got {rank}"
            )
        if seed < 0:
            raise ValueError(f"DistributedSampler: `seed` must be >= 0; got {seed}")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self.epoch = 0
        size = len(dataset)
        self.num_samples = size // num_replicas if drop_last else -(-size // num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        size = len(self.dataset)
        order = np.arange(size)
        if self.shuffle:
            order = self._permutation(size)
        total = self.total_size
        if self.drop_last:
            order = order[:total]
        elif size < total:
            order = np.resize(order, total)  # repeated from its beginning
        indices = order[self.rank :: self.num_replicas].tolist()
        if (len(order), len(indices)) != (total, self.num_samples):
            raise ValueError(
                "DistributedSampler: `num_samples` and `total_size` no longer fit the dataset and "
                f"`num_replicas`; got {self.num_samples} and {total} for {size} samples "
                f"and {self.num_replicas} replicas"
            )
        return iter(indices)

    def _permutation(self, size: int) -> Any:
        return np.random.default_rng([self.seed, self.epoch]).permutation(size)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the epoch, on which the order of the next iteration depends.

        Example:
            >>> from plait_data import DistributedSampler
            >>> sampler = DistributedSampler(range(100), 2, 0)
            >>> first = list(sampler)
            >>> sampler.set_epoch(1)
            >>> first == list(sampler)
            False
        """
        (epoch,) = _whole(epoch=epoch)
        if epoch < 0:
            raise ValueError(f"set_epoch: `epoch` must be >= 0; got {epoch}")
        self.epoch = epoch

    def state_dict(self) -> dict[str, Any]:
        """The number of the epoch, for resuming a loader.

        Example:
            >>> from plait_data import DistributedSampler
            >>> DistributedSampler(range(4), 2, 0).state_dict()
            {'epoch': 0}
        """
        return {"epoch": self.epoch}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load a result of `state_dict`.

        Example:
            >>> from plait_data import DistributedSampler
            >>> sampler = DistributedSampler(range(4), 2, 0)
            >>> sampler.load_state_dict({"epoch": 3})
            >>> sampler.epoch
            3
        """
        self.set_epoch(state["epoch"])


def _whole(**numbers: Any) -> list[int]:
    for name, number in numbers.items():
        if not hasattr(number, "__index__"):
            raise TypeError(
                f"DistributedSampler: `{name}` must be an integer; got {type(number).__name__}"
            )
    return [operator.index(number) for number in numbers.values()]
