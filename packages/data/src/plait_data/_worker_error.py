"""The errors of a loader whose workers died or do not answer."""

from __future__ import annotations

from typing import Any

__all__ = ["WorkerError", "WorkerTimeout"]


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
