"""The standard queues over this package's pipes."""

from __future__ import annotations

import functools
import select
import threading
import time
from multiprocessing import queues
from queue import Empty, Full
from typing import Any

from plait_multiprocessing._connections import Connection, Pipe
from plait_multiprocessing._reductions import dumps, loads
from plait_multiprocessing.interrupts import uninterrupted

_outgoing = threading.local()


class _Item:
    """A message in the standard feeder thread, which pickles its items.

    Its pickle is empty: the message is sent by `_send_outgoing`, which the same thread calls next.
    """

    __slots__ = ("message",)

    def __init__(self, message: bytes) -> None:
        self.message = message

    def __reduce__(self) -> tuple[Any, ...]:
        _outgoing.message = self.message
        return bool, ()


def _send_outgoing(writer: Connection, pickled: Any) -> None:
    message: bytes = _outgoing.message
    del _outgoing.message
    writer.send_bytes(message)


_SLICE = 0.05  # longest time in seconds that a signal waits while a process waits for a queue


class _Slices:
    """A wait in slices, between which the handlers of signals run."""

    __slots__ = ("_end",)

    def __init__(self, timeout: float | None) -> None:
        self._end = None if timeout is None else time.monotonic() + timeout

    def next(self) -> float:
        if self._end is None:
            return _SLICE
        return min(_SLICE, max(0.0, self._end - time.monotonic()))

    def are_over(self) -> bool:
        return self._end is not None and time.monotonic() >= self._end


def _receive(
    reader: Connection, lock: Any, slots: Any, block: bool = True, timeout: float | None = None
) -> bytes:
    """Receive one message under the readers' lock, which is released after an interrupt.

    Interrupts are raised between two slices, and receiving does not begin after one has arrived.
    """
    left = _Slices(timeout if block else 0.0)
    while True:
        with uninterrupted() as interrupted:
            if lock.acquire(block, left.next()):
                try:
                    if _is_readable(reader, left.next()) and not interrupted:
                        message = reader.recv_bytes()
                        if slots is not None:
                            slots.release()
                        return message
                finally:
                    lock.release()
            if not interrupted and left.are_over():
                raise Empty


def _is_readable(reader: Connection, seconds: float) -> bool:
    poll = select.poll()  # the standard module's way takes longer than receiving a small message
    poll.register(reader.fileno(), select.POLLIN)
    return bool(poll.poll(seconds * 1000))


class _Sharing:
    """The base of the queues with a feeder thread."""

    _reader: Connection
    _writer: Connection
    _rlock: Any
    _sem: Any
    _closed: bool

    def __init__(self, maxsize: int = 0, *, ctx: Any) -> None:
        super().__init__(maxsize, ctx=ctx)  # type: ignore[call-arg]
        self._reader.close()
        self._writer.close()
        self._reader, self._writer = Pipe(duplex=False)
        self._reset()

    def _reset(self, after_fork: bool = False) -> None:
        super()._reset(after_fork)  # type: ignore[misc]
        self._send_bytes = functools.partial(_send_outgoing, self._writer)

    def put(self, obj: Any, block: bool = True, timeout: float | None = None) -> None:
        """Put an object into the queue.

        Unlike in the standard module, it is pickled in this call: an object that cannot be pickled
        raises here, and tensors are in shared memory when the call returns, also if they change
        before the feeder thread sends the message.
        """
        item, left = _Item(dumps(obj)), _Slices(timeout)
        while True:
            # an interrupt in it could lose a slot of a bounded queue, or leave a lock held or a
            # thread running for ever
            with uninterrupted():
                try:
                    super().put(item, block, left.next())  # type: ignore[misc]
                    return
                except Full:
                    if not block or left.are_over():
                        raise

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Take an object out of the queue.

        Args:
            block: whether to wait for one.
            timeout: the longest wait in seconds; by default it is unlimited.

        Raises:
            queue.Empty: if there is none, after the wait.
            ValueError: if the queue was closed in this process.
        """
        if self._closed:
            raise ValueError(f"Queue {self!r} is closed")
        return loads(_receive(self._reader, self._rlock, self._sem, block, timeout))

    def close(self) -> None:
        """Close the queue; the feeder thread sends the remaining messages and ends."""
        with uninterrupted():
            super().close()  # type: ignore[misc]


class Queue(_Sharing, queues.Queue):  # type: ignore[type-arg]
    """`multiprocessing.Queue` that sends tensors as shared memory."""


class JoinableQueue(_Sharing, queues.JoinableQueue):  # type: ignore[type-arg]
    """`multiprocessing.JoinableQueue` that sends tensors as shared memory."""


class SimpleQueue(queues.SimpleQueue):  # type: ignore[type-arg]
    """`multiprocessing.SimpleQueue` that sends tensors as shared memory."""

    _reader: Connection
    _writer: Connection
    _rlock: Any
    _wlock: Any

    def __init__(self, *, ctx: Any) -> None:
        super().__init__(ctx=ctx)
        self._reader.close()
        self._writer.close()
        self._reader, self._writer = Pipe(duplex=False)
        self._poll = self._reader.poll

    def put(self, obj: Any) -> None:
        """Send an object."""
        message = dumps(obj)
        acquired = False
        try:
            while not acquired:
                with uninterrupted():  # an interrupt as soon as it is taken would leave it held
                    acquired = self._wlock.acquire(True, _SLICE)
            self._writer.send_bytes(message)
        finally:
            if acquired:
                self._wlock.release()

    def get(self) -> Any:
        """Wait for an object and return it."""
        return loads(_receive(self._reader, self._rlock, None))
