"""The rendezvous of a job's processes: rank 0 listens, the others connect, both sides prove that
they know the job's secret, and each gets the addresses of all.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import hashlib
import ipaddress
import json
import os
import resource
import select
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing import AuthenticationError
from typing import Any

from plait_abi import PlaitError
from plait_multiprocessing.authentication import (
    Channel,
    SecretProof,
    is_of_this_user,
    job_secret,
    reach,
)
from plait_multiprocessing.listener import Listener, Proof

MOST_RANKS = 4096
_MAX_ADDRESS_BYTES = 64 << 10  # of the address of a process
_MESSAGE_TIMEOUT = 10.0  # seconds to send or to receive a message
_CONNECT_TIMEOUT = 5.0  # seconds of one attempt to connect to rank 0
_BIND_TIMEOUT = 2.0  # seconds in which another meeting at the same address may end
_GRACE = 2.0  # seconds after the deadline in which rank 0 can report missing ranks
_PAUSE = 0.02  # seconds between attempts
# what reading raises if an authenticated process sends a malformed message
_MALFORMED = (ValueError, TypeError, KeyError, OverflowError, RecursionError)
_SPARE_DESCRIPTORS = 8  # of rank 0, for itself and for connections without a proof
_MAX_NAMED = 16  # ranks that an error names
_MAX_TIMEOUT = 1e6  # seconds; the milliseconds fit into an int


@dataclasses.dataclass(frozen=True)
class Place:
    """Where processes meet: ``tcp://HOST:PORT/NAME``, or ``local:NAME`` on one host.

    Attributes:
        text: the place, without the name.
        name: of the group that meets there.
        addresses: of the network; empty for a Unix socket of this host.
    """

    text: str
    name: str
    addresses: tuple[tuple[Any, Any], ...] = ()

    @classmethod
    def parse(cls, where: str) -> Place:
        """Return the place of a text.

        Raises:
            ValueError: the text is malformed, or its host is unknown.
        """
        wrong = f'open: `where` must be "tcp://HOST:PORT/NAME" or "local:NAME", got "{where}"'
        scheme, _, rest = where.partition(":")
        if scheme == "local" and rest:
            return cls(where, rest)
        base, _, name = rest.removeprefix("//").partition("/")
        host, _, port = base.rpartition(":")
        is_number = port.isascii() and port.isdigit() and 1 <= int(port) <= 65535
        if scheme != "tcp" or not rest.startswith("//") or not host or not is_number:
            raise ValueError(wrong)
        bare = host[1:-1] if host.startswith("[") else host
        try:
            result = socket.getaddrinfo(bare, int(port), type=socket.SOCK_STREAM)
        except OSError as error:
            raise ValueError(f"open: the host {bare} is not known: {error.strerror}") from None
        ips = [ipaddress.ip_address(str(each[4][0]).partition("%")[0]) for each in result]
        if any(ip.is_unspecified for ip in ips):
            raise ValueError(f'open: `where` must have an address of one interface, got "{where}"')
        is_local = all(ip.is_loopback for ip in ips)
        addresses = () if is_local else tuple((each[0], each[4]) for each in result)
        return cls(f"tcp://{base}", name, addresses)

    def candidates(self) -> tuple[tuple[Any, Any], ...]:
        """Return families and addresses of sockets."""
        if self.addresses:
            return self.addresses
        digest = hashlib.sha256(self.text.encode()).hexdigest()  # the length is limited
        return ((socket.AF_UNIX, f"\0plait-ucx/{os.getuid()}/{digest}"),)

    def own_ip(self) -> str:
        """Return the local IP address of packets to this place; '' if there is none."""
        family, address = self.addresses[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(address)  # nothing is sent
            except OSError:
                return ""
            return str(probe.getsockname()[0])


@dataclasses.dataclass(frozen=True)
class _Own:
    """The rank, address and limits of this process."""

    rank: int
    size: int
    address: bytes
    secret: str = dataclasses.field(repr=False)
    timeout: float
    deadline: float


def exchange(place: Place, rank: int, size: int, address: bytes, timeout: float) -> list[bytes]:
    """Meet the other processes; return the addresses of all, by rank.

    Raises:
        TimeoutError: not all came in time; the text names the missing ranks.
        PlaitError: a process ended meanwhile, or is not of this job or group.
    """
    try:
        secret = job_secret()
    except ValueError as error:
        raise PlaitError(f"open: {error}") from None
    if place.addresses and not secret and size > 1:
        raise PlaitError(
            f"open: the processes meet at {place.text}, which other hosts reach, so "
            "PLAIT_JOB_SECRET must be set to a secret text, the same in all of them, or "
            "PLAIT_JOB_SECRET_FILE to the path of a file that has it"
        )
    if size == 1:
        return [address]
    deadline = time.monotonic() + min(timeout, _MAX_TIMEOUT)
    own = _Own(rank, size, address, secret, timeout, deadline)
    return _Host(place, own).run() if rank == 0 else _join(place, own)


def _ranks_text(ranks: list[int]) -> str:
    text = ", ".join(f"rank {rank}" for rank in ranks[:_MAX_NAMED])
    return text + (f" and {len(ranks) - _MAX_NAMED} more" if len(ranks) > _MAX_NAMED else "")


def _failed(text: str, lost: Iterable[Sequence[int]] = ()) -> PlaitError:
    error = PlaitError(text)
    error.lost = tuple((rank, process, pid) for rank, process, pid in lost)
    error.failure = "lost" if error.lost else ""
    return error


def _lost(rank: int, place: Place) -> PlaitError:
    text = f"open: rank {rank} ended while the processes met at {place.text}"
    return _failed(text, [(rank, rank, 0)])


def _pack(header: Any, *parts: bytes) -> bytes:
    return b"\n".join([json.dumps(header).encode(), b"".join(parts)])


def _unpack(message: bytes) -> tuple[Any, bytes]:
    header, _, data = message.partition(b"\n")
    return json.loads(header), data


# ---- rank 0 --------------------------------------------------------------------------------------


class _Host:
    """Rank 0, which listens until all processes have connected."""

    def __init__(self, place: Place, own: _Own) -> None:
        self._place, self._own = place, own
        self._addresses = {0: own.address}
        self._channels: dict[Channel, int] = {}  # and its rank; -1 until its first message

    def run(self) -> list[bytes]:
        _check_descriptors(self._own.size)
        with contextlib.closing(self._listen()) as listening:
            listener = Listener([listening], self._prove)
            answer: dict[str, Any] = {
                "error": "rank 0 was interrupted while the processes met",
                "lost": [(0, 0, 0)],
            }
            data = b""
            try:
                self._gather(listener)
                results = [self._addresses[rank] for rank in range(self._own.size)]
                answer, data = {"sizes": [len(each) for each in results]}, b"".join(results)
                return results
            except TimeoutError as error:
                answer = {"late": str(error)}
                raise
            except PlaitError as error:
                answer = {"error": str(error), "lost": error.lost}
                raise
            finally:
                listener.close()
                for channel in self._channels:
                    _send_answer(channel, answer, data)
                    channel.close()

    def _listen(self) -> socket.socket:
        until = min(self._own.deadline, time.monotonic() + _BIND_TIMEOUT)
        while True:
            for family, address in self._place.candidates():
                end = socket.socket(family, socket.SOCK_STREAM)
                try:
                    if family != socket.AF_UNIX:
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    end.bind(address)
                    end.listen(1024)
                    return end
                except OSError as error:
                    end.close()
                    reason = error
            if reason.errno != errno.EADDRINUSE or time.monotonic() > until:
                raise PlaitError(
                    f"open: rank 0 cannot listen at {self._place.text}: {reason.strerror}"
                )
            time.sleep(_PAUSE)  # a meeting that has just ended may not have closed its socket yet

    def _prove(self, end: socket.socket) -> Proof | None:
        if end.family == socket.AF_UNIX and not is_of_this_user(end):
            return None
        return SecretProof(end, self._own.secret)

    def _gather(self, listener: Listener) -> None:
        while len(self._addresses) < self._own.size:
            left = self._own.deadline - time.monotonic()
            if left < 0:
                missing = [r for r in range(self._own.size) if r not in self._addresses]
                raise TimeoutError(
                    f"open: waited {self._own.timeout:g} s for {_ranks_text(missing)} at "
                    f"{self._place.text}"
                )
            for channel in listener.step(left, self._channels):
                channel.settimeout(_MESSAGE_TIMEOUT)
                self._channels[channel] = -1
            for channel in _readable(self._channels):
                self._receive(channel)

    def _receive(self, channel: Channel) -> None:
        """Receive the message of a process that has proved the secret."""
        rank = self._channels[channel]
        if rank >= 0:  # it has sent its message before
            raise _lost(rank, self._place)
        try:
            message, address = _unpack(channel.receive())
            wrong = self._refuse(message, address)
        except (OSError, EOFError, *_MALFORMED):  # closed, or a malformed message
            wrong = None
        else:
            if wrong is None:
                self._channels[channel] = int(message["rank"])
                self._addresses[int(message["rank"])] = address
                return
            _send_answer(channel, {"error": wrong})
        del self._channels[channel]
        channel.close()
        if wrong is not None and message["place"] == self._place.text + "/" + self._place.name:
            raise PlaitError(wrong)  # a process of another group does not end this one's meeting

    def _refuse(self, message: Any, address: bytes) -> str | None:
        """Return why a process is not a member of this group; None if it is."""
        rank, size, own = int(message["rank"]), message["size"], self._own
        if message["place"] != self._place.text + "/" + self._place.name:
            return f'open: another group than "{self._place.name}" meets at {self._place.text}'
        if size != own.size:
            return (
                f"open: rank {rank} says that the group has {size} members, rank 0 says {own.size}"
            )
        if not 0 <= rank < own.size or rank in self._addresses:
            return f"open: rank {rank} is there already"
        return (
            f"open: rank {rank} has an address that is too long"
            if len(address) > _MAX_ADDRESS_BYTES
            else None
        )


def _check_descriptors(size: int) -> None:
    """Raise unless rank 0 can hold a connection to each other process."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    needed = len(os.listdir("/proc/self/fd")) + size - 1 + _SPARE_DESCRIPTORS
    if limit != resource.RLIM_INFINITY and needed > limit:
        raise PlaitError(
            f"open: rank 0 needs {needed} file descriptors for a meeting of {size} processes, and "
            f"may have {limit}; raise the limit, as by `ulimit -n {needed}`"
        )


