"""The server of a manager, which limits connections of unknown processes.

A connection is unknown until the process behind it has proved that it knows the key. Each has a
thread, which waits for the proof as the standard server does. The number of unknown connections
and their time are limited: when there are too many, or no descriptors are left, the oldest one is
closed.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from multiprocessing import managers
from typing import Any

from plait_multiprocessing._connections import Connection

_MOST = 256  # strangers at once
_TIME = 10.0  # seconds that a stranger has
_LOOK = 1.0  # seconds between looks at those that are late
_PAUSE = 0.005  # seconds in which the thread of a stranger closes its connection


class _Visitor(Connection):
    """A connection to the server; the standard server calls `recv` behind the proof."""

    strangers: _Strangers

    def recv(self) -> Any:
        self.strangers.remove(self)
        return super().recv()

    def close(self) -> None:
        self.strangers.remove(self)
        super().close()


class _Strangers:
    """Connections that have not proved that they know the key; the oldest first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._came: dict[int, tuple[_Visitor, float]] = {}

    def add(self, handle: int) -> _Visitor:
        visitor = _Visitor(handle)
        visitor.strangers = self
        with self._lock:
            self._came[id(visitor)] = visitor, time.monotonic()
        return visitor

    def remove(self, visitor: _Visitor) -> None:
        with self._lock:
            self._came.pop(id(visitor), None)

    def end(self, most: int, seconds: float) -> None:
        """End the oldest ones until there are so few, and those that came so long ago."""
        with self._lock:
            for key, (visitor, came) in list(self._came.items()):
                if len(self._came) <= most and time.monotonic() - came < seconds:
                    return
                del self._came[key]
                end = socket.socket(fileno=visitor.fileno())
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)  # wakes its thread, which closes it
                end.detach()

    def end_oldest(self) -> None:
        """End one, if there is one."""
        self.end(len(self._came) - 1, _TIME)


class Server(managers.Server):
    """`multiprocessing.managers.Server` with a bounded number of strangers."""

    listener: Any

    def accepter(self) -> None:
        """Take connections, each for a thread of its own."""
        strangers, listening = _Strangers(), self.listener._listener._socket
        poll = select.poll()
        poll.register(listening, select.POLLIN)
        while listening.fileno() >= 0:
            ready = poll.poll(1000 * _LOOK)
            strangers.end(_MOST, _TIME)
            if not ready:
                continue
            try:
                accepted = self.listener.accept()
            except OSError:
                strangers.end_oldest()
                time.sleep(_PAUSE)
                continue
            handle, accepted._handle = accepted._handle, None
            visitor = strangers.add(handle)
            try:
                threading.Thread(target=self.handle_request, args=(visitor,), daemon=True).start()
            except RuntimeError:  # there are too many threads
                visitor.close()
