"""`torch.profiler`: what plait's profiler does not have under the same name."""

from __future__ import annotations

from plait.profiler import ProfilerAction, ProfilerActivity

__all__ = ["_default_schedule_fn", "kineto_available", "supported_activities"]


def kineto_available() -> bool:
    """Return False: plait records with its own profiler."""
    return False


def supported_activities() -> set[ProfilerActivity]:
    """Return what can be recorded: the CPU.

    Example:
        >>> from plait_torch._profiler import supported_activities
        >>> [activity.name for activity in supported_activities()]
        ['CPU']
    """
    return {ProfilerActivity.CPU}


def _default_schedule_fn(_: int) -> ProfilerAction:
    """Return what a profile without a schedule does in each step: it records."""
    return ProfilerAction.RECORD
