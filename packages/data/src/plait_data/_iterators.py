"""Iterators over the batches of one epoch: in process, and from workers."""

from __future__ import annotations

import copy
import functools
import os
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from plait_data._epoch import Epoch
from plait_data._fetch import END, Stream, stopped_iteration
from plait_data._worker_info import WorkerError

_DATA = 128  # PLAIT_EVENT_DATA of plait's ABI


def waiting(method: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Let observers of plait's runtime, where there is one, see each call of a ``__next__``."""

    @functools.wraps(method)
    def observed(self: Any) -> Any:
        binding = sys.modules.get("plait_abi.binding")
        if binding is None or not binding.observed(_DATA):
            return method(self)
        with binding.Range(f"enumerate(DataLoader)#{type(self).__name__}.__next__", _DATA):
            return method(self)

    return observed


_LIBRARIES = ("plait_core", "torch")  # those whose tensors have `pin_memory`


def has_accelerator() -> bool:
    """Whether a library of tensors that the program has loaded has an accelerator."""
    accelerators = (getattr(sys.modules.get(name), "accelerator", None) for name in _LIBRARIES)
    return any(each is not None and each.is_available() for each in accelerators)


def pinned(value: Any, device: str = "") -> Any:
    """The value with the tensors of the CPU in pinned memory, in nested containers too.

    A tensor is what has the method ``pin_memory``; other objects with that method do it themselves.

    Args:
        value: a batch.
        device: the device that will copy; empty for the current one.
    """
    if callable(getattr(value, "pin_memory", None)):
        if not getattr(value, "is_cpu", True):
            return value  # it is where it has to go
        return value.pin_memory(device) if device else value.pin_memory()
    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, tuple):
        parts = [pinned(each, device) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, Mapping):
        return _refilled(value, {key: pinned(each, device) for key, each in value.items()})
    if isinstance(value, Sequence):
        return _refilled(value, dict(enumerate(pinned(each, device) for each in value)))
    return value


def _refilled(container: Any, items: dict[Any, Any]) -> Any:
    """A copy of the container with these items; the container's type is kept if it can be."""
    try:
        clone = copy.copy(container)
        for key, item in items.items():
            clone[key] = item
        return clone
    except TypeError:  # one that cannot be written to
        return dict(items) if isinstance(container, Mapping) else list(items.values())


class PinnedIterator(Iterator[Any]):
    """An iterator over the batches of another, pinned."""

    __slots__ = ("_batches", "_device")

    def __init__(self, batches: Iterator[Any], device: str) -> None:
        self._batches = batches
        self._device = device

    def __next__(self) -> Any:
        return pinned(next(self._batches), self._device)


class IndexIterator(Iterator[Any]):
    """An iterator over batches that ``make`` makes of lists of indices, in process.

    It is not a generator, so after an error in one batch the program may continue with the next.
    """

    __slots__ = ("_epoch", "_failed", "_make", "_order")

    def __init__(self, make: Callable[[Any], Any], order: Iterator[Any], epoch: Epoch) -> None:
        self._make = make
        self._order = order
        self._epoch = epoch
        self._failed = 0

    @waiting
    def __next__(self) -> Any:
        try:
            indices = next(self._order)
        except StopIteration:
            self._epoch.finished = True
            raise
        self._failed += 1
        try:
            batch = self._make(indices)
        except StopIteration as error:
            raise stopped_iteration(error) from error
        self._epoch.yielded += self._failed  # failed batches before this one count as yielded
        self._failed = 0
        return batch


class StreamIterator(Iterator[Any]):
    """An iterator over the batches of a stream, in process."""

    __slots__ = ("_epoch", "_make", "_stream")

    def __init__(self, stream: Stream, make: Callable[[], Any], epoch: Epoch) -> None:
        self._stream: Stream | None = stream
        self._make = make
        self._epoch = epoch

    @waiting
    def __next__(self) -> Any:
        if self._epoch.finished:
            raise StopIteration
        try:
            stream, self._stream = self._stream, None
            if stream is not None:
                stream.skip(self._epoch.skipped)
            batch = self._make()
        except StopIteration as error:
            raise stopped_iteration(error) from error
        if batch is END:
            self._epoch.finished = True
            raise StopIteration
        self._epoch.yielded += 1
        self._epoch.by_worker[0] += 1
        return batch


