"""The address at which the ranks of an elastic job meet: of one host, or of several."""

from __future__ import annotations

import os
import socket
import struct

from plait_distributed import _authentication
from plait_distributed._authentication import Channel
from plait_distributed._errors import DistNetworkError
from plait_distributed._meeting import is_here

__all__ = ["Place"]

_CONNECTING = 2.0  # seconds
_CREDENTIALS = struct.Struct("3i")  # of a process: its number, its user's, its group's
# a host that is cut off or gone is noticed after about five seconds
_ALIVE = (("TCP_KEEPIDLE", 1), ("TCP_KEEPINTVL", 1), ("TCP_KEEPCNT", 4), ("TCP_USER_TIMEOUT", 5000))


class Place:
    """Where a coordinator listens, and how the others reach it.

    Args:
        job: a name that the processes of the job share.
        secret: of the job, which both ends of a connection prove that they know.
        address: host and port, of a job on several hosts; None: a name in no folder, with the
            user's number in it, and processes of other users are turned away.
    """

    def __init__(self, job: str, secret: str, address: tuple[str, int] | None = None) -> None:
        self._secret = secret
        self._host = address
        self._at = f"\0plait-elastic/{os.getuid()}/{job}" if address is None else address

    def _socket(self) -> socket.socket:
        if self._host is None:
            return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        family = socket.AF_INET6 if ":" in self._host[0] else socket.AF_INET
        end = socket.socket(family, socket.SOCK_STREAM)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return end

    def listen(self) -> socket.socket | None:
        """Return a listening socket; None if another process has the address, or another host."""
        if self._host is not None and not is_here(self._host[0]):
            return None
        end = self._socket()
        try:
            end.bind(self._at)
            end.listen(1024)
        except OSError:
            end.close()
            return None
        return end

    def accept(self, end: socket.socket) -> Channel | None:
        """Return the channel to who has connected; None if it is no process of the job."""
        if self._host is None:
            data = end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            if _CREDENTIALS.unpack(data)[1] != os.getuid():
                end.close()
                return None
        else:
            _keep_alive(end)
        return _authentication.accept(end, self._secret)

    def is_used(self) -> bool:
        """Return whether a coordinator listens."""
        with self._socket() as end:
            end.settimeout(_CONNECTING)
            return end.connect_ex(self._at) == 0

    def connect(self) -> tuple[socket.socket, Channel] | None:
        """Return a connection to the coordinator; None if there is none."""
        end = self._socket()
        end.settimeout(_CONNECTING)
        try:
            end.connect(self._at)
            if self._host is not None:
                _keep_alive(end)
            return end, _authentication.connect(end, self._secret, "the coordinator of the job")
        except (OSError, DistNetworkError):  # one that ends just now has no proof
            end.close()
            return None

    def own_address(self) -> tuple[str, int] | None:
        """Return where others reach this process, with a port that is free; None on one host."""
        if self._host is None:
            return None
        family = socket.AF_INET6 if ":" in self._host[0] else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(self._host)  # nothing is sent
            host = str(probe.getsockname()[0])
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((host, 0))
            return host, int(probe.getsockname()[1])


def _keep_alive(end: socket.socket) -> None:
    end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _ALIVE:
        end.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
