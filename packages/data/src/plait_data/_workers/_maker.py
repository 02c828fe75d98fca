"""The batches of one epoch in one worker, a process or a thread."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from plait_data import collate
from plait_data._fetch import END, Fetch, Note, Seed, Stream
from plait_data._workers import _task
from plait_data._workers._task import STREAMING, WORKING, Job


class Maker:
    """Makes the batches of the tasks of one epoch.

    Args:
        job: the job.
        worker: the number of this one.
        seed: of the epoch.
        skip: batches of a stream that were made before.
        convert: the converter of the default collation.
        note, seed_globals: see `Fetch`.
        enter_phase: called with a phase when it begins.
    """

    def __init__(
        self,
        job: Job,
        worker: int,
        seed: int,
        skip: int,
        *,
        convert: Any,
        note: Note,
        seed_globals: Seed | None = None,
        enter_phase: Callable[[int], None] = lambda phase: None,
    ) -> None:
        default = collate.default_collate if job.batched else collate.default_convert
        make = job.collate_fn or partial(default, convert=convert)
        self._enter_phase = enter_phase
        self._skip = skip
        self._stream: Stream | None = None
        self._open: Callable[[], Stream] | None = None
        self._fetch: Callable[[Any], Any] | None = None
        if job.iterable:
            # the epoch begins with the first task, to which its errors belong
            self._open = partial(
                Stream,
                job.dataset,
                make,
                seed,
                size=job.batch_size if job.batched else None,
                drop_last=job.drop_last,
                start=worker * _task.STREAM_APART,
                seed_globals=seed_globals,
                note=note,
            )
            return
        fetch = Fetch(
            job.dataset,
            make,
            seed,
            convert=convert,
            whole=job.collate_fn is None and job.batched,
            seed_globals=seed_globals,
            note=note,
        )
        self._fetch = fetch.batch if job.batched else fetch.single

    def batch(self, indices: Any) -> Any:
        """The batch of a task; `END` after the last of a stream, or if it could not begin."""
        if self._fetch is not None:
            return self._fetch(indices)
        begin, self._open = self._open, None
        if begin is not None:
            self._enter_phase(STREAMING)
            stream = begin()
            self._enter_phase(WORKING)
            stream.skip(self._skip)
            self._stream = stream
        return END if self._stream is None else self._stream.batch()
