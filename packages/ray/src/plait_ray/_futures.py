"""Results of remote calls, which come later."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import plait_distributed as dist


class CallFuture(dist.Future):
    """The result of a remote call.

    Who waits fetches it; functions given to `then` and `add_done_callback` are called by a thread
    of this future's when it is there.
    """

    def __init__(self, fetch: Callable[[], Any], arrived: Callable[[], bool]) -> None:
        super().__init__(fetch, arrived)
        self._watched = False
        self._fetching = threading.Lock()  # `_lock` is free meanwhile: callbacks may be added

    def _evaluate(self) -> None:
        with self._fetching:
            if self._set.is_set():
                return
            assert self._wait is not None
            result, failed = None, None
            try:
                result = self._wait()
            except Exception as error:
                failed = error
            self._finish(result, failed)

    def add_done_callback(self, callback: Callable[[Any], Any]) -> None:
        """Call ``callback(self)`` when the result is there; at once if it is."""
        super().add_done_callback(callback)
        with self._lock:
            watched, self._watched = self._watched, True
        if not watched and not self._set.is_set():
            threading.Thread(target=self._evaluate, daemon=True).start()

    def then(self, callback: Callable[[Any], Any]) -> dist.Future:
        """Return the future of ``callback(self)``."""
        after = dist.Future()

        def run(_: Any) -> None:
            try:
                after.set_result(callback(self))
            except Exception as error:
                after.set_exception(error)

        self.add_done_callback(run)
        return after
