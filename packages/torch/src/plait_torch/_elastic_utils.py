"""`torch.distributed.elastic.utils`: variables of the environment, loggers, samplers."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from string import Template
from typing import Any

import plait
from plait_torch._distributed_sampler import DistributedSampler
from plait_torch._free_port import get_socket_with_port

__all__ = [
    "CyclingIterator",
    "ElasticDistributedSampler",
    "get_env_variable_or_raise",
    "get_log_level",
    "get_logger",
    "get_socket_with_port",
    "macros",
]


def get_env_variable_or_raise(env_name: str) -> str:
    """Return a variable of the environment.

    Raises:
        ValueError: if it is not set.

    Example:
        >>> from plait_torch._elastic_utils import get_env_variable_or_raise
        >>> get_env_variable_or_raise("PATH") != ""
        True
    """
    value = os.environ.get(env_name)
    if value is None:
        raise ValueError(f"Environment variable {env_name} expected, but not set")
    return value


def get_log_level() -> str:
    """Return the level of loggers: that of the variable LOGLEVEL, or "WARNING"."""
    return os.environ.get("LOGLEVEL", "WARNING")


def get_logger(name: str | None = None) -> logging.Logger:
    """Return the logger of a name, by default of the caller's module, with `get_log_level`.

    Example:
        >>> from plait_torch._elastic_utils import get_logger
        >>> get_logger("loader").name
        'loader'
    """
    logger = logging.getLogger(name or sys._getframe(1).f_globals.get("__name__"))
    logger.setLevel(get_log_level())
    return logger


class macros:  # noqa: N801 - PyTorch's name
    """What arguments of a started program may contain: ``${local_rank}``."""

    local_rank = "${local_rank}"

    @staticmethod
    def substitute(args: Sequence[Any], local_rank: str) -> list[str]:
        """Return the arguments with the process's number among those of its host.

        Example:
            >>> from plait_torch._elastic_utils import macros
            >>> macros.substitute(["--device", "${local_rank}"], "3")
            ['--device', '3']
        """
        return [Template(str(arg)).safe_substitute(local_rank=local_rank) for arg in args]


class CyclingIterator:
    """The items of an iterator for each epoch, one epoch after the other.

    Args:
        n: the number of epochs.
        generator_fn: gives the iterator of an epoch.
        start_epoch: the first one.

    Example:
        >>> from plait_torch._elastic_utils import CyclingIterator
        >>> list(CyclingIterator(3, lambda epoch: iter([epoch, 10 * epoch]), start_epoch=1))
        [1, 10, 2, 20]
    """

    def __init__(
        self, n: int, generator_fn: Callable[[int], Iterator[Any]], start_epoch: int = 0
    ) -> None:
        self._n = n
        self._epoch = start_epoch
        self._generator_fn = generator_fn
        self._iterator = generator_fn(start_epoch)

    def __iter__(self) -> CyclingIterator:
        return self

    def __next__(self) -> Any:
        while True:
            try:
                return next(self._iterator)
            except StopIteration:
                if self._epoch >= self._n - 1:
                    raise
            self._epoch += 1
            self._iterator = self._generator_fn(self._epoch)


class ElasticDistributedSampler(DistributedSampler):
    """A `DistributedSampler` of the samples from ``start_index`` on, shuffled by the epoch.

    Args:
        dataset: has a length.
        num_replicas: the number of processes; None: of the process group.
        rank: this one's; None: in the process group.
        start_index: the samples before it were seen before the restart.

    Raises:
        ValueError: if there is no sample from ``start_index`` on, or no such rank.

    Example:
        >>> from plait_torch._elastic_utils import ElasticDistributedSampler
        >>> sampler = ElasticDistributedSampler(range(7), 2, 1, start_index=4)
        >>> len(sampler), sampler.total_size
        (2, 4)
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        start_index: int = 0,
    ) -> None:
        super().__init__(dataset, num_replicas, rank)
        if not 0 <= start_index < len(dataset):
            raise ValueError(
                f"Start index {start_index} should be less than dataset size {len(dataset)}"
            )
        self.start_index = start_index
        self.num_samples = -(-(len(dataset) - start_index) // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        size = len(self.dataset) - self.start_index
        generator = plait.Generator().manual_seed(self.epoch)
        order = [self.start_index + i for i in plait.randperm(size, generator=generator).tolist()]
        order += order[: self.total_size - size]
        return iter(order[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return int(self.num_samples)
