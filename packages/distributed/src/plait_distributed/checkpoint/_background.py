"""The thread of a process that writes checkpoints, one behind the other."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, TimeoutError as FutureTimeoutError
from typing import Any

from plait_distributed._latch import Latch

_threads: dict[int, ThreadPoolExecutor] = {}  # by process: a fork has no threads
_pending: dict[BackgroundFuture, str] = {}  # saves that have not ended, and their indexes


class BackgroundFuture(Future[Any]):
    """The result of a save in the thread.

    An interrupt may end `result`, `exception` and `done` anywhere. In the standard class it can
    leave the future's lock taken, and the thread then waits for it for ever. So these do not take
    it. A save cannot be cancelled: other ranks write it, too.
    """

    def __init__(self) -> None:
        super().__init__()
        self.set_running_or_notify_cancel()
        self._ended = Latch()
        self._value: Any = None
        self._error: BaseException | None = None

    def done(self) -> bool:
        """Return whether the save has ended, well or with an error."""
        return self._ended.is_set()

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the end and return what `save` returns, or raise its error.

        Args:
            timeout: In seconds; None: for ever.

        Raises:
            TimeoutError: it has not ended then.
        """
        error = self.exception(timeout)
        if error is not None:
            raise error
        return self._value

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the end and return the error of the save, or None.

        Args:
            timeout: In seconds; None: for ever.

        Raises:
            TimeoutError: it has not ended then.
        """
        if not self._ended.wait(timeout):
            raise FutureTimeoutError(f"the checkpoint is not written after {timeout} s")
        return self._error

    def run(self, write: Callable[[], Any]) -> None:
        """Do the work, in the thread."""
        try:
            self._value = write()
        except BaseException as error:
            self._error = error
        _pending.pop(self, None)
        self._ended.set()
        # for `add_done_callback`, `concurrent.futures.wait` and their like
        if self._error is None:
            self.set_result(self._value)
        else:
            self.set_exception(self._error)


def write_later(write: Callable[[], Any], index: str) -> BackgroundFuture:
    """Let the thread of this process write a checkpoint; return its future.

    An interrupt within could leave a lock of the executor taken: the caller delays it.

    Args:
        write: writes it.
        index: the path of the checkpoint's index.
    """
    future = BackgroundFuture()
    if os.getpid() not in _threads:
        _threads.clear()
        _pending.clear()
        _threads[os.getpid()] = ThreadPoolExecutor(1, "plait checkpoint")
    _pending[future] = index
    _threads[os.getpid()].submit(future.run, write)
    return future


def wait_for_saves(index: str) -> None:
    """Wait for the saves in the thread whose index has this path."""
    if os.getpid() in _threads:
        for future, other in list(_pending.items()):
            if other == index:
                future.exception()
