"""The part of workers that programs see: their numbers, and errors if they died or do not
answer.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any


class WorkerError(RuntimeError):
    """A worker process died or does not answer.

    Attributes:
        worker: the number of the worker.
        pid: its process id.
        signal: the number of the signal that ended it, or None.
        status: its exit status, or None.
        index: the index of the sample that it was making, or None.
    """

    worker: int
    pid: int
    signal: int | None = None
    status: int | None = None
    index: Any = None


class WorkerTimeout(WorkerError, TimeoutError):
    """No batch came within the loader's ``timeout``; the text shows the worker's stack."""


_local = threading.local()


@dataclass(frozen=True)
class WorkerInfo:
    """A worker's number, the number of workers, its seed and its dataset.

    Args:
        id: The worker's number.
        num_workers: Number of workers.
        seed: The worker's seed.
        dataset: The worker's copy of the dataset.

    Example:
        >>> from plait_data import WorkerInfo
        >>> info = WorkerInfo(id=1, num_workers=4, seed=7, dataset=range(8))
        >>> list(info.dataset)[info.id :: info.num_workers]
        [1, 5]
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


def get_worker_info() -> WorkerInfo | None:
    """The worker this code runs in, or None outside of workers.

    An iterable dataset asks it to yield only its worker's share; ``dataset`` is the worker's copy
    (with thread workers: the dataset itself). ``seed`` is another number for each worker and epoch.

    Example:
        >>> from plait_data import DataLoader, IterableDataset, get_worker_info
        >>> class Numbers(IterableDataset[int]):
        ...     def __iter__(self):
        ...         info = get_worker_info()
        ...         first, step = (0, 1) if info is None else (info.id, info.num_workers)
        ...         return iter(range(first, 6, step))
        >>> def batches(workers):
        ...     loader = DataLoader(Numbers(), batch_size=2, num_workers=workers)
        ...     return [batch.tolist() for batch in loader]
        >>> batches(0), batches(2)
        ([[0, 1], [2, 3], [4, 5]], [[0, 2], [1, 3], [4], [5]])
    """
    info: WorkerInfo | None = getattr(_local, "info", None)
    return info


def set_worker_info(info: WorkerInfo | None) -> None:
    """Set the information of this worker (process or thread)."""
    _local.info = info
