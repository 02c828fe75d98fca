"""`torch.futures`: results that are set later."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")


class Future(Generic[T]):
    """A result that one thread sets and others wait for.

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
        """Return whether a result or an error was set."""
        return self._future.done()

    def wait(self) -> T:
        """Wait for the result and return it, or raise the error that was set."""
        return self._future.result()

    def value(self) -> T:
        """Return the result.

        Raises:
            RuntimeError: if it is not set yet.
        """
        if not self.done():
            raise RuntimeError("Future.value: the result is not ready yet; call `wait()` first")
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
        """Call the function with this future when the result is set, or at once if it is."""
        self._future.add_done_callback(lambda _: callback(self))

    def then(self, callback: Callable[[Future[T]], Any]) -> Future[Any]:
        """Return the future of the function's result, which is called when this result is set."""
        after: Future[Any] = Future()

        def run(done: Future[T]) -> None:
            try:
                after.set_result(callback(done))
            except Exception as error:
                after.set_exception(error)

        self.add_done_callback(run)
        return after


def wait_all(futures: Sequence[Future[Any]]) -> list[Any]:
    """Wait for all results and return them."""
    return [future.wait() for future in futures]


def collect_all(futures: Sequence[Future[Any]]) -> Future[list[Future[Any]]]:
    """Return a future of the futures, which is set when all are.

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
