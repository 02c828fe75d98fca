"""`torch.futures`: results that are there later."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")


class Future(Generic[T]):
    """A result that somebody sets, in this thread or another, and others wait for.

    Example:
        >>> from plait_torch._futures import Future
        >>> future = Future()
        >>> later = future.then(lambda done: done.value() + 1)
        >>> future.set_result(3)
        >>> later.wait()
        4
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._future: concurrent.futures.Future[T] = concurrent.futures.Future()

    def done(self) -> bool:
        """Return whether there is a result, or an error."""
        return self._future.done()

    def wait(self) -> T:
        """Return the result, once it is there; raise the error that was set instead."""
        return self._future.result()

    def value(self) -> T:
        """Return the result.

        Raises:
            RuntimeError: if it is not there yet.
        """
        if not self.done():
            raise RuntimeError("Future.value: the result is not there yet; `wait()` for it")
        return self._future.result()

    def set_result(self, result: T) -> None:
        """Set the result, once."""
        if self.done():
            raise RuntimeError("Future.set_result: there is a result already")
        self._future.set_result(result)

    def set_exception(self, result: BaseException) -> None:
        """Set an error, which `wait` and `value` raise."""
        if not isinstance(result, BaseException):
            raise TypeError(f"Future.set_exception: an exception is required, got {result!r}")
        self._future.set_exception(result)

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call the function with this future, once the result is there; now, if it is."""
        self._future.add_done_callback(lambda _: callback(self))

    def then(self, callback: Callable[[Future[T]], Any]) -> Future[Any]:
        """Return the future of what the function returns, called once this result is there."""
        after: Future[Any] = Future()

        def run(done: Future[T]) -> None:
            try:
                after.set_result(callback(done))
            except Exception as error:
                after.set_exception(error)

        self.add_done_callback(run)
        return after


def wait_all(futures: Sequence[Future[Any]]) -> list[Any]:
    """Return the results of all, once they are there."""
    return [future.wait() for future in futures]


def collect_all(futures: Sequence[Future[Any]]) -> Future[list[Future[Any]]]:
    """Return a future of the futures, with a result once all have theirs.

    Example:
        >>> from plait_torch._futures import Future, collect_all
        >>> one, two = Future(), Future()
        >>> both = collect_all([one, two])
        >>> one.set_result(1)
        >>> both.done()
        False
        >>> two.set_result(2)
        >>> [each.value() for each in both.wait()]
        [1, 2]
    """
    futures = list(futures)
    both: Future[list[Future[Any]]] = Future()

    def seen(_: Any) -> None:
        if not both.done() and all(each.done() for each in futures):
            both.set_result(futures)

    seen(None)
    for each in futures:
        each.add_done_callback(seen)
    return both
