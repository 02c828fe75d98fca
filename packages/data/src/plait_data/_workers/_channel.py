"""Messages over a socket: a length, then as many bytes; descriptors with the first of them."""

from __future__ import annotations

import socket
import struct
from collections import deque

_LENGTH = struct.Struct("<I")
_CHUNK = 1 << 16
_MOST_DESCRIPTORS = 4


def send_message(connection: socket.socket, message: bytes) -> None:
    """Send a complete message, waiting if necessary. ConnectionError: the reader has ended."""
    connection.sendall(_LENGTH.pack(len(message)) + message)


def receive_message(connection: socket.socket) -> bytes | None:
    """The next message, waiting for it; None at the end of the connection."""
    head = _exactly(connection, _LENGTH.size)
    return None if head is None else _exactly(connection, _LENGTH.unpack(head)[0])


def receive_descriptors(connection: socket.socket) -> list[int]:
    """The descriptors that came with one byte, sent by `Channel.send_descriptors`."""
    _, descriptors, _, _ = socket.recv_fds(connection, 1, _MOST_DESCRIPTORS)
    return descriptors


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    data = bytearray(size)
    view, at = memoryview(data), 0
    while at < size:
        try:
            count = connection.recv_into(view[at:])
        except ConnectionResetError:  # the other end closed with messages unread
            return None
        if count == 0:
            return None
        at += count
    return bytes(data)


class Channel:
    """The parent's end, which sends and receives without waiting and stores unfinished messages.

    A worker may wait until the parent reads, so the parent must never wait for the worker.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._received = bytearray()
        self._unsent: deque[memoryview] = deque()
        self.ended = False

    def fileno(self) -> int:
        """The socket's descriptor."""
        return self._socket.fileno()

    @property
    def waiting(self) -> bool:
        """Whether something is left to send."""
        return bool(self._unsent)

    def send_descriptors(self, descriptors: list[int]) -> None:
        """Send descriptors with one byte."""
        socket.send_fds(self._socket, [b"\0"], descriptors)

    def send(self, message: bytes) -> None:
        """Send a message; keep what the socket does not accept for `flush`."""
        self._unsent.append(memoryview(_LENGTH.pack(len(message)) + message))
        self.flush()

    def flush(self) -> None:
        """Send more of the stored messages.

        OSError: the system call fails although the worker is alive.
        """
        while self._unsent:
            try:
                count = self._socket.send(self._unsent[0])
            except BlockingIOError:
                return
            # the worker has ended; the reader will see the end of the connection
            except ConnectionError:
                self._unsent.clear()
                return
            if count == len(self._unsent[0]):
                self._unsent.popleft()
            else:
                self._unsent[0] = self._unsent[0][count:]

    def messages(self) -> list[bytes]:
        """The complete messages so far; sets ``ended`` at the end of the connection.

        OSError: the system call fails although the worker is alive.
        """
        while not self.ended:
            try:
                data = self._socket.recv(_CHUNK)
            except BlockingIOError:
                break
            except ConnectionError:
                data = b""
            if not data:
                self.ended = True
            self._received += data
            if len(data) < _CHUNK:
                break
        at, received, messages = 0, self._received, []
        while len(received) - at >= _LENGTH.size:
            end = at + _LENGTH.size + _LENGTH.unpack_from(received, at)[0]
            if end > len(received):
                break
            messages.append(bytes(received[at + _LENGTH.size : end]))
            at = end
        del received[:at]
        return messages

    def close(self) -> None:
        """End the connection, which also ends the worker."""
        self._socket.close()
