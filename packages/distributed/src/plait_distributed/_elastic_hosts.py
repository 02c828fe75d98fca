"""The launchers of a job whose ranks go on when others are lost: a host may go and come back.

Each launcher starts its own ranks again. One that is cut off from the first host's lets its ranks
run, and comes back when it can. A launcher that is started anew on a host that was lost gets the
place of the old one; so does the first host's, to which the others come back.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from typing import Any

from plait_distributed._errors import DistNetworkError
from plait_distributed._fields import read_fields
from plait_distributed._hosts import Attempt, Coordinator, Guest, Hosts, Introduction, Link, Outcome

_PAUSE = 0.5  # seconds between attempts to come back
_WAITING = 10.0  # seconds in which it is noticed that the launcher before was lost


class ElasticCoordinator(Coordinator):
    """Serves the launchers until the ranks have ended on all hosts that are there."""

    _is_at_end = False  # a rank has come to the end of its program

    def _hear(self, guest: Guest, message: Any) -> None:
        with self._changed:
            if message["kind"] == "back":
                messages = {k: v for k, v in message.items() if k not in ("kind", "attempt")}
                text, attempt = read_fields(Introduction, messages), Attempt.of(message["attempt"])
                guest.name, guest.launcher = text.host, text.launcher
                guest.size = attempt.sizes[attempt.node]
                guest.attempt = dict(message["attempt"])
            elif message["kind"] == "at end":
                self._is_at_end = True
            super()._hear(guest, message)

    def _running(self) -> list[Guest] | None:
        """Return the hosts of a job that this launcher has left and comes back to."""
        backs = [guest for guest in self._guests if guest.attempt is not None and not guest.lost]
        if not backs:
            return None
        attempt = backs[0].attempt or {}
        self._begun = {key: value for key, value in attempt.items() if key != "node"}
        return [Guest(size=size, lost=True) for size in attempt["sizes"]]

    def _start(self, attempt: int, hosts: list[Guest]) -> None:
        if not self._begun:
            super()._start(attempt, hosts)

    def _watch(self, hosts: list[Guest]) -> tuple[int, str, bool]:
        """Wait until all that are there have ended; give hosts that come the places of lost ones.

        The job has ended well if it has on one host.
        """
        messages: list[Guest] = []
        while True:
            for guest in [each for each in self._guests if each not in hosts and not each.lost]:
                if guest.attempt is not None:
                    self._welcome_back(hosts, guest)
                elif guest.ready:
                    self._seat(hosts, guest)
            there = [guest for guest in hosts if not guest.lost]
            if self._is_at_end:
                self._tell([guest for guest in there if guest not in messages], kind="at end")
                messages = there
            if there and all(guest.outcome is not None for guest in there):
                break
            self._changed.wait(0.2)
        ends = [(guest, guest.outcome) for guest in hosts if guest.outcome is not None]
        if self._is_at_end or any(outcome.code == 0 for _, outcome in ends):
            return 0, "", False
        guest, outcome = min(ends, key=lambda end: end[1].followed)
        return outcome.code, f"on host {guest.name}, {outcome.report}", outcome.asked

    def _welcome_back(self, hosts: list[Guest], guest: Guest) -> None:
        """Accept a launcher again whose connection was lost, if its place is still free."""
        assert guest.attempt is not None
        node = int(guest.attempt["node"])
        if {**self._begun, "node": node} != guest.attempt:
            return self._refuse(guest, "another job runs at the first host's address")
        old = hosts[node]
        if old.lost or old.launcher == guest.launcher:
            old.lost = True
            hosts[node] = guest
        else:
            self._refuse(guest, f"the place of host {node} was given to {old.name} meanwhile")
        return None

    def _seat(self, hosts: list[Guest], guest: Guest) -> None:
        """Give a launcher that has been started the place of one that is lost, if there is one."""
        lost = [node for node, old in enumerate(hosts) if old.lost]
        required = [node for node in lost if guest.wanted in (-1, node)]
        if guest.wanted >= len(hosts):
            return self._refuse(guest, f"--node-rank {guest.wanted} of {len(hosts)} hosts")
        fits = [node for node in required if hosts[node].size == guest.size]
        if fits:
            hosts[fits[0]] = guest
            self._tell([guest], kind="start", attempt={**self._begun, "node": fits[0]})
        elif required:
            self._refuse(
                guest,
                f"{guest.size} processes do not fit the place of host {required[0]}, which had "
                f"{hosts[required[0]].size}",
            )
        elif time.monotonic() - guest.came > _WAITING:
            self._refuse(guest, "the job runs, and no host of it whose place is wanted is lost")
        return None

    def _refuse(self, guest: Guest, text: str) -> None:
        self._tell([guest], kind="end", code=1, text=text)
        guest.lost = True


class ElasticHosts(Hosts):
    """One launcher's side; `fileno()` is readable also when a rank elsewhere has come to its end.

    Args:
        *arguments: those of `Hosts`.
    """

    def __init__(self, *arguments: Any) -> None:
        self._attempt: Attempt | None = None
        self._outcome: Outcome | None = None
        self._is_at_end = self._is_stopped = False
        self._is_connected = True
        self._closes = threading.Event()
        super().__init__(*arguments)

    def _hear(self, message: Any) -> None:
        if message["kind"] == "lost" and self._attempt is not None:
            self._is_connected = False
            if self._outcome is not None:
                super()._hear(message)  # `finish` waits no longer
            elif not self._closes.is_set():
                threading.Thread(target=self._come_back, daemon=True).start()
            return
        if message["kind"] == "end" and self._outcome is None:
            self._is_stopped = True
        super()._hear(message)
        if message["kind"] in ("at end", "end"):
            self._ring_bell()

    def _come_back(self) -> None:
        assert self._attempt is not None
        while not self._closes.wait(_PAUSE):
            try:
                link = Link(self._connect(), self._hear)
            except (DistNetworkError, OSError):
                continue
            self._link = link
            link.send(kind="back", attempt=dataclasses.asdict(self._attempt), **self._self())
            if self._is_at_end:
                link.send(kind="at end")
            self._is_connected = True
            return

    def begin(self) -> Attempt:
        """Do the same as `Hosts.begin`."""
        self._attempt = super().begin()
        return self._attempt

    def must_end(self) -> bool:
        """Return whether the processes here must end: another launcher has this one's place."""
        self._silence_bell()
        return self._is_stopped

    def note_end(self) -> None:
        """Tell that a process here has come to the end of its program."""
        self._is_at_end = True
        self._link.send(kind="at end")

    def finish(self, outcome: Outcome) -> tuple[int | None, str]:
        """Tell how the ranks ended here; return the job's exit code when they have everywhere.

        A launcher that got a signal to end, or lost its connection to the first one, does not wait.
        """
        self._outcome = outcome
        if outcome.asked or not self._is_connected:
            return outcome.code, outcome.report
        code, text = super().finish(outcome)
        # without the first host's launcher: how it ended here
        return (code, text) if self._is_connected else (outcome.code, outcome.report)

    def close(self) -> None:
        """Leave the others."""
        self._closes.set()
        super().close()
