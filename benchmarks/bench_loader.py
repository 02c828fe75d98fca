"""Worker processes against torch's: throughput of large batches, and the time to the first batch.

    python benchmarks/run.py --only loader

Both sides read the same rows, ours as NumPy arrays and torch's as its tensors, and pass batches to
a consumer that keeps none. Throughput is that of epochs with persistent workers. The first batch is
timed from the loader's iter() with workers that don't exist yet: plait's own start, torch's "spawn"
(its "fork" is fast, and unsafe once a program has threads).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.utils.data
from loader_samples import Rows, Words, epoch
from timing import Case, Figure

import plait_data

__all__ = ["CHEAP", "FIGURES", "cases"]

CHEAP = False  # starts workers

WORKERS = 2
FIRST_BATCH_SECONDS = 0.5
GROWTH_MEGABYTES = 5.0


def loaders(width: int, batch: int, batches: int) -> tuple[Any, Any]:
    """Both sides' loaders of the same rows, with persistent workers."""
    options: Any = {"num_workers": WORKERS, "persistent_workers": True}
    size = batch * batches
    ours: Any = plait_data.DataLoader(Rows(size, width), batch, **options)
    rows: Any = Rows(size, width, torch.from_numpy)
    return ours, torch.utils.data.DataLoader(rows, batch, **options)


def first(make: Callable[[], Any]) -> Callable[[], object]:
    """A function that starts workers, takes one batch and ends them."""

    def run() -> object:
        return next(iter(make()))

    return run


def cases() -> list[Case]:
    """The cases: see `timing.Case`."""
    large = loaders(62_500, 16, 48)
    single = loaders(1_000_000, 1, 48)
    small = loaders(784, 128, 48)
    data: Any = Rows(64, 784)
    peer: Any = Rows(64, 784, torch.from_numpy)
    spawned: Any = {"num_workers": WORKERS, "multiprocessing_context": "spawn"}
    return [
        ("2 workers, 16 rows to a million floats", epoch(large[0]), epoch(large[1]), 1 / 3),
        ("2 workers, one sample of a million floats", epoch(single[0]), epoch(single[1]), 1 / 3),
        ("2 workers, 128 images of 28x28", epoch(small[0]), epoch(small[1]), None),
        (
            "first batch of 2 new workers",
            first(lambda: plait_data.DataLoader(data, 32, num_workers=WORKERS)),
            first(lambda: torch.utils.data.DataLoader(peer, 32, **spawned)),
            0.25,
        ),
    ]


def first_batch() -> Iterator[Figure]:
    """The smallest of five times, to exclude the load of other programs."""
    data = Rows(64, 784)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        next(iter(plait_data.DataLoader(data, 32, num_workers=WORKERS)))
        seconds.append(time.perf_counter() - start)
    note = "least of five; torch's is in the case above"
    yield Figure("first batch of 2 new workers", min(seconds), FIRST_BATCH_SECONDS, "s", note)


def growth() -> Iterator[Figure]:
    """The growth of a worker's private memory from its first batch to the end of an epoch."""
    data = Words(1_000_000)
    batches: Any = iter(plait_data.DataLoader(data, 1000, num_workers=WORKERS, shuffle=True))
    next(batches)
    pids = batches._pool.pids
    before = [_private(pid) for pid in pids]
    for count, _ in enumerate(batches):
        if count == 990:
            after = [_private(pid) for pid in pids]
    most = max(b - a for a, b in zip(before, after, strict=True))
    note = "Private_Dirty, over an epoch of a million pairs of text and number"
    yield Figure("growth of a worker's private memory", most, GROWTH_MEGABYTES, "MB", note)


def _private(pid: int) -> float:
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file.readlines()[1:])
    return int(fields["Private_Dirty"].split()[0]) / 1024


FIGURES: dict[str, Callable[[], Iterator[Figure]]] = {
    "first batch": first_batch,
    "private memory": growth,
}
