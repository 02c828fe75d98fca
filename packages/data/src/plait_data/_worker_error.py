"""The errors of a loader whose workers are gone or don't answer."""

from __future__ import annotations

from typing import Any

__all__ = ["WorkerError", "WorkerTimeout"]


class WorkerError(RuntimeError):
    """A worker process ended, or no longer answers.

    Attributes:
        worker: its number.
        pid: its process.
        signal: the number of the signal that ended it, or None.
        status: its exit status, or None.
        index: the index of the sample it was at, or None.

    Example:
        >>> from plait_data import WorkerError
        >>> issubclass(WorkerError, RuntimeError)
        True
    """

    worker: int
    pid: int
    signal: int | None = None
    status: int | None = None
    index: Any = None


class WorkerTimeout(WorkerError, TimeoutError):
    """No batch came within the loader's ``timeout``; the text shows where the worker stands.

    Example:
        >>> from plait_data import WorkerTimeout
        >>> issubclass(WorkerTimeout, TimeoutError)
        True
    """
