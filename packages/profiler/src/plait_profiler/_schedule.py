"""Which steps of a program are recorded."""

from __future__ import annotations

import enum
from collections.abc import Callable


class ProfilerAction(enum.Enum):
    """What a profile does in a step.

    Example:
        >>> from plait_profiler import ProfilerAction
        >>> ProfilerAction.RECORD.name
        'RECORD'
    """

    NONE = 0
    WARMUP = 1
    """The step is recorded, and its recording is forgotten."""
    RECORD = 2
    RECORD_AND_SAVE = 3
    """The step is recorded, and is the last of its recording: `on_trace_ready` is called."""


def always(step: int) -> ProfilerAction:
    """Record from the beginning to the end."""
    return ProfilerAction.RECORD


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """Return a schedule that records the last `active` steps of each cycle.

    A cycle has `wait` steps that cost nothing, `warmup` steps that are recorded and forgotten, and
    `active` steps. Steps end with `profile.step()`.

    Args:
        wait, warmup, active: numbers of steps.
        repeat: the number of cycles; 0 for as many as there are.
        skip_first: steps before the first cycle.
        skip_first_wait: if not 0, the first cycle has no `wait`.

    Raises:
        ValueError: if `active` is less than 1, or another number is negative.

    Example:
        >>> from plait_profiler import schedule
        >>> plan = schedule(wait=1, warmup=1, active=1, repeat=1)
        >>> [plan(step).name for step in range(4)]
        ['NONE', 'WARMUP', 'RECORD_AND_SAVE', 'NONE']
    """
    if active < 1 or min(wait, warmup, repeat, skip_first, skip_first_wait) < 0:
        raise ValueError(
            "schedule: `active` must be at least 1 and the other numbers at least 0; got "
            f"wait={wait}, warmup={warmup}, active={active}, repeat={repeat}, "
            f"skip_first={skip_first}, skip_first_wait={skip_first_wait}"
        )
    length = wait + warmup + active
    begin = skip_first - (wait if skip_first_wait else 0)

    def action(step: int) -> ProfilerAction:
        cycle, position = divmod(step - begin, length)
        if step < skip_first or (repeat and cycle >= repeat) or position < wait:
            return ProfilerAction.NONE
        if position < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if position == length - 1 else ProfilerAction.RECORD

    return action
