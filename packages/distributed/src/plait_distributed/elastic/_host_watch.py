"""Which hosts answer: one that does not is gone, or cut off from this one."""

from __future__ import annotations

import errno
import socket
import threading
import time

__all__ = ["HostWatch"]

_CONNECTING = 1.0  # seconds
_PAUSE = 0.2  # seconds between attempts
_SILENCE = 5.0  # seconds without an answer
_ANSWERS = (0, errno.ECONNREFUSED)


class HostWatch:
    """Asks hosts again and again, each in a thread of its own, from the first question on.

    Args:
        port: which no host hides; one that is there refuses, or takes, the connection.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._answered: dict[str, float] = {}  # when a host answered, or was first asked
        self._ends = threading.Event()

    def is_cut_off(self, address: str) -> bool:
        """Return whether a host has not answered for some seconds; '' is no host."""
        if not address:
            return False
        if address not in self._answered:
            self._answered[address] = time.monotonic()
            threading.Thread(target=self._ask, args=(address,), daemon=True).start()
        return time.monotonic() - self._answered[address] > _SILENCE

    def _ask(self, address: str) -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        while not self._ends.wait(_PAUSE):
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.settimeout(_CONNECTING)
                if probe.connect_ex((address, self._port)) in _ANSWERS:
                    self._answered[address] = time.monotonic()

    def close(self) -> None:
        """Ask no more."""
        self._ends.set()
