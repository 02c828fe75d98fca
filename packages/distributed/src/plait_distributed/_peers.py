"""The processes of a group: on which host they are, and whether they live."""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
import time

_STOPPED_TIMEOUT = 4.0  # seconds
_LONGEST_LOOK = 1.0  # seconds between looks; if there were more, this process slept


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


class Watch:
    """Looks at processes of this host, and adds up for how long they are seen stopped."""

    def __init__(self) -> None:
        self._stops: dict[int, tuple[float, float]] = {}  # when it was seen, and for how long
        setting = os.environ.get("PLAIT_STOPPED_TIMEOUT", "")
        try:
            self._most = float(setting) if float(setting) > 0 else _STOPPED_TIMEOUT
        except ValueError:
            self._most = _STOPPED_TIMEOUT

    def look(self, process: Peer) -> str:
        """Return ``"runs"``, ``"ended"``, ``"stopped"``, or ``"lost"`` if that is for too long."""
        state, started = process_state(process.pid)
        if state in "ZX" or started != process.started:
            return "ended"
        return self.look_at_state(process.pid, state)

    def look_at_state(self, pid: int, state: str) -> str:
        """Do the same as `look`, with the letter of the process's state."""
        if state != "T":
            self._stops.pop(pid, None)
            return "runs"
        now = time.monotonic()
        seen, length = self._stops.get(pid, (now, 0.0))
        length += min(now - seen, _LONGEST_LOOK)
        self._stops[pid] = (now, length)
        return "lost" if length > self._most else "stopped"


def end_process(pid: int, started: str) -> None:
    """Kill the process that has this number and began at this time, and no other."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if process_state(pid)[1] == started:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError:
        pass
    finally:
        os.close(handle)
