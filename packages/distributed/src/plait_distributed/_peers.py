"""The processes of a group: on which host they are, and whether they live."""

from __future__ import annotations

import dataclasses
import os
import socket

__all__ = ["Peer", "describe_self", "process_state"]


def process_state(pid: int) -> tuple[str, str]:
    """Return the letter of a process's state, and when it began, as /proc has them; the letter is X
    if there is no such process.
    """
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return "X", ""
    return fields[0], fields[19]


def _started(pid: int) -> str:
    """Return when a process began; '' if it has ended."""
    state, started = process_state(pid)
    return "" if state in "ZX" else started


def describe_self() -> str:
    """Return the text from which `Peer.of` makes this process's entry."""
    return f"{os.getpid()} {_started(os.getpid()) or '-'} {socket.gethostname()}"


@dataclasses.dataclass(frozen=True)
class Peer:
    """One process of a group."""

    host: str
    pid: int
    started: str

    @classmethod
    def of(cls, text: str) -> Peer:
        """Return the entry that `describe_self` described."""
        pid, started, host = text.split(" ", 2)
        return cls(host, int(pid), started)

    def __str__(self) -> str:
        return f"(host {self.host}, pid {self.pid})"

    def is_gone(self) -> bool:
        """Whether it is a process of this host that has ended."""
        if self.host != socket.gethostname() or self.started == "-":
            return False
        return _started(self.pid) != self.started
