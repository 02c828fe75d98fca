"""A store in one process that the others of the job ask.

Processes of one host ask through a local socket, at which the system says whose a process is; those
of several hosts through TCP, where each proves that it knows the job's secret.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing import AuthenticationError
from typing import Any

from plait_distributed._errors import DistNetworkError, DistStoreError
from plait_distributed._meeting import is_here
from plait_distributed._store import HashStore, Store
from plait_distributed._work import seconds_of
from plait_multiprocessing import authentication
from plait_multiprocessing.listener import Listener, Proof

_NUMBER = struct.Struct("<I")
_PAUSE = 0.02  # seconds between attempts to reach the master
_FINISHING = 1.0  # seconds in which the master does what was asked when a call is interrupted


def _address(port: int) -> str:
    """Return the socket's address, which is in no folder: with the user's number in it."""
    return f"\0plait-store/{os.getuid()}/{port}"


def _pack(fields: Sequence[bytes]) -> bytes:
    parts = [_NUMBER.pack(len(fields))]
    for field in fields:
        parts += [_NUMBER.pack(len(field)), field]
    return b"".join(parts)


class _Messages:
    """Messages of some fields, on a channel with another process of the job."""

    def __init__(self, channel: authentication.Channel) -> None:
        self._channel = channel

    def send(self, fields: Sequence[bytes]) -> None:
        """Send a message of some fields."""
        self._channel.send(_pack(fields))

    def receive(self) -> list[bytes]:
        """Return the fields of a message; EOFError if there are no more messages."""
        data = self._channel.receive()
        count, at, fields = _NUMBER.unpack_from(data)[0], _NUMBER.size, []
        for _ in range(count):
            (size,) = _NUMBER.unpack_from(data, at)
            at += _NUMBER.size
            fields.append(data[at : at + size])
            at += size
        return fields

    def finish(self, seconds: float) -> None:
        """Close the connection when the other end has done what was asked, or after so long."""
        self._channel.finish(seconds)

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()


class _Proof(authentication.SecretProof):
    """A proof that the process knows the job's secret."""

    def take(self, data: bytes) -> Any:
        """Return the connection with the sender of a proof; None if the proof is wrong."""
        channel = super().take(data)
        return None if channel is None else _Messages(channel)


class _Place:
    """The address of a store: a local socket, or with a secret an address of the network."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        results = {str(i[4][0]) for i in _resolved(host)}
        outside = not all(each.startswith("127.") or each == "::1" for each in results)
        self.secret = authentication.job_secret() if outside else ""
        if not self.secret and not is_here(host):
            raise ValueError(
                f"TCPStore: `host_name` {host!r} is of another host, so the environment variable "
                "PLAIT_JOB_SECRET must be set to a secret text, the same in all processes"
            )
        self.address: Any = (sorted(results)[0], port) if self.secret else _address(port)

    def new_socket(self) -> socket.socket:
        """Return a new socket of the family."""
        if not self.secret:
            return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        family = socket.AF_INET6 if ":" in self.address[0] else socket.AF_INET
        result = socket.socket(family, socket.SOCK_STREAM)
        result.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return result

    def prove(self, end: socket.socket) -> Proof | None:
        """Return the messages that the new connection must send; None if it may not connect."""
        return _Proof(end, self.secret) if self._is_allowed(end) else None

    def _is_allowed(self, end: socket.socket) -> bool:
        return bool(self.secret) or authentication.is_of_this_user(end)

    def connect(self) -> _Messages | None:
        """Return a connection; None if no process listens."""
        caller = f"TCPStore: who listens at {self.host}:{self.port}"
        try:
            channel = authentication.reach(self._reach, self.secret, caller)
        except AuthenticationError as error:
            if not self.secret:  # the process at the local socket ends
                return None
            raise DistNetworkError(str(error)) from None
        return None if channel is None else _Messages(channel)

    def _reach(self) -> socket.socket | None:
        end = self.new_socket()
        with contextlib.suppress(OSError):
            end.connect(self.address)
            if self._is_allowed(end):
                return end
        end.close()
        return None


def _resolved(host: str) -> list[Any]:
    try:
        return socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        raise ValueError(f"TCPStore: the host {host!r} is not known") from None


class _Server:
    """The master's side: a thread for new connections, and one for each connected process."""

    def __init__(self, place: _Place) -> None:
        self.store = HashStore()
        self._place = place
        self._listening = place.new_socket()
        try:
            self._listening.bind(place.address)
        except OSError as error:
            self._listening.close()
            reason = error.strerror if place.secret else "another store of this user has it"
            raise DistNetworkError(
                f"TCPStore: the port {place.port} cannot be used: {reason}"
            ) from None
        self._listening.listen(1024)
        self.port: int = self._listening.getsockname()[1] if place.secret else place.port
        listener = Listener([self._listening], place.prove)
        self._accepting = threading.Thread(target=listener.serve, args=(self._serve,), daemon=True)
        self._accepting.start()

    def _serve(self, accepted: _Messages) -> None:
        with contextlib.closing(accepted) as end:
            while True:
                try:
                    name, *fields = end.receive()
                    answer = self._answer(name.decode(), fields)
                    try:
                        end.send(answer)
                    except ValueError as error:  # it is too long
                        end.send([str(error).encode()])
                except (EOFError, OSError, ValueError, struct.error):
                    return

    def _answer(self, name: str, fields: list[bytes]) -> list[bytes]:
        try:
            return [b"", *_ANSWERS[name](self.store, fields)]
        except Exception as error:
            return [str(error).encode() or b"it failed"]

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listening.close()
        # the address is free once that thread waits no longer at the socket
        if self._accepting is not threading.current_thread():
            self._accepting.join(1.0)


