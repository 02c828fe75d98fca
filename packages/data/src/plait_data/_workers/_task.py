"""The job of workers, and the kinds of results, for processes and threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["BATCH", "END", "ERROR", "READY", "STREAM_APART", "Job"]

BATCH, END, ERROR, READY = range(4)
STREAM_APART = 1 << 40  # difference between the sample numbers of two workers' streams


@dataclass
class Job:
    """The data that a worker needs to make batches.

    Attributes:
        dataset: of the loader.
        collate_fn: of the loader; None for the default collation.
        worker_init_fn: of the loader.
        iterable: whether the dataset is a stream.
        batched: whether samples are collated.
        batch_size: of a stream.
        drop_last: of a stream.
        globals_too: whether the global generators are seeded for each index.
        converter: for a ``collate_fn`` that calls the default collation, pickled.
    """

    dataset: Any
    collate_fn: Callable[[Any], Any] | None
    worker_init_fn: Callable[[int], None] | None
    iterable: bool
    batched: bool
    batch_size: int | None
    drop_last: bool
    globals_too: bool
    converter: Any
