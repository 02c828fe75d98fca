"""Pipes whose messages carry descriptors of shared memory."""

from __future__ import annotations

import errno
import io
import os
import resource
import socket
from collections.abc import Callable
from multiprocessing import connection, reduction
from typing import Any, NoReturn

from plait_multiprocessing import _shared
from plait_multiprocessing._reductions import Message, dumps, loads


class _Received(bytes):
    """Bytes of a message that keep its arenas mapped until they are unpickled."""

    pins: tuple[_shared.Pin, ...] = ()


class Connection(connection.Connection):
    """`multiprocessing.connection.Connection` that sends tensors as shared memory.

    Over TCP tensors are sent by value.

    Args:
        handle: The file descriptor.
        readable: Whether it can receive.
        writable: Whether it can send.

    Example:
        >>> import plait_multiprocessing as mp
        >>> first, second = mp.Pipe()
        >>> type(first) is mp.Connection
        True
        >>> first.send([1, 2])
        >>> second.recv()
        [1, 2]
    """

    _local: bool | None = None

    def _is_local(self) -> bool:
        if self._local is None:
            try:
                with socket.socket(fileno=os.dup(self.fileno())) as end:
                    self._local = end.family == socket.AF_UNIX
            except OSError:  # a pipe
                self._local = False
        return self._local

    def _check(self, way: str) -> None:
        base: Any = super()
        base._check_closed()
        getattr(base, f"_check_{way}")()

    def _refuse_length(self) -> NoReturn:
        base: Any = super()
        base._bad_message_length()
        raise AssertionError  # it raised OSError

    def send(self, obj: Any) -> None:
        """Send a picklable object; its tensors go to shared memory."""
        self._check("writable")
        self._send_bytes(dumps(obj) if self._is_local() else reduction.ForkingPickler.dumps(obj))

    def send_bytes(self, buf: Any, offset: int = 0, size: int | None = None) -> None:
        """Send bytes, or a `Message` with its descriptors."""
        if isinstance(buf, Message) and buf.tickets:
            self._check("writable")
            self._send_bytes(buf)
        else:
            super().send_bytes(buf, offset, size)

    def recv(self) -> Any:
        """Receive an object."""
        self._check("readable")
        message = _shared.receive_message(self.fileno(), -1)
        assert message is not None
        return loads(*message)

    def recv_bytes(self, maxlength: int | None = None) -> bytes:
        """Receive the bytes of one message."""
        self._check("readable")
        if maxlength is not None and maxlength < 0:
            raise ValueError("negative maxlength")
        message = _shared.receive_message(self.fileno(), -1 if maxlength is None else maxlength)
        if message is None:
            self._refuse_length()
        data, pins = message
        if not pins:
            return data
        received = _Received(data)
        received.pins = pins
        return received

    def _send_bytes(self, buf: Any) -> None:
        tickets = buf.tickets if isinstance(buf, Message) else ()
        _shared.send_message(self.fileno(), buf, tickets)

    def _recv_bytes(self, maxsize: int | None = None) -> io.BytesIO | None:
        message = _shared.receive_message(self.fileno(), -1 if maxsize is None else maxsize)
        if message is None:
            return None
        file = io.BytesIO()
        file.write(message[0])
        return file


def _rebuild_connection(descriptor: Any, readable: bool, writable: bool) -> Connection:
    return Connection(descriptor.detach(), readable, writable)


def _reduce_connection(end: Connection) -> tuple[Any, ...]:
    return _rebuild_connection, (reduction.DupFd(end.fileno()), end.readable, end.writable)


reduction.register(Connection, _reduce_connection)


