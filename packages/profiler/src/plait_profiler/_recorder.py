"""Sessions of the recorder, and the recordings that they make."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plait_profiler._library import observer
from plait_profiler._processes import Journal, enter, leave

if TYPE_CHECKING:
    from plait_profiler._recording import Recording


class Recorder:
    """A recording, which begins when it is made.

    Args:
        kinds: the kinds of events, a sum of `Kind`.
        capacity: the most events of a thread; the latest stay.
        stacks: record Python's stack with each event.
        children: let processes that begin meanwhile be recorded too.

    Raises:
        RuntimeError: if the runtime takes no more observers.
        MemoryError: if there is no memory.
    """

    def __init__(
        self, kinds: int, capacity: int, stacks: bool = False, children: bool = True
    ) -> None:
        self._kinds = kinds
        enter(kinds, children)
        try:
            self._session: Any = observer().Session(kinds, capacity, stacks)
        except BaseException:
            leave()
            raise
        self._journals: list[Journal] = []
        self._threads: dict[tuple[int, int], str] = {}
        self._runs = True

    def stop(self) -> None:
        """End the recording. What was recorded stays as it is until `recording` asks for it.

        Raises:
            RuntimeError, or another error: of work on an accelerator that was not done yet.
            MemoryError: if there is no memory for the recorded rows.
        """
        if not self._runs:
            return
        self._runs = False
        try:
            self._session.stop()
        finally:
            self._collect()

    def _collect(self) -> None:
        self._clock = time.time_ns() - time.monotonic_ns()
        process = os.getpid()
        for thread in threading.enumerate():
            self._threads[process, thread.native_id or 0] = thread.name
        self._journals = leave()

    def __del__(self) -> None:
        if getattr(self, "_runs", False) and not sys.is_finalizing():
            self.stop()

    def recording(self, steps: Sequence[tuple[str, int, int]] = ()) -> Recording:
        """Return what was recorded.

        Args:
            steps: names, begins and ends of the program's steps, to be added.
        """
        from plait_profiler._assembly import assemble  # imports NumPy

        return assemble(
            self._session,
            self._journals,
            steps,
            kinds=self._kinds,
            threads=self._threads,
            clock=self._clock,
        )
