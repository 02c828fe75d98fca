"""The context manager `profile`."""

from __future__ import annotations

import enum
import functools
import json
import sys
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from plait_profiler._categories import mark_modules, watch_categories
from plait_profiler._modules import watch_modules
from plait_profiler._recorded import Recorded
from plait_profiler._recorder import Recorder
from plait_profiler._schedule import ProfilerAction, always

if TYPE_CHECKING:
    from plait_profiler._recording import Recording

P = ParamSpec("P")
R = TypeVar("R")

# operators, backward passes and their nodes, ranges, collectives, waiting for data; device rows
_ALWAYS = 1 | 8 | 16 | 32 | 64 | 128 | 512
_MEMORY = 2 | 4 | 1024
_RECORDS = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class ProfilerActivity(enum.Enum):
    """The kinds of activity that a profile can record. Accelerators that give times are recorded in
    any case.

    Example:
        >>> from plait_profiler import ProfilerActivity, profile
        >>> with profile(activities=[ProfilerActivity.CPU]) as prof:
        ...     pass
        >>> len(prof.events())
        0
    """

    CPU = 0
    CUDA = 2
    XPU = 1
    MTIA = 3
    HPU = 6
    PrivateUse1 = 9


class profile(Recorded):  # noqa: N801
    """Records operators, backward nodes, ranges and accelerators' work of all threads.

    It records while its block runs, or in the steps that a schedule says. Several profiles may run
    at once. A child of a fork is recorded with its parent.

    Args:
        activities: accepted for PyTorch's signature.
        schedule: a function from the number of a step to a `ProfilerAction`, such as `schedule`
            gives; None records from the beginning to the end.
        on_trace_ready: called with this profile when a recording has ended.
        record_shapes, with_flops: accepted for PyTorch's signature; shapes and floating-point
            operations are always recorded.
        profile_memory: record allocations and frees, and what the memory is for.
        with_stack: record Python's stack with each event. This costs about a microsecond an event.
        with_modules: record the path of the module whose forward runs.
        experimental_config, execution_trace_observer, acc_events: ignored; of PyTorch's signature.
        capacity: the most events of each thread; further ones replace the oldest.

    Raises:
        ValueError: if ``capacity`` isn't positive.
        TypeError: if another argument is of the wrong type, or when ``schedule`` returns something
            else than a `ProfilerAction`.

    Example:
        >>> from plait_profiler import profile, record_function
        >>> with profile() as prof:
        ...     with record_function("work"):
        ...         total = sum(range(1000))
        >>> [(average.key, average.count) for average in prof.key_averages()]
        [('work', 1)]
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[Any], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = True,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        capacity: int = 1 << 22,
    ) -> None:
        for activity in activities or ():
            if not isinstance(activity, ProfilerActivity):
                raise TypeError(
                    f"profile: `activities` must be members of ProfilerActivity; got {activity!r}"
                )
        if not isinstance(capacity, int):
            raise TypeError(f"profile: `capacity` must be an int; got {type(capacity).__name__}")
        if not 1 <= capacity < 1 << 64:
            raise ValueError(f"profile: `capacity` must be from 1 to 2**64 - 1; got {capacity}")
        for name, function in (("schedule", schedule), ("on_trace_ready", on_trace_ready)):
            if function is not None and not callable(function):
                raise TypeError(f"profile: `{name}` must be a function; got {function!r}")
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.with_modules = with_modules
        self.on_trace_ready = on_trace_ready
        self.capacity = capacity
        self.step_num = 0
        self.current_action = ProfilerAction.NONE
        self._schedule = schedule or always
        self._recorder: Recorder | None = None
        self._recording: Recording | None = None
        self._ready: Recorder | None = None
        self._unwatch: list[Callable[[], None]] = []
        self._steps: list[tuple[str, int, int]] = []
        self._step_begin = 0
        self._metadata: dict[str, Any] = {}
        self._runs = False

    # ---- recording -----------------------------------------------------------------------------

    def start(self) -> None:
        """Begin, as a ``with`` block does; earlier recordings of this profile are dropped.

        Raises:
            RuntimeError: if it runs already.
        """
        if self._runs:
            raise RuntimeError("profile: it runs already")
        self.current_action = self._action(0)
        self._runs = True
        self.step_num = 0
        if self.current_action is not ProfilerAction.NONE:
            try:
                self._begin()
            except BaseException:
                self._runs = False
                self._end(keep=False)
                raise

    def stop(self) -> None:
        """End the recording, as the end of the block does.

        Raises:
            RuntimeError: if it was not started.
        """
        if not self._runs:
            raise RuntimeError("profile: it was not started")
        self._runs = False
        if self.step_num:
            self._end_step()
        recorded = self._end(keep=self.current_action in _RECORDS)
        self.current_action = ProfilerAction.NONE
        if recorded and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def step(self) -> None:
        """End a step of the program; the schedule says what happens in the next one.

        Raises:
            RuntimeError: if the profile does not run.
        """
        if not self._runs:
            raise RuntimeError("profile: `step` was called outside of its block")
        self._end_step()
        self.step_num += 1
        last, self.current_action = self.current_action, self._action(self.step_num)
        if last is ProfilerAction.RECORD_AND_SAVE:
            self._end(keep=True)
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
        else:
            is_warm = last is ProfilerAction.WARMUP and self.current_action in _RECORDS
            if is_warm or self.current_action is ProfilerAction.NONE:
                self._end(keep=False)
        if self.current_action is not ProfilerAction.NONE and self._recorder is None:
            self._begin()

    def _action(self, step: int) -> ProfilerAction:
        action = self._schedule(step)
        if not isinstance(action, ProfilerAction):
            raise TypeError(f"profile: `schedule` must return a ProfilerAction; got {action!r}")
        return action

    def _begin(self) -> None:
        if self.with_modules:
            self._unwatch.append(watch_modules())
        if self.profile_memory:
            self._unwatch.append(watch_categories())
        kinds = _ALWAYS | (_MEMORY if self.profile_memory else 0)
        self._recorder = Recorder(kinds, self.capacity, self.with_stack)
        self._steps = []
        self._step_begin = time.monotonic_ns()

    def _end_step(self) -> None:
        if self._recorder is not None:
            if self.profile_memory:
                mark_modules()
            name = f"ProfilerStep#{self.step_num}"
            self._steps.append((name, self._step_begin, time.monotonic_ns()))
        self._step_begin = time.monotonic_ns()

    def _end(self, keep: bool) -> bool:
        recorder, self._recorder = self._recorder, None
        if recorder is not None and self.profile_memory:
            mark_modules()
        while self._unwatch:
            self._unwatch.pop()()
        if recorder is None:
            return False
        if keep:
            self._ready, self._recording = recorder, None
        recorder.stop()
        return keep

    def __del__(self) -> None:
        # it was not stopped, or an interrupt came while it began or ended
        if getattr(self, "_unwatch", None) and not sys.is_finalizing():
            self._end(keep=False)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.on_trace_ready = None
        self.stop()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Return a function whose calls are profiled; this profile has the last one."""

        @functools.wraps(function)
        def profiled(*args: P.args, **kwargs: P.kwargs) -> R:
            with self:
                return function(*args, **kwargs)

        return profiled

    # ---- what was recorded ---------------------------------------------------------------------

    def recording(self) -> Recording:
        """Return the last recording.

        Raises:
            RuntimeError: before there is one.
        """
        if self._recording is None:
            if self._ready is None:
                raise RuntimeError(
                    "profile: there are no events: its block has not ended, or none of its "
                    "steps was one that `schedule` records"
                )
            self._recording = self._ready.recording(self._steps)
        return self._recording

    def add_metadata(self, key: str, value: str) -> None:
        """Add a text that exported traces have.

        Args:
            key: Its name in the trace.
            value: The text.
        """
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Add a value, as JSON, that exported traces have.

        Args:
            key: Its name in the trace.
            value: The text, in JSON.
        """
        self._metadata[key] = json.loads(value)
