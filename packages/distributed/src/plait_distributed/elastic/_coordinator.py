"""The coordinator of an elastic job: it waits for the ranks that are left and says who goes on."""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import threading
import time
from collections.abc import Iterable

from plait_distributed._peers import Peer, Watch, end_process
from plait_distributed.elastic._members import Decision, Member, receive, send

__all__ = ["Coordinator", "Terms"]

_PAUSE = 0.02  # seconds between looks at members that have not come
_GRACE = 10.0  # seconds for a rank that left its group, but runs, to come
_CREDENTIALS = struct.Struct("3i")  # of a process: its number, its user's, its group's


class Terms:
    """What the program asks for: numbers of ranks, and seconds."""

    def __init__(self, size: int, min_size: int, patience: float, timeout: float) -> None:
        self.size = size
        self.min_size = min_size
        self.patience = patience
        self.timeout = timeout


class _Guest:
    """A connection, and what its member said."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end
        self.received = bytearray()
        self.member: Member | None = None


class Coordinator(threading.Thread):
    """Serves the members that connect, until it has told them a decision.

    Args:
        listening: the socket that has the job's address.
        terms: see `Terms`.
        host: of this process.
        user: whose processes may come.
    """

    def __init__(self, listening: socket.socket, terms: Terms, host: str, user: int) -> None:
        super().__init__(daemon=True, name="plait coordinator")
        self._listening = listening
        self._terms = terms
        self._host = host
        self._user = user
        self._guests: dict[int, _Guest] = {}
        self._watch = Watch()
        self._began = time.monotonic()
        self._settled: float | None = None  # since when nobody is waited for but new ranks
        self._reported: dict[str, float] = {}  # when a process was first said to be lost

    def run(self) -> None:
        """Serve, and close all sockets at the end."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._listening, selectors.EVENT_READ)
            try:
                while not self._decide():
                    for key, _ in selector.select(_PAUSE):
                        if key.fileobj is self._listening:
                            self._accept(selector)
                        else:
                            self._read(selector, key.data)
            finally:
                self._listening.close()
                for guest in self._guests.values():
                    guest.end.close()

    def _accept(self, selector: selectors.BaseSelector) -> None:
        with contextlib.suppress(OSError):
            end, _ = self._listening.accept()
            data = end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            if _CREDENTIALS.unpack(data)[1] != self._user:
                end.close()
                return
            guest = _Guest(end)
            self._guests[end.fileno()] = guest
            selector.register(end, selectors.EVENT_READ, guest)

    def _read(self, selector: selectors.BaseSelector, guest: _Guest) -> None:
        try:
            data = guest.end.recv(1 << 16)
            if not data:
                raise EOFError
            guest.received += data
            message = receive(guest.received)
            if message is not None:
                guest.member = Member(**message)
        except (OSError, EOFError, ValueError, TypeError):
            self._guests.pop(guest.end.fileno())
            selector.unregister(guest.end)
            guest.end.close()

    # ---- the decision ----------------------------------------------------------------------------

    def _present(self) -> list[Member]:
        """Return who is here, one for each place."""
        by_place: dict[int, Member] = {}
        for guest in self._guests.values():
            if guest.member is not None:
                by_place.setdefault(guest.member.place, guest.member)
        return [by_place[place] for place in sorted(by_place)]

    def _decide(self) -> bool:
        """Tell the members who goes on, if it is time; return whether it is done."""
        present = self._present()
        now, terms = time.monotonic(), self._terms
        late = now - self._began > terms.timeout
        if not present:
            return late
        missing = [*self._missing(present, now), *self._stopped(present)]
        if missing and not late:
            self._settled = None
            return False
        if missing:
            who = ", ".join(missing)
            text = f"waited {terms.timeout:g} s for {who}, which run but do not come"
            return self._tell(present, text)
        if self._settled is None:
            self._settled = now
        ended = any(member.finished for member in present)
        first = all(member.generation < 0 for member in present)
        patience = terms.timeout if first else terms.patience
        if len(present) < terms.size and not ended and now - self._settled < patience:
            return False
        if len(present) >= min(terms.min_size, terms.size) or ended:
            return self._tell(present)
        if late:
            return self._tell(
                present,
                f"waited {terms.timeout:g} s for {terms.min_size} ranks, {len(present)} came",
            )
        return False

    def _missing(self, present: list[Member], now: float) -> Iterable[str]:
        """Return the members of the last group that may still come."""
        last = max(present, key=lambda member: member.generation)
        here = {member.process for member in present}
        lost = {process for member in present for process in member.lost}
        for place, text in last.group:
            if text in here:
                continue
            process = Peer.of(text)
            if process.host != self._host:
                if text not in lost:
                    yield f"rank {place} {process}"
                continue
            state = self._watch.look(process)
            if state == "lost" or (state == "stopped" and text in lost):
                end_process(process.pid, process.started)
                yield f"rank {place} {process}"  # until it has ended
            elif state != "ended":
                since = self._reported.setdefault(text, now) if text in lost else now
                if now - since < _GRACE or state == "stopped":
                    yield f"rank {place} {process}"

    def _stopped(self, present: list[Member]) -> Iterable[str]:
        """Return members that are here, but stopped."""
        for member in present:
            process = Peer.of(member.process)
            if process.host != self._host:
                continue
            state = self._watch.look(process)
            if state == "lost":
                end_process(process.pid, process.started)
            if state != "runs":
                yield f"rank {member.place} {process}"

    def _tell(self, present: list[Member], error: str = "") -> bool:
        generation = 1 + max(max(member.generation, member.tried) for member in present)
        decision = Decision(generation, present, error)
        self._listening.close()  # whoever comes now finds the next coordinator
        told = {id(member) for member in present}
        for guest in self._guests.values():
            if id(guest.member) in told:
                guest.end.setblocking(True)
                with contextlib.suppress(OSError):
                    send(guest.end, decision)
        return True
