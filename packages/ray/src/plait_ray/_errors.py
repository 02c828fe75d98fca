"""What jobs and remote calls raise."""

from __future__ import annotations

__all__ = ["RemoteError", "TrainingError", "WorkerLost"]


class RemoteError(RuntimeError):
    """A remote call failed, and its error is of a type that cannot be made here.

    Example:
        >>> import plait_ray
        >>> issubclass(plait_ray.RemoteError, RuntimeError)
        True
    """


class WorkerLost(RemoteError):
    """The process that a remote call went to died, or left before it answered; the text names it.

    Example:
        >>> import plait_ray
        >>> issubclass(plait_ray.WorkerLost, plait_ray.RemoteError)
        True
    """


class TrainingError(RuntimeError):
    """A job of `Trainer` failed more often than it may; the text has each failure.

    Example:
        >>> import plait_ray
        >>> issubclass(plait_ray.TrainingError, RuntimeError)
        True
    """
