"""The job of workers, the kinds of their results, and their phases as texts for errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

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


STARTING, LOADING, INITIALISING, IDLE, WORKING, COLLATING, SENDING, STREAMING = range(8)
_OTHERWISE = {
    STARTING: "while it started",
    LOADING: "while it loaded the dataset",
    INITIALISING: "in `worker_init_fn`",
    IDLE: "while it waited for work",
    STREAMING: "while it began an iteration of the dataset",
}
_SHOWN = 8


def sample_at(position: int, indices: Any) -> Any:
    """The index of the current sample, or None."""
    if not isinstance(indices, Sequence) or isinstance(indices, str):
        return indices
    return indices[position] if 0 <= position < len(indices) else None


def where(phase: int, batch: int, position: int, indices: Any) -> str:
    """The text for a worker's phase; ``indices`` are those of the batch, None in a stream.

    Example:
        >>> from plait_data._workers._task import COLLATING, WORKING, where
        >>> where(WORKING, 4, 1, [8, 9])
        'at sample 9 (position 1 of batch 4)'
        >>> where(COLLATING, 4, -1, [8, 9])
        'while it collated batch 4 of samples [8, 9]'
    """
    if phase in _OTHERWISE:
        return _OTHERWISE[phase]
    action = "sent" if phase == SENDING else "collated" if phase == COLLATING else "made"
    if indices is None:
        if phase == WORKING and position >= 0:
            return f"at sample {position} of batch {batch} of its stream"
        return f"while it {action} batch {batch} of its stream"
    sample = sample_at(position, indices)
    if phase == WORKING and sample is not None:
        return f"at sample {sample!r} (position {max(position, 0)} of batch {batch})"
    if not isinstance(indices, Sequence) or isinstance(indices, str):  # batch_size=None: one sample
        return f"while it {action} sample {indices!r} (batch {batch})"
    first = list(indices[:_SHOWN])
    more = f" and {len(indices) - _SHOWN} more" if len(indices) > _SHOWN else ""
    return f"while it {action} batch {batch} of samples {first}{more}"