def _readable(channels: dict[Channel, int]) -> Iterator[Channel]:
    poll, by_descriptor = select.poll(), {each.fileno(): each for each in channels}
    for descriptor in by_descriptor:
        poll.register(descriptor, select.POLLIN)
    for descriptor, _ in poll.poll(0):
        yield by_descriptor[descriptor]


def _send_answer(channel: Channel, answer: Any, data: bytes = b"") -> None:
    with contextlib.suppress(OSError):
        channel.send(_pack(answer, data))


# ---- the others ----------------------------------------------------------------------------------


def _join(place: Place, own: _Own) -> list[bytes]:
    channel = _connect(place, own)
    with contextlib.closing(channel):
        message = {"place": place.text + "/" + place.name, "rank": own.rank, "size": own.size}
        channel.settimeout(_MESSAGE_TIMEOUT)
        with contextlib.suppress(OSError):  # a refused process gets the reason
            channel.send(_pack(message, own.address))
        # rank 0 knows the missing ranks, and names them after its timeout
        channel.settimeout(max(0.0, own.deadline - time.monotonic()) + _GRACE)
        try:
            answer, data = _unpack(channel.receive())
        except TimeoutError:
            raise _late(place, own, "it waits for other ranks") from None
        except (OSError, EOFError, ValueError):
            raise _lost(0, place) from None
    if "late" in answer:
        raise TimeoutError(answer["late"])
    if "error" in answer:
        raise _failed(answer["error"], answer.get("lost", ()))
    result, at = [], 0
    for size in answer["sizes"]:
        result.append(data[at : at + size])
        at += size
    return result


def _late(place: Place, own: _Own, explanation: str = "") -> TimeoutError:
    reason = f": {explanation}" if explanation else ""
    return TimeoutError(f"open: waited {own.timeout:g} s for rank 0 at {place.text}{reason}")


def _connect(place: Place, own: _Own) -> Channel:
    """Return the channel to rank 0; wait until it listens."""
    reason = ""

    def connect_once() -> socket.socket | None:
        nonlocal reason
        for family, address in place.candidates():
            end = socket.socket(family, socket.SOCK_STREAM)
            end.settimeout(_CONNECT_TIMEOUT)
            try:
                end.connect(address)
                if family != socket.AF_UNIX or is_of_this_user(end):
                    return end
                reason = "a process of another user listens there"
            except OSError as error:
                reason = error.strerror or str(error)
            end.close()
        return None

    while True:
        try:
            channel = reach(connect_once, own.secret, f"who listens at {place.text}", own.deadline)
        except AuthenticationError as error:
            if time.monotonic() > own.deadline:
                raise _late(place, own) from None
            raise PlaitError(f"open: {error}") from None
        if channel is not None:
            return channel
        if time.monotonic() > own.deadline:
            raise _late(place, own, reason)
        time.sleep(_PAUSE)
