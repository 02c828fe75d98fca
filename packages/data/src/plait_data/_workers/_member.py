"""One worker process as the program sees it."""

from __future__ import annotations

import os
import select
import time
from collections import deque
from typing import Any

from plait_data._workers import _arena
from plait_data._workers._arena import Window
from plait_data._workers._channel import Channel
from plait_data._workers._errors import process_state
from plait_data._workers._start import Process, kill
from plait_data._workers._task import sample_at, where

_START_SECONDS = 30.0
_KILLED_SECONDS = 5.0  # seconds that a killed process may take to end


class Member:
    """One worker."""

    def __init__(self, number: int, process: Process, channel: Channel, window: Window) -> None:
        self.number = number
        self.process = process
        self.channel = channel
        self.window = window
        self.watch = os.pidfd_open(process.pid)
        self.tasks: deque[tuple[int, int, Any]] = deque()  # (epoch, number, indices) sent to it
        self.status: int | None = None
        self.reaped = False
        self.ready = False  # whether it has loaded the job
        self.started = time.monotonic()

    def where(self) -> tuple[str, Any]:
        """The worker's phase, and the index of the sample."""
        control = self.window.control
        position, batch = control[_arena.POSITION], control[_arena.BATCH]
        phase, epoch = control[_arena.PHASE], control[_arena.EPOCH]
        indices = None
        for task_epoch, number, task in self.tasks:
            if (task_epoch, number) == (epoch, batch):
                indices = task
        return where(phase, batch, position, indices), sample_at(position, indices)

    def starting(self) -> bool:
        """Whether it is starting, whose time does not count for a batch."""
        late = time.monotonic() - self.started > _START_SECONDS
        return not self.ready and not late and process_state(self.process.pid) not in ("T", "t")

    def reap(self, seconds: float) -> bool:
        """Take the exit status, waiting up to the given time."""
        if not self.reaped:
            self.status = self.process.reap(seconds)
            self.reaped = self.status is not None
        return self.reaped

    def end(self, by: float) -> None:
        """Wait for its end until a time of the monotonic clock, then kill it."""
        try:
            if not self._ended(max(0.0, by - time.monotonic())):
                kill(self.process.pid)
                self._ended(_KILLED_SECONDS)
        except BaseException:  # waiting failed, or Ctrl-C
            kill(self.process.pid)
            self.reap(_KILLED_SECONDS)
            raise
        finally:
            os.close(self.watch)

    def _ended(self, seconds: float) -> bool:
        """Whether it ends within a number of seconds; takes its exit status."""
        if self.reaped:
            return True
        watch = select.poll()
        watch.register(self.watch, select.POLLIN)
        if not watch.poll(seconds * 1000):
            return False
        try:
            return self.reap(1.0)
        except ValueError:
            return True