class WorkerIterator(Iterator[Any]):
    """Gives workers their tasks and the program their batches.

    Args:
        pool: the workers: `ProcessPool` or `ThreadPool`.
        epoch: the epoch.
        order: lists of indices; None for a stream.
        prefetch: the number of tasks in advance for each worker.
        in_order: yield batches in the order of the tasks instead of their completion.
        timeout: seconds to wait for a batch; 0 for as long as it takes.
        convert: a function that returns the converter of arrays, called for each batch.
        keep: whether the workers are kept after the epoch.
    """

    def __init__(
        self,
        pool: Any,
        epoch: Epoch,
        order: Iterator[Any] | None,
        *,
        prefetch: int,
        in_order: bool,
        timeout: float,
        convert: Callable[[], Any],
        keep: bool,
    ) -> None:
        self._pool = pool
        self._epoch = epoch
        self._order = order
        self._in_order = in_order
        self._timeout = timeout
        self._convert = convert
        self._keep = keep
        self._most = prefetch * pool.size
        self._prefetch = prefetch
        self._loads = [0] * pool.size  # tasks that a worker has not answered
        self._active = [True] * pool.size
        self._turn = epoch.turn
        self._owners: dict[int, int] = {}  # workers of unanswered tasks
        self._done: dict[int, tuple[int, Any]] = {}
        self._sent = self._taken = 0
        self._failed = 0
        self._exhausted = False
        self._number = epoch.number
        self._process = os.getpid()
        self._ended: Callable[[], BaseException] | None = None  # the error that closed the pool
        # also called at the interpreter's end; the loader closes a pool that is kept
        self._close = weakref.finalize(self, pool.close) if not keep else pool.close
        skips = [0] * pool.size if order is not None else epoch.by_worker
        pool.begin(self._number, epoch.seed, skips, convert() is not None)
        self._top_up()

    def __next__(self) -> Any:
        try:
            return self._next()
        except Exception:  # of a sample, or of the end of the iteration
            raise
        except BaseException as error:  # Ctrl-C may have lost a batch, so no other one may follow
            self._end(error)
            raise

    @waiting
    def _next(self) -> Any:
        if os.getpid() != self._process:  # which has neither its workers nor its threads
            raise RuntimeError(
                "DataLoader: this iterator belongs to the process that made it; a forked child "
                "must make its own"
            )
        if self._pool.current != self._number:
            raise RuntimeError(
                "DataLoader: a later iteration of this loader has taken its persistent workers; "
                "go through one epoch at a time, or make a second loader"
            )
        if self._ended is not None:
            raise self._ended()
        if self._pool.is_closed and not self._epoch.finished:
            raise RuntimeError(
                "DataLoader: the workers of this iteration were ended; begin a new one"
            )
        return self._following()

    def _following(self) -> Any:
        while True:
            answer = self._take()
            if answer is None:
                self._finish()
                raise StopIteration
            worker, message = answer
            self._top_up()
            if message.kind == _END:
                continue
            self._failed += self._order is not None
            batch = self._pool.value(worker, message, self._convert())
            self._epoch.yielded += self._failed or 1  # also failed batches before this one
            self._failed = 0
            if self._order is None:
                self._epoch.by_worker[worker] += 1
                self._epoch.turn = (worker + 1) % self._pool.size
            return batch

    def _end(self, error: BaseException) -> None:
        if self._ended is None:
            self._ended = _again(error)
            self._pool.close(0)

    def _take(self) -> tuple[int, Any] | None:
        """The next answer to a task, in the chosen order; None after the last one."""
        while True:
            if self._in_order and self._taken in self._done:
                self._taken += 1
                return self._done.pop(self._taken - 1)
            if not self._in_order and self._done:
                self._taken += 1
                return self._done.pop(next(iter(self._done)))
            if not self._owners:
                return None
            task = self._taken if self._in_order else next(iter(self._owners))
            worker, message = self._receive(self._owners[task])
            del self._owners[message.number]
            self._loads[worker] -= 1
            if message.kind == _END:
                self._active[worker] = False
            self._done[message.number] = (worker, message)

    def _receive(self, owing: int) -> tuple[int, Any]:
        try:
            worker, message = self._pool.receive(self._number, self._timeout, owing)
            if message.number < 0:  # the epoch could not begin
                self._pool.value(worker, message, None)
        except BaseException as error:  # a worker died, or Ctrl-C: end at once
            self._end(error)
            raise
        return worker, message

    def _top_up(self) -> None:
        while not self._exhausted and self._sent - self._taken < self._most:
            worker = self._choose()
            if worker is None:
                return
            indices = None
            if self._order is not None:
                try:
                    indices = next(self._order)
                except StopIteration:
                    self._exhausted = True
                    return
            self._pool.submit(worker, self._number, self._sent, indices)
            self._owners[self._sent] = worker
            self._loads[worker] += 1
            self._sent += 1

    def _choose(self) -> int | None:
        """The worker for the next task: in turns, or the one with the fewest tasks."""
        count = len(self._active)
        candidates = [
            worker
            for worker in ((self._turn + i) % count for i in range(count))
            if self._active[worker]
        ]
        if not candidates:
            return None
        busy = self._loads.__getitem__
        worker = candidates[0] if self._in_order else min(candidates, key=busy)
        self._turn = (worker + 1) % count
        return worker

    def _shutdown_workers(self) -> None:
        """End the workers; programs of PyTorch call it."""
        self._pool.close()

    def _finish(self) -> None:
        self._epoch.finished = True
        if not self._keep:
            self._close()


def _again(error: BaseException) -> Callable[[], BaseException]:
    """Return what makes the error of a later call: it holds no traceback, whose frames hold us."""
    if not isinstance(error, WorkerError):
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return partial(
            RuntimeError, f"DataLoader: this iteration ended with {text}; begin a new one"
        )
    kind, args, facts = type(error), error.args, dict(vars(error))

    def repeat() -> BaseException:
        repeated = kind(*args)
        vars(repeated).update(facts)
        return repeated

    return repeat


_END = 1  # `plait_data._workers._codec.END`, which is not imported without workers