def _keys(fields: Sequence[bytes]) -> list[str]:
    return [field.decode() for field in fields]


def _set(store: HashStore, f: list[bytes]) -> list[bytes]:
    store.set(f[0].decode(), f[1])
    return []


def _append(store: HashStore, f: list[bytes]) -> list[bytes]:
    store.append(f[0].decode(), f[1])
    return []


def _wait(store: HashStore, f: list[bytes]) -> list[bytes]:
    store.wait(_keys(f[1:]), float(f[0]))
    return []


def _compare_set(store: HashStore, f: list[bytes]) -> list[bytes]:
    return [store.compare_set(f[0].decode(), f[1].decode(), f[2].decode())]


_ANSWERS: dict[str, Callable[[HashStore, list[bytes]], list[bytes]]] = {
    "set": _set,
    "get": lambda store, f: [store.get(f[0].decode())],
    "add": lambda store, f: [b"%d" % store.add(f[0].decode(), int(f[1]))],
    "append": _append,
    "compare_set": _compare_set,
    "check": lambda store, f: [b"%d" % store.check(_keys(f))],
    "wait": _wait,
    "delete_key": lambda store, f: [b"%d" % store.delete_key(f[0].decode())],
    "num_keys": lambda store, f: [b"%d" % store.num_keys()],
}


