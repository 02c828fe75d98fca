"""`torch.profiler`: plait's profiler, with PyTorch's schedules."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from enum import Enum
from types import TracebackType
from typing import Any

from plait.profiler import ProfilerActivity
from plait.profiler import profile as _profile

__all__ = [
    "ProfilerAction",
    "emit_nvtx",
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerAction(Enum):
    """The actions of a schedule for a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, **others: Any
) -> Callable[[int], ProfilerAction]:
    """Return a schedule that records the last `active` steps of each cycle.

    Example:
        >>> from plait_torch._profiler import schedule
        >>> plan = schedule(wait=1, warmup=1, active=1, repeat=1)
        >>> [plan(step).name for step in range(4)]
        ['NONE', 'WARMUP', 'RECORD_AND_SAVE', 'NONE']
    """
    if active < 1 or min(wait, warmup, repeat, skip_first) < 0:
        raise ValueError("schedule: `active` must be > 0 and the others >= 0")

    def action(step: int) -> ProfilerAction:
        cycle, position = divmod(step - skip_first, wait + warmup + active)
        if step < skip_first or (repeat and cycle >= repeat) or position < wait:
            return ProfilerAction.NONE
        if position < wait + warmup:
            return ProfilerAction.WARMUP
        last = position == wait + warmup + active - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return action


def supported_activities() -> set[ProfilerActivity]:
    """Return what can be recorded: the CPU."""
    return {ProfilerActivity.CPU}


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[Any], None]:
    """Return an ``on_trace_ready`` that writes each trace into a folder."""

    def write(profiler: Any) -> None:
        os.makedirs(dir_name, exist_ok=True)
        who = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{who}.{time.time_ns()}.pt.trace.json"
        profiler.export_chrome_trace(os.path.join(dir_name, name))

    return write


class profile:  # noqa: N801 - PyTorch's name
    """Record operators in a ``with`` block, or in the steps of a schedule.

    Args:
        activities, record_shapes, profile_memory: see `plait.profiler.profile`.
        schedule: a function from the number of a step to a `ProfilerAction`.
        on_trace_ready: called with the recorder at the end of each recording.
        with_stack, with_flops, with_modules and others: have no effect.

    Example:
        >>> import plait
        >>> from plait_torch._profiler import profile
        >>> with profile() as p:
        ...     _ = plait.ones(3).exp()
        >>> "exp" in p.key_averages().table()
        True
    """

    def __init__(
        self,
        *,
        activities: Any = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[Any], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        **others: Any,
    ) -> None:
        known = None
        if activities is not None:
            known = [each for each in activities if each is ProfilerActivity.CPU]
        self._options = {
            "activities": known or None,
            "record_shapes": record_shapes,
            "profile_memory": profile_memory,
        }
        self._schedule = schedule
        self._ready = on_trace_ready
        self._recorder: Any = None
        self._on = False
        self.step_num = 0

    def _action(self) -> ProfilerAction:
        return ProfilerAction.RECORD if self._schedule is None else self._schedule(self.step_num)

    def _turn(self, on: bool) -> None:
        if on and not self._on:
            self._recorder = _profile(**self._options)
            self._recorder.__enter__()
        if not on and self._on:
            self._recorder.__exit__(None, None, None)
            if self._ready is not None:
                self._ready(self)
        self._on = on

    def _recording(self) -> bool:
        return self._action() in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)

    def start(self) -> None:
        """Begin to record, like the beginning of a ``with`` block."""
        self._turn(self._recording())

    def stop(self) -> None:
        """End the recording, like the end of the block."""
        self._turn(False)

    def step(self) -> None:
        """Begin the next step."""
        saves = self._action() is ProfilerAction.RECORD_AND_SAVE
        self.step_num += 1
        if saves:
            self._turn(False)
        self._turn(self._recording())

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or self._recorder is None:
            raise AttributeError(f"profile has no attribute {name!r}, or recorded nothing yet")
        return getattr(self._recorder, name)


class emit_nvtx:  # noqa: N801 - PyTorch's name
    """A class whose constructor raises: there is no CUDA."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("torch.autograd.profiler.emit_nvtx: there is no CUDA")
