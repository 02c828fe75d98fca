"""Connections whose two ends have proved to each other that they know the job's secret.

Both send a nonce; each proves the secret by an HMAC over both nonces, in turns, the one that
connected first. Until then the listening end reads 64 bytes and no more. What follows is in
frames: a length, bytes, and an HMAC with a key of this connection and the frame's number. Nothing
is hidden, and nothing is unpickled.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import math
import os
import random
import secrets
import socket
import stat
import struct
import time
from collections.abc import Callable, Mapping
from multiprocessing import AuthenticationError

__all__ = [
    "Channel",
    "SecretProof",
    "connect",
    "exactly",
    "is_of_this_user",
    "job_secret",
    "process_and_user",
    "reach",
]

_GREETING = b"PLAITDS1"
_DIGEST = 32  # bytes
_LENGTH = struct.Struct("<I")
_CREDENTIALS = struct.Struct("3i")  # of a process: its number, its user's, its group's
_MOST = 64 << 20  # bytes of a frame
_HANDSHAKE = 10.0  # seconds
_ATTEMPTS = 6
_PAUSE = 0.1  # seconds behind the first attempt, twice as many behind each other one


def job_secret(environment: Mapping[str, str] | None = None) -> str:
    """Return the job's secret: PLAIT_JOB_SECRET, or what is in the file PLAIT_JOB_SECRET_FILE,
    which its owner alone may read; '' if there is neither.

    Raises:
        ValueError: the file cannot be used.

    Example:
        >>> from plait_multiprocessing.authentication import job_secret
        >>> job_secret({"PLAIT_JOB_SECRET": "of the job"})
        'of the job'
    """
    environ = os.environ if environment is None else environment
    text, path = environ.get("PLAIT_JOB_SECRET", ""), environ.get("PLAIT_JOB_SECRET_FILE", "")
    if text or not path:
        return text
    source = f"the file {path} that PLAIT_JOB_SECRET_FILE names"
    try:
        with open(path, encoding="utf-8") as file:
            if os.fstat(file.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise ValueError(f"{source} must be readable by its owner alone (chmod 600)")
            result = file.read(4096).rstrip()
    except OSError as error:
        raise ValueError(f"{source} cannot be read: {error.strerror}") from None
    if not result:
        raise ValueError(f"{source} is empty")
    return result


def _mac(key: bytes, *parts: bytes) -> bytes:
    return hmac.new(key, b"".join(parts), hashlib.sha256).digest()


def exactly(end: socket.socket, size: int) -> bytes:
    """Return so many bytes; EOFError if the other end closes before.

    Example:
        >>> import socket
        >>> from plait_multiprocessing.authentication import exactly
        >>> left, right = socket.socketpair()
        >>> with left, right:
        ...     left.sendall(b"abcd")
        ...     exactly(right, 3)
        b'abc'
    """
    data = bytearray()
    while len(data) < size:
        part = end.recv(min(size - len(data), 1 << 20))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


def process_and_user(end: socket.socket) -> tuple[int, int]:
    """Return the numbers of the process that has the other end of a local socket, and of its user.

    Example:
        >>> import os, socket
        >>> from plait_multiprocessing.authentication import process_and_user
        >>> left, right = socket.socketpair()
        >>> with left, right:
        ...     process_and_user(left) == (os.getpid(), os.getuid())
        True
    """
    data = end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process, user, _ = _CREDENTIALS.unpack(data)
    return process, user


def is_of_this_user(end: socket.socket) -> bool:
    """Return whether a process of this user has the other end of a local socket.

    Example:
        >>> import socket
        >>> from plait_multiprocessing.authentication import is_of_this_user
        >>> left, right = socket.socketpair()
        >>> with left, right:
        ...     is_of_this_user(left)
        True
    """
    return process_and_user(end)[1] == os.getuid()


class Channel:
    """One end of a connection, behind the proofs: `connect` and `SecretProof.take` return it.

    Example:
        >>> import socket
        >>> from plait_multiprocessing.authentication import Channel
        >>> left, right = socket.socketpair()
        >>> host = Channel(left, b"key", b"host", b"guest")
        >>> guest = Channel(right, b"key", b"guest", b"host")
        >>> guest.send(b"a message")
        >>> host.receive()
        b'a message'
        >>> host.close(); guest.close()
    """

    def __init__(self, end: socket.socket, key: bytes, own: bytes, theirs: bytes) -> None:
        self._end = end
        self._key = key
        self._mine, self._theirs = own, theirs
        self._sent = self._received = 0

    def fileno(self) -> int:
        """Return the descriptor, at which something can be waited for."""
        return self._end.fileno()

    def settimeout(self, seconds: float | None) -> None:
        """Let sending and receiving raise TimeoutError after so long."""
        self._end.settimeout(seconds)

    def send(self, data: bytes) -> None:
        """Send a frame."""
        if len(data) > _MOST:
            raise ValueError(f"a message must have at most {_MOST} bytes, got {len(data)}")
        number = self._sent.to_bytes(8, "little")
        self._sent += 1
        mac = _mac(self._key, self._mine, number, data)
        self._end.sendall(_LENGTH.pack(len(data)) + data + mac)

    def receive(self) -> bytes:
        """Return the next frame; EOFError if there are no more, or one is not genuine."""
        (size,) = _LENGTH.unpack(exactly(self._end, _LENGTH.size))
        if size > _MOST:
            raise EOFError
        data = exactly(self._end, size)
        number = self._received.to_bytes(8, "little")
        self._received += 1
        right = _mac(self._key, self._theirs, number, data)
        if not hmac.compare_digest(right, exactly(self._end, _DIGEST)):
            raise EOFError
        return data

    def finish(self, seconds: float) -> None:
        """End the connection when the other end has done so, which has read all that was sent
        then; after so long in any case.
        """
        deadline = time.monotonic() + seconds
        with contextlib.suppress(OSError):
            self._end.shutdown(socket.SHUT_WR)
            self._end.settimeout(seconds)
            while self._end.recv(1 << 16) and time.monotonic() < deadline:
                pass
        self.close()

    def close(self) -> None:
        """End the connection; one that another thread reads from, too."""
        with contextlib.suppress(OSError):
            self._end.shutdown(socket.SHUT_RDWR)
        self._end.close()


class SecretProof:
    """The proof that the listening end requires of a connection: that it knows the secret.

    Args:
        end: the connection, which does not wait; the greeting is sent.
        secret: of the job.

    Example:
        >>> import socket, threading
        >>> from plait_multiprocessing.authentication import SecretProof, connect, exactly
        >>> left, right = socket.socketpair()
        >>> proof = SecretProof(left, "of the job")
        >>> def other() -> None:
        ...     connect(right, "of the job", "the other").send(b"a message")
        >>> thread = threading.Thread(target=other)
        >>> thread.start()
        >>> channel = proof.take(exactly(left, proof.wanted))
        >>> channel.receive()
        b'a message'
        >>> thread.join()
        >>> channel.close(); right.close()
    """

    wanted = 2 * _DIGEST

    def __init__(self, end: socket.socket, secret: str) -> None:
        self._end, self._key = end, os.fsencode(secret)
        self._nonce = secrets.token_bytes(_DIGEST)
        end.sendall(_GREETING + self._nonce)  # into the empty buffer of a new connection

    def take(self, data: bytes) -> Channel | None:
        """Return the channel with the sender of a proof; None if the proof is wrong."""
        nonces = self._nonce + data[:_DIGEST]
        if not hmac.compare_digest(_mac(self._key, b"guest", nonces), data[_DIGEST:]):
            return None
        self._end.sendall(_mac(self._key, b"host", nonces))
        self._end.settimeout(None)
        return Channel(self._end, _mac(self._key, b"key", nonces), b"host", b"guest")


def reach(
    connect_once: Callable[[], socket.socket | None],
    secret: str,
    peer: str,
    deadline: float = math.inf,
) -> Channel | None:
    """Return the channel with the listening process; None if there is none.

    A listener that has too many connections closes some: so it is tried again a few times, and not
    by all at the same time.

    Args:
        connect_once: returns a new connection, or None.
        secret: of the job.
        who: the listener, for errors.
        deadline: when attempts end, in the seconds of `time.monotonic`.

    Raises:
        AuthenticationError: it is no process of this job, or did not answer in time.

    Example:
        >>> from plait_multiprocessing.authentication import reach
        >>> reach(lambda: None, "of the job", "rank 0") is None  # nobody listens
        True
    """
    for attempt in range(_ATTEMPTS):
        end = connect_once()
        if end is None:
            return None
        try:
            return connect(end, secret, peer, deadline)
        except AuthenticationError:
            pause = _PAUSE * 2**attempt * random.uniform(0.5, 1.5)
            if attempt + 1 == _ATTEMPTS or time.monotonic() + pause > deadline:
                raise
            time.sleep(pause)
    return None


def connect(end: socket.socket, secret: str, peer: str, deadline: float = math.inf) -> Channel:
    """Return the channel with the listening process.

    Raises:
        AuthenticationError: it is no process of this job, or did not answer in time.

    Example:
        >>> import socket
        >>> from multiprocessing import AuthenticationError
        >>> from plait_multiprocessing.authentication import connect
        >>> left, right = socket.socketpair()
        >>> left.close()
        >>> try:
        ...     connect(right, "of the job", "the other")
        ... except AuthenticationError as error:
        ...     print(str(error)[:39])
        the other is not a process of this job,
    """
    key = os.fsencode(secret)
    try:
        end.settimeout(min(_HANDSHAKE, max(0.01, deadline - time.monotonic())))
        greeting = exactly(end, len(_GREETING) + _DIGEST)
        if greeting.startswith(_GREETING):
            own = secrets.token_bytes(_DIGEST)
            nonces = greeting[len(_GREETING) :] + own
            end.sendall(own + _mac(key, b"guest", nonces))
            if hmac.compare_digest(_mac(key, b"host", nonces), exactly(end, _DIGEST)):
                end.settimeout(None)
                return Channel(end, _mac(key, b"key", nonces), b"guest", b"host")
    except (OSError, EOFError):
        pass
    end.close()
    raise AuthenticationError(
        f"{peer} is not a process of this job, or has another secret: PLAIT_JOB_SECRET must be the "
        "same in all processes"
    )