class TCPStore(Store):
    """A store in the master's memory.

    With an address of the loopback, or without a secret, it is for the processes of one user on
    this host: nothing listens at the TCP port, which is a name, and the processes ask through a
    local socket, at which the system says whose a process is. With an address that other hosts
    reach and a secret (PLAIT_JOB_SECRET, which the launcher sets), the master listens there, and
    reads nothing from a process that has not proved that it knows the secret.

    Args:
        host_name: of the master.
        port: a number that all give; 0: the master chooses one, `port`.
        world_size: the number of processes; None: not known.
        is_master: whether this process holds the data.
        timeout: seconds to wait for the master, for the others, and in `get` and `wait`.
        wait_for_workers: with a `world_size`, wait here until all have come.
        multi_tenant, master_listen_fd, use_libuv: unused.

    Raises:
        DistNetworkError: the master was not reached, or another one has the port.
        ValueError: the host is another one, and there is no secret; or it is not known.

    Example:
        >>> import plait_distributed as dist
        >>> master = dist.TCPStore("localhost", 0, is_master=True)
        >>> other = dist.TCPStore("localhost", master.port)
        >>> other.set("a", "1")
        >>> master.get("a")
        b'1'
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: Any = 300.0,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        super().__init__(timeout)
        self._pid = os.getpid()
        place = _Place(host_name, int(port))
        if is_master and port == 0 and not place.secret:
            place = _Place(host_name, secrets.randbelow(1 << 30) + (1 << 16))
        self._host, self._world_size = host_name, world_size
        self._server = _Server(place) if is_master else None
        self._port = place.port if self._server is None else self._server.port
        self._place = _Place(host_name, self._port)
        self._asking = threading.Lock()
        # None while a request is open, and behind one that was interrupted
        self._end: _Messages | None = self._connect()
        if world_size is not None and world_size > 0:
            self.add("plait/came", 1)
            if wait_for_workers and is_master:
                self._wait_for_all(world_size)

    def _connect(self) -> _Messages:
        deadline = time.monotonic() + self._timeout
        while True:
            end = self._place.connect()
            if end is not None:
                return end
            if time.monotonic() > deadline:
                raise DistNetworkError(
                    f"TCPStore: waited {self._timeout:g} s for a master with the port {self._port}"
                )
            time.sleep(_PAUSE)

    def _wait_for_all(self, size: int) -> None:
        deadline = time.monotonic() + self._timeout
        while self.add("plait/came", 0) < size:
            if time.monotonic() > deadline:
                came = self.add("plait/came", 0)
                raise DistStoreError(
                    f"TCPStore: waited {self._timeout:g} s for {size} processes, {came} came"
                )
            time.sleep(_PAUSE)

    @property
    def host(self) -> str:
        """The host's name, as it was given."""
        return self._host

    @property
    def port(self) -> int:
        """The number that names the store."""
        return self._port

    @property
    def world_size(self) -> int | None:
        """The number of processes, as it was given."""
        return self._world_size

    def _ask(self, name: str, *fields: str | bytes) -> list[bytes]:
        arguments = [
            name.encode(),
            *(f.encode() if isinstance(f, str) else bytes(f) for f in fields),
        ]
        with self._asking:
            try:
                failed, *answer = self._exchange(arguments)
            except (EOFError, OSError) as error:
                raise DistNetworkError(f"TCPStore: the master was lost: {error}") from None
        if failed:
            raise DistStoreError(failed.decode())
        return answer

    def _exchange(self, request: list[bytes]) -> list[bytes]:
        """Send a request and return its answer.

        Whatever ends this early, as an exception of a signal's handler, leaves no connection, on
        which the next request would get the answer to this one. A change is made before the next
        one, or never.
        """
        if self._pid != os.getpid():  # the connection is that of the process that forked
            self._end, self._pid = None, os.getpid()
        end, self._end = self._end, None
        if end is None:
            end = self._place.connect()
            if end is None:
                raise EOFError("nobody listens")
        try:
            end.send(request)
            answer = end.receive()
        except BaseException:
            end.finish(0.0 if request[0] == b"wait" else _FINISHING)
            raise
        self._end = end
        return answer

    def set(self, key: str, value: str | bytes) -> None:
        """Set a key's value."""
        if not isinstance(value, (str, bytes, bytearray, memoryview)):
            raise TypeError(f"set: the value must be a str or bytes, got {type(value).__name__}")
        self._ask("set", key, value if isinstance(value, str) else bytes(value))

    def get(self, key: str) -> bytes:
        """Return a key's value, waiting until it is there."""
        self.wait([key])
        return self._ask("get", key)[0]

    def add(self, key: str, amount: int) -> int:
        """Add to a key's number, which is 0 if there is none; return the sum."""
        return int(self._ask("add", key, str(int(amount)))[0])

    def append(self, key: str, value: str | bytes) -> None:
        """Append to a key's value."""
        self._ask("append", key, value)

    def compare_set(self, key: str, expected_value: str, desired_value: str) -> bytes:
        """Do the same as `Store.compare_set`."""
        return self._ask("compare_set", key, expected_value, desired_value)[0]

    def check(self, keys: Sequence[str]) -> bool:
        """Return whether all keys are there."""
        return self._ask("check", *keys)[0] == b"1"

    def wait(self, keys: Sequence[str], timeout: Any = None) -> None:
        """Wait until all keys are there; other threads of this process wait behind it."""
        seconds = self._timeout if timeout is None else seconds_of("wait", timeout)
        self._ask("wait", repr(seconds), *keys)

    def delete_key(self, key: str) -> bool:
        """Delete a key; return whether it was there."""
        return self._ask("delete_key", key)[0] == b"1"

    def num_keys(self) -> int:
        """Return the number of keys."""
        return int(self._ask("num_keys")[0])

    def __del__(self) -> None:
        end, server = getattr(self, "_end", None), getattr(self, "_server", None)
        if getattr(self, "_pid", 0) != os.getpid():
            return
        if end is not None:
            end.close()
        if server is not None:
            server.close()
