"""What jobs and remote calls raise."""

from __future__ import annotations


class RemoteError(RuntimeError):
    """A remote call failed, and the type of its error cannot be constructed in this process."""


class WorkerLost(RemoteError):
    """The process of a remote call died, or left before it answered; the text names it."""


class TrainingError(RuntimeError):
    """A job failed more often than `max_failures` allows; the text lists the failures."""


def reason(error: BaseException) -> str:
    """Return the last line of an error of Ray, which has the reason, without "common causes"."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1].partition(" Some common causes")[0] if lines else type(error).__name__
