"""Sockets at which processes of a job connect, and others do no harm.

Who has connected is a stranger until a proof has come. Strangers are few, have little time, and are
heard by one thread, which never waits for one of them: when there are too many, or the process has
no descriptors left, the oldest one has to go.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

__all__ = ["Listener", "Proof"]

_MOST = 256  # strangers at once; all ranks of a job may come together
_TIME = 10.0  # seconds that a stranger has for its proof
_SAFE = 0.25  # seconds in which a stranger is not closed for others; a proof takes milliseconds
_RATE = (
    256  # strangers that may be closed for others in a second: if many are open, all have longer
)
_PAUSE = 0.1  # seconds without new connections when there are no descriptors
_LOOK = 0.5  # seconds between looks whether the listener is closed
# of accept: there is no room for a connection now
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_CLOSED = (errno.EBADF, errno.EINVAL, errno.ENOTSOCK)

_sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()  # of all listeners


def _close_in_child() -> None:
    """Close the sockets in a forked child, which would keep address and connections when its parent
    is lost: others would wait there in vain.
    """
    for each in list(_sockets):
        each.close()


os.register_at_fork(after_in_child=_close_in_child)


class _HasFileno(Protocol):
    """The type of arguments of `select.poll`: sockets, channels."""

    def fileno(self) -> int:
        """Return the descriptor."""
        ...


class Proof(Protocol):
    """The proof that a new connection must send; a new object for each connection."""

    wanted: int
    """The number of bytes that it sends."""

    def take(self, data: bytes) -> Any:
        """Return what serves the other end, if these bytes are a proof; else None."""


class _Stranger:
    def __init__(self, end: socket.socket, proof: Proof) -> None:
        self.end, self.proof = end, proof
        self.came = time.monotonic()
        self.data = b""


class Listener:
    """Listening sockets, and the strangers that have connected.

    Args:
        listening: the sockets. They stay open when the listener is closed.
        prove: called with a socket that was accepted; returns what the stranger has to send, or
            None if it may not connect. It must not wait.

    Example:
        >>> import socket
        >>> from plait_multiprocessing.authentication import SecretProof
        >>> from plait_multiprocessing.listener import Listener
        >>> with socket.create_server(("127.0.0.1", 0)) as listening:
        ...     listener = Listener([listening], lambda end: SecretProof(end, "of the job"))
        ...     with socket.create_connection(listening.getsockname()) as stranger:
        ...         heard = listener.step(0.1)  # it has proved nothing
        ...     listener.close()
        >>> heard
        []
    """

    def __init__(
        self, listening: Sequence[socket.socket], prove: Callable[[socket.socket], Proof | None]
    ) -> None:
        self._listening = list(listening)
        for each in self._listening:
            each.setblocking(False)
        _sockets.update(self._listening)
        self._prove = prove
        self._strangers: list[_Stranger] = []  # the oldest first
        self._paused_until = 0.0

    def step(self, seconds: float, others: Iterable[_HasFileno] = ()) -> list[Any]:
        """Wait for at most `seconds`; return the results of `Proof.take` for correct proofs.

        Args:
            seconds: the limit of the wait.
            others: objects that also end the wait when they are readable.

        Raises:
            OSError: the sockets were closed.
        """
        now = time.monotonic()
        poll, by_descriptor = select.poll(), dict[int, Any]()
        is_open = now >= self._paused_until
        for each in self._listening if is_open else ():
            by_descriptor[each.fileno()] = each
        for stranger in self._strangers:
            by_descriptor[stranger.end.fileno()] = stranger
        by_descriptor.update((each.fileno(), None) for each in others)
        if -1 in by_descriptor or any(each.fileno() < 0 for each in self._listening):
            raise OSError(errno.EBADF, "the listening socket is closed")
        for descriptor in by_descriptor:
            poll.register(descriptor, select.POLLIN)
        until = now + seconds if is_open else min(now + seconds, self._paused_until)
        if self._strangers:
            until = min(until, self._strangers[0].came + _TIME)
        results = []
        for descriptor, _ in poll.poll(max(0.0, until - now) * 1000):
            ready = by_descriptor[descriptor]
            if ready is None:
                continue
            if not isinstance(ready, _Stranger):
                self._accept(ready)
            elif (heard := self._hear(ready)) is not None:
                results.append(heard)
        self._end_late()
        return results

    def serve(self, welcome: Callable[[Any], None]) -> None:
        """Call a function for each that proves itself, in a thread of its own, until the sockets
        are closed.
        """
        with contextlib.suppress(OSError, ValueError):
            while True:
                self.welcome(_LOOK, welcome)
        self.close()

    def welcome(self, seconds: float, welcome: Callable[[Any], None]) -> None:
        """Do the same as `step`; call a function for each correct proof, in a thread of its own."""
        for heard in self.step(seconds):
            try:
                threading.Thread(target=welcome, args=(heard,), daemon=True).start()
            except RuntimeError:  # there are too many threads
                heard.close()

    def close(self) -> None:
        """Close the connections of strangers."""
        for stranger in self._strangers:
            stranger.end.close()
        self._strangers = []

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_MOST):
            is_full = len(self._strangers) >= _MOST
            if is_full and not self._may_make_room():
                return
            try:
                end, _ = listening.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _CLOSED:
                    raise
                if error.errno in _NO_ROOM:
                    if not self._may_make_room():
                        return
                    self._end(self._strangers[0])
                continue  # or it has gone already
            if is_full:
                self._end(self._strangers[0])
            _sockets.add(end)
            end.setblocking(False)
            proof = None
            with contextlib.suppress(OSError):
                proof = self._prove(end)
            if proof is None:
                end.close()
            else:
                self._strangers.append(_Stranger(end, proof))

    def _may_make_room(self) -> bool:
        """Return whether the oldest unproved connection may be closed; else new ones wait."""
        now = time.monotonic()
        safe = max(_SAFE, len(self._strangers) / _RATE)
        oldest = self._strangers[0].came + safe if self._strangers else now + _PAUSE
        if oldest > now:
            self._paused_until = oldest
        return oldest <= now

    def _hear(self, stranger: _Stranger) -> Any:
        """Read what has come, and no more than the proof; return what serves its sender."""
        if stranger not in self._strangers:
            return None
        required = stranger.proof.wanted - len(stranger.data)
        heard = None
        try:
            data = stranger.end.recv(required)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        stranger.data += data
        if data and len(stranger.data) < stranger.proof.wanted:
            return None
        if data:
            with contextlib.suppress(OSError):
                heard = stranger.proof.take(stranger.data)
        if heard is None:
            self._end(stranger)
        else:
            self._strangers.remove(stranger)
        return heard

    def _end(self, stranger: _Stranger) -> None:
        self._strangers.remove(stranger)
        stranger.end.close()

    def _end_late(self) -> None:
        now = time.monotonic()
        while self._strangers and now - self._strangers[0].came >= _TIME:
            self._end(self._strangers[0])
