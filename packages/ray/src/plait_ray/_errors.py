"""What jobs and remote calls raise."""

from __future__ import annotations

__all__ = ["RemoteError", "TrainingError", "WorkerLost", "reason"]


class RemoteError(RuntimeError):
    """A remote call failed, and its error is of a type that cannot be made here."""


class WorkerLost(RemoteError):
    """The process of a remote call died, or left before it answered; the text names it."""


class TrainingError(RuntimeError):
    """A job of `Trainer` failed more often than it may; the text has each failure."""


def reason(error: BaseException) -> str:
    """Return the last line of an error of Ray's, which says why, without Ray's guesses."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1].partition(" Some common causes")[0] if lines else type(error).__name__
