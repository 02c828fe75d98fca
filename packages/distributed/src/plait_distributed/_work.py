"""Collectives that run while the program continues."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from plait_distributed._errors import CollectiveTimeout, DistBackendError
from plait_distributed._futures import Future
from plait_distributed._notes import note_cause


def seconds_of(caller: str, timeout: Any) -> float:
    """Return a timeout, a `datetime.timedelta` or a number of seconds, in seconds."""
    value = timeout.total_seconds() if hasattr(timeout, "total_seconds") else timeout
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise ValueError(f"{caller}: `timeout` must be positive, got {timeout!r}")
    return float(value)


class Part:
    """One call of a provider: its work, and what turns the provider's errors into ours."""

    def __init__(self, raw: Any, explain: Callable[[BaseException], BaseException]) -> None:
        self._raw = raw
        self._explain = explain
        self._error: BaseException | None = None

    def wait(self) -> None:
        """Wait until it is done; raise its error."""
        self._ask(self._raw.wait)

    def query(self) -> bool:
        """Return whether it is done; raise its error."""
        return bool(self._ask(self._raw.query))

    def _ask(self, function: Callable[[], Any]) -> Any:
        if self._error is not None:
            raise self._error
        try:
            return function()
        except Exception as error:
            self._error = self._explain(error)
            raise self._error from None


class Work:
    """A collective that was begun with ``async_op=True``.

    Its tensors may neither be read nor written until `wait` has returned. Works may be waited for
    in any order; dropping one does not stop it.

    Args:
        parts: The operations that were begun.
        result: What `wait` and the future give.
        finish: Called when all parts are done; or None.
        source: The rank that sent, or -1.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:work", rank=0, world_size=1)
        >>> x = pc.ones(2)
        >>> work = dist.all_reduce(x, async_op=True)
        >>> work.wait()
        True
        >>> work.is_completed(), work.get_future().wait()
        (True, [tensor([1., 1.])])
        >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        parts: Sequence[Part],
        result: Any = None,
        finish: Callable[[], Any] | None = None,
        source: int = -1,
    ) -> None:
        self.parts = parts
        self._result = result
        self._finish = finish
        self._source = source
        self._lock = threading.Lock()

    def wait(self, timeout: Any = None) -> bool:
        """Wait until it is done; raise its error if it failed.

        If its tensors are on a device, the current stream waits, and not the host; with a timeout
        the host does.

        Args:
            timeout: seconds or a `datetime.timedelta`; None: the group's timeout.

        Raises:
            RankLost, MismatchError, CollectiveTimeout: as the call does without ``async_op``.
        """
        if timeout is not None:
            self._wait_at_most(seconds_of("wait", timeout))
        try:
            for part in self.parts:
                part.wait()
        except DistBackendError as error:
            note_cause(error)
            raise
        self._end()
        return True

    def _query(self) -> bool:
        try:
            return all(part.query() for part in self.parts)
        except DistBackendError as error:
            note_cause(error)
            raise

    def _wait_at_most(self, seconds: float) -> None:
        deadline, pause = time.monotonic() + seconds, 0.0001
        while not self._query():
            if time.monotonic() > deadline:
                raise CollectiveTimeout(
                    f"wait: the operation did not finish within {seconds:g} s; it is still running"
                )
            time.sleep(pause)
            pause = min(pause * 2, 0.01)

    def _end(self) -> None:
        with self._lock:
            finish, self._finish = self._finish, None
            if finish is not None:
                finish()

    def is_completed(self) -> bool:
        """Return whether it is done; raise its error if it failed."""
        if not self._query():
            return False
        self._end()
        return True

    def is_success(self) -> bool:
        """Return whether it is done without an error."""
        try:
            return self.is_completed()
        except Exception:
            return False

    def exception(self) -> BaseException | None:
        """Return its error; None if there is none, or none yet."""
        try:
            self.is_completed()
        except Exception as error:
            return error
        return None

    def synchronize(self) -> None:
        """Wait, as `wait`."""
        self.wait()

    def source_rank(self) -> int:
        """Return the rank that a message came from."""
        return self._source

    def result(self) -> Any:
        """Wait, and return the list of the tensors that were written."""
        self.wait()
        return self._result

    def get_future(self) -> Future:
        """Return the future of the list of the tensors that are written."""
        return Future(self.result, self.is_completed)
