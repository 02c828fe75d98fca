"""Results that come later."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

from plait_distributed._latch import Latch


class Future:
    """The result of work, or what a function makes of it when it is there.

    Functions given to `then` run in the thread that waits, when it waits: a chain that itself calls
    collectives calls them in the order in which results are requested, on every rank.

    Args:
        wait: Called once for the result; None: `set_result` gives it.
        ready: Called to ask whether the result is there; or None.

    Example:
        >>> import plait_distributed as dist
        >>> future = dist.Future()
        >>> later = future.then(lambda done: done.value() + 1)
        >>> future.set_result(3)
        >>> later.wait()
        4
    """

    def __init__(
        self, wait: Callable[[], Any] | None = None, ready: Callable[[], bool] | None = None
    ) -> None:
        self._wait = wait
        self._ready = ready
        self._lock = threading.RLock()
        self._set = Latch()
        self._result: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future], Any]] = []

    def done(self) -> bool:
        """Return whether there is a result or an error."""
        if not self._set.is_set() and self._ready is not None and self._ready():
            self._evaluate()
        return self._set.is_set()

    def wait(self) -> Any:
        """Wait for the result and return it, or raise the error."""
        if not self._set.is_set():
            if self._wait is None:
                self._set.wait()
            else:
                self._evaluate()
        if self._error is not None:
            raise self._error
        return self._result

    def value(self) -> Any:
        """Return the result, which is there.

        Raises:
            RuntimeError: if it is not there yet.
        """
        if not self.done():
            raise RuntimeError("Future.value: the result is not ready yet; call `wait()` first")
        return self.wait()

    def set_result(self, result: Any) -> None:
        """Set the result, once."""
        self._finish(result, None)

    def set_exception(self, error: BaseException) -> None:
        """Set an error, which `wait` and `value` raise."""
        if not isinstance(error, BaseException):
            raise TypeError(f"Future.set_exception: an exception is required, got {error!r}")
        self._finish(None, error)

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """Return the future of ``callback(self)``."""

        def run() -> Any:
            with contextlib.suppress(Exception):  # the callback's look at the future raises it
                self.wait()
            return callback(self)

        return Future(run, self.done)

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """Call ``callback(self)`` when the result is there; at once if it is."""
        with self._lock:
            if not self._set.is_set():
                self._callbacks.append(callback)
                return
        callback(self)

    def _evaluate(self) -> None:
        with self._lock:
            if self._set.is_set():
                return
            assert self._wait is not None
            result, failed = None, None
            try:
                result = self._wait()
            except Exception as error:
                failed = error
        self._finish(result, failed)

    def _finish(self, result: Any, error: BaseException | None) -> None:
        with self._lock:
            if self._set.is_set():
                raise RuntimeError("Future.set_result: there is a result already")
            self._result, self._error = result, error
            self._set.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)
