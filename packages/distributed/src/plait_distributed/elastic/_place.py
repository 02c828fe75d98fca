"""The address at which the ranks of an elastic job meet: of one host, or of several."""

from __future__ import annotations

import contextlib
import os
import select
import socket
from collections.abc import Sequence
from multiprocessing import AuthenticationError
from typing import Any

from plait_distributed._meeting import is_here
from plait_multiprocessing import authentication
from plait_multiprocessing.authentication import Channel
from plait_multiprocessing.listener import Proof

CONNECTING = 2.0  # seconds that an attempt to reach a host takes at most
# a host that is cut off or gone is noticed after about five seconds
_ALIVE = (("TCP_KEEPIDLE", 1), ("TCP_KEEPINTVL", 1), ("TCP_KEEPCNT", 4), ("TCP_USER_TIMEOUT", 5000))


def readable(ends: Sequence[socket.socket], seconds: float) -> list[socket.socket]:
    """Return the sockets at which something has come, after so long at most."""
    poll = select.poll()  # `select.select` takes no descriptors from 1024 on
    by_descriptor = {end.fileno(): end for end in ends}
    for descriptor in by_descriptor:
        poll.register(descriptor, select.POLLIN)
    return [by_descriptor[descriptor] for descriptor, _ in poll.poll(int(1000 * seconds))]


class Place:
    """The address of a coordinator, and connections to it.

    It has a name in no folder, with the user's number in it, for processes of its own host. In a
    job on several hosts it listens at a port, too, for those of others.

    Args:
        job: a name that the processes of the job share.
        secret: of the job, which both ends of a connection prove that they know.
        address: host and port, of a job on several hosts.

    Attributes:
        is_here: whether it is on this host.
        job: as given.
    """

    def __init__(self, job: str, secret: str, address: tuple[str, int] | None = None) -> None:
        self.job, self._secret, self._address = job, secret, address
        self._name = f"\0plait-elastic/{os.getuid()}/{job}"
        self.is_here = address is None or is_here(address[0])

    def __str__(self) -> str:
        return "this host" if self._address is None else "{}:{}".format(*self._address)

    def on(self, host: str) -> Place:
        """Return the place that has this one's part if it is on another host of the job."""
        assert self._address is not None
        return Place(self.job, self._secret, (host, self._address[1]))

    def port(self) -> int:
        """Return the number of its port; 0 if the job has one host."""
        return 0 if self._address is None else self._address[1]

    def host(self) -> str:
        """Return the address of its host; '' if the job has one host."""
        if self._address is None:
            return ""
        with contextlib.suppress(OSError):
            return str(socket.getaddrinfo(*self._address, type=socket.SOCK_STREAM)[0][4][0])
        return self._address[0]

    def listen(self) -> list[socket.socket]:
        """Return listening sockets; none if another process has the name, or on another host."""
        if not self.is_here:
            return []
        places: list[tuple[int, Any]] = [(socket.AF_UNIX, self._name)]
        if self._address is not None:
            places.append((_family(self._address), self._address))
        results = []
        for family, at in places:
            end = socket.socket(family, socket.SOCK_STREAM)
            results.append(end)
            try:
                if family != socket.AF_UNIX:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                end.bind(at)
                end.listen(1024)
            except OSError:
                for each in results:
                    each.close()
                return []
        return results

    def ask_for_proof(self, end: socket.socket) -> Proof | None:
        """Return the messages that the peer must send; None if it belongs to another user."""
        if end.family != socket.AF_UNIX:
            _keep_alive(end)
        elif not authentication.is_of_this_user(end):
            return None
        return authentication.SecretProof(end, self._secret)

    def reach(self) -> socket.socket | None:
        """Return a connection to the coordinator, before any proof; None if there is none."""
        family: int = socket.AF_UNIX
        at: Any = self._name
        if not self.is_here and self._address is not None:
            family, at = _family(self._address), self._address
        end = socket.socket(family, socket.SOCK_STREAM)
        end.settimeout(CONNECTING)
        try:
            end.connect(at)
            if family != socket.AF_UNIX:
                _keep_alive(end)
        except OSError:
            end.close()
            return None
        return end

    def process_behind(self, end: socket.socket) -> int:
        """Return the number of the coordinator's process; 0 if it is on another host."""
        return authentication.process_and_user(end)[0] if end.family == socket.AF_UNIX else 0

    def prove(self, end: socket.socket) -> Channel | None:
        """Return the channel to the coordinator; None if it ends, or is no process of the job."""
        try:
            return authentication.connect(end, self._secret, "the coordinator of the job")
        except AuthenticationError:
            return None

    def own_address(self) -> tuple[str, int] | None:
        """Return where others reach this process, with a port that is free; None on one host."""
        if self._address is None:
            return None
        family = _family(self._address)
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(self._address)  # nothing is sent
            host = str(probe.getsockname()[0])
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((host, 0))
            return host, int(probe.getsockname()[1])


def _family(address: tuple[str, int]) -> int:
    return socket.AF_INET6 if ":" in address[0] else socket.AF_INET


def _keep_alive(end: socket.socket) -> None:
    end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _ALIVE:
        end.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
