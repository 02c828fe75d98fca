"""Starting the workers of a loader."""

from __future__ import annotations

import errno
import os
import pickle
from typing import Any

from plait_data._default_context import default_context
from plait_data._workers._task import Job
from plait_data.collate import batch_converter, default_collate, default_convert


def open_pool(loader: Any, seed: int) -> Any:
    """Start the workers of a loader."""
    defaults = (default_collate, default_convert)
    by_default = loader._default_collate or loader.collate_fn in defaults
    job = Job(
        dataset=loader.dataset,
        collate_fn=None if by_default else loader.collate_fn,
        worker_init_fn=loader.worker_init_fn,
        iterable=loader._iterable,
        batched=loader._auto_collation,
        batch_size=loader.batch_size,
        drop_last=loader.drop_last,
        globals_too=loader._exact_globals is not False,
        converter=None,
    )
    context = loader.multiprocessing_context
    if context is None:
        context = default_context()
    if context == "thread":
        from plait_data._workers._threads import ThreadPool

        return ThreadPool(loader.num_workers, job, seed, loader._convert)
    if not hasattr(os, "memfd_create") or not hasattr(os, "pidfd_open"):
        raise OSError(
            errno.ENOSYS,
            "DataLoader: worker processes need Linux 5.3 or later (memfd_create, pidfd_open); on "
            'this system use num_workers=0 or multiprocessing_context="thread"',
        )
    from plait_data._workers._processes import ProcessPool
    from plait_data._workers._start import start_of

    if not by_default and (converter := batch_converter()) is not None:
        try:
            job.converter = pickle.dumps(converter)  # read only if the collate_fn makes arrays
        except Exception:
            job.converter = converter
    return ProcessPool(start_of(context), loader.num_workers, job, seed)