def Pipe(duplex: bool = True) -> tuple[Connection, Connection]:  # noqa: N802
    """Return two connected ends; with ``duplex=False`` the first reads and the second writes.

    Example:
        >>> import plait_core as pc, plait_multiprocessing as mp
        >>> receiver, sender = mp.Pipe(duplex=False)
        >>> x = pc.zeros(3)
        >>> sender.send(x)
        >>> receiver.recv().fill_(7.0)
        tensor([7., 7., 7.])
        >>> x
        tensor([7., 7., 7.])
    """
    try:
        first, second = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        raise OSError(
            errno.EMFILE,
            "Pipe: two file descriptors are required, and the limit of open files "
            f"(RLIMIT_NOFILE) is {limit}; raise it with `ulimit -n` or resource.setrlimit",
        ) from None
    first.setblocking(True)
    second.setblocking(True)
    if duplex:
        return Connection(first.detach()), Connection(second.detach())
    first.shutdown(socket.SHUT_WR)
    second.shutdown(socket.SHUT_RD)
    return (Connection(first.detach(), writable=False), Connection(second.detach(), readable=False))


def _handle_of(end: Any) -> int:
    """Take the descriptor from a connection, which is closed then."""
    handle: int = end._handle
    end._handle = None
    return handle


def _taken_over(end: Any) -> Connection:
    return Connection(_handle_of(end))


class Requests(Connection):
    """A connection to a server, which answers each request; `connect` makes it again.

    An exception of a signal's handler may end the wait for an answer. The next request must not get
    that answer: it goes over a new connection.

    Example:
        >>> import plait_multiprocessing as mp
        >>> from plait_multiprocessing._connections import Requests
        >>> ends = []
        >>> def connect():
        ...     first, second = mp.Pipe()
        ...     ends.append(second)
        ...     return first
        >>> requests = Requests.over(connect)
        >>> requests.send("first")  # and nobody waits for the answer
        >>> requests.send("second")
        >>> len(ends), ends[1].recv()
        (2, 'second')
    """

    _connect: Callable[[], Connection]
    _waits = False  # for an answer
    _greeting: Any = None  # what a server of proxies must be told first

    @classmethod
    def over(cls, connect: Callable[[], Connection]) -> Requests:
        """Return a connection that `connect` makes."""
        requests = cls(_handle_of(connect()))
        requests._connect = connect
        return requests

    def send(self, obj: Any) -> None:
        """Send a request."""
        if self._waits:
            self._replace()
        if self._greeting is None and obj[1:2] == ("accept_connection",):
            self._greeting = obj
        self._waits = True
        super().send(obj)

    def recv(self) -> Any:
        """Receive the answer."""
        answer = super().recv()
        self._waits = False
        return answer

    def _replace(self) -> None:
        self.close()
        end = self._connect()
        if self._greeting is not None:
            end.send(self._greeting)
            end.recv()
        self._handle = _handle_of(end)


class Listener(connection.Listener):
    """`multiprocessing.connection.Listener` whose connections are this package's.

    With an ``authkey`` it hears one connection at a time, as Python's does: `accept` waits for one
    that says nothing. Where strangers reach the address, use a manager, or `plait.distributed`.

    Args:
        address: The address.
        family: The kind of socket; None: that of the address.
        backlog: How many connections may wait.
        authkey: The key of both sides, bytes; or None.

    Example:
        >>> import threading, plait_multiprocessing as mp
        >>> def greet(address):
        ...     with mp.Client(address) as end:
        ...         end.send("hello")
        >>> with mp.Listener() as listener:
        ...     thread = threading.Thread(target=greet, args=(listener.address,))
        ...     thread.start()
        ...     with listener.accept() as end:
        ...         print(end.recv())
        ...     thread.join()
        hello
    """

    def accept(self) -> Connection:
        """Wait for a connection."""
        return _taken_over(super().accept())


def Client(  # noqa: N802
    address: Any, family: str | None = None, authkey: bytes | None = None
) -> Connection:
    """Connect to a `Listener`.

    Args:
        address: The address.
        family: The kind of socket; None: that of the address.
        authkey: The key of both sides, bytes; or None.

    Example:
        >>> import plait_multiprocessing as mp
        >>> try:
        ...     mp.Client("/nowhere/socket")
        ... except FileNotFoundError:
        ...     print("nobody listens there")
        nobody listens there
    """
    return _taken_over(connection.Client(address, family, authkey))
