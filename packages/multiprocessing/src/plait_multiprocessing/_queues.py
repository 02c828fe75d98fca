"""The standard queues over this package's pipes."""

from __future__ import annotations

import functools
import threading
import time
from multiprocessing import queues
from queue import Full
from typing import Any

from plait_abi.imports import uninterrupted
from plait_multiprocessing._connections import Connection, Pipe
from plait_multiprocessing._reductions import dumps

__all__ = ["JoinableQueue", "Queue", "SimpleQueue"]

_outgoing = threading.local()


class _Item:
    """A message on its way through the standard feeder thread, which pickles what it gets.

    Its pickle says nothing: the message waits for `_send_outgoing`, which the same thread calls
    next.
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


class _Sharing:
    """What both queues with a feeder thread change."""

    _reader: Connection
    _writer: Connection
    _sem: Any

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

        It is pickled here and now, unlike the standard module's: what cannot be pickled is an error
        of this call, and tensors are in shared memory when it returns, whatever is done with them
        before the feeder thread sends the message.
        """
        item, end = _Item(dumps(obj)), time.monotonic() + (timeout or 0)
        while True:
            # An interrupt within it could leave the lock held for ever, or a thread without an end.
            with uninterrupted():
                try:
                    super().put(item, False)  # type: ignore[misc]
                    return
                except Full:
                    if not block:
                        raise
            if not self._sem.acquire(True, None if timeout is None else end - time.monotonic()):
                raise Full
            self._sem.release()  # there is room now, unless another takes it

    def close(self) -> None:
        """Send no more; the feeder thread ends when it has sent what there is."""
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
        with self._wlock:
            self._writer.send_bytes(message)
