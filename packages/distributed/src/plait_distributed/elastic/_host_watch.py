"""Find out which hosts answer. A host that does not is down or cannot be reached from here."""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
import time

from plait_distributed.elastic._place import Place
from plait_multiprocessing.authentication import Channel

_CONNECTING = 1.0  # seconds
_PAUSE = 0.2  # seconds between attempts
_SILENCE = 5.0  # seconds without an answer
_ANSWERS = (0, errno.ECONNREFUSED)


class HostWatch:
    """Tries again and again to connect to hosts, to each in threads of its own.

    It also connects to the socket of each host that announces new ranks: ranks that train there may
    not know of this meeting.

    Args:
        place: its port is open to the other hosts; a host that runs accepts or refuses a
            connection.
    """

    def __init__(self, place: Place) -> None:
        self._place, self._port = place, place.port()
        self._channels: dict[str, Channel] = {}  # to the sockets that announce new ranks
        self._answered: dict[str, float] = {}  # when a host last answered, or was first tried
        self._ends = threading.Event()

    def is_cut_off(self, address: str) -> bool:
        """Return whether a host has not answered for some seconds; '' is no host."""
        if not address:
            return False
        if address not in self._answered:
            self._answered[address] = time.monotonic()
            for work in (self._ask, self._wait_at_door):
                threading.Thread(target=work, args=(address,), daemon=True).start()
        return time.monotonic() - self._answered[address] > _SILENCE

    def _ask(self, address: str) -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        while not self._ends.wait(_PAUSE):
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.settimeout(_CONNECTING)
                if probe.connect_ex((address, self._port)) in _ANSWERS:
                    self._answered[address] = time.monotonic()

    def _wait_at_door(self, address: str) -> None:
        place = self._place.on(address)
        while not self._ends.wait(_PAUSE):
            end = place.reach()
            channel = None if end is None else place.prove(end)
            if channel is None:
                continue
            self._channels[address] = channel
            if not self._ends.is_set():
                with contextlib.suppress(OSError, EOFError):
                    channel.receive()  # until the other end closes, or `close`
            channel.close()

    def close(self) -> None:
        """End all connections and attempts."""
        self._ends.set()
        for channel in list(self._channels.values()):
            channel.close()
