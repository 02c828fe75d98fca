"""The coordinator of an elastic job: it waits for remaining ranks and decides which continue."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Collection

from plait_distributed._notes import Notes
from plait_distributed._peers import Peer, Watch, end_process
from plait_distributed.elastic._host_watch import HostWatch
from plait_distributed.elastic._members import Decision, Member, receive, send
from plait_distributed.elastic._place import Place
from plait_multiprocessing.authentication import Channel
from plait_multiprocessing.listener import Listener

_PAUSE = 0.02  # seconds between looks at members that have not come
_DOOR = 0.1  # seconds between looks whether the members of the group meet again
_GRACE = 10.0  # seconds for a rank that left its group, but runs, to come


class Terms:
    """The settings of the program: numbers of ranks, and seconds."""

    def __init__(self, size: int, min_size: int, patience: float, timeout: float) -> None:
        self.size = size
        self.min_size = min_size
        self.patience = patience
        self.timeout = timeout


class Coordinator(threading.Thread):
    """Serves the members that connect, until it has sent them a decision.

    If there are fewer then than at first, it stays, as a door at which others wait for the next
    meeting. Whoever has not proved that it knows the job's secret waits for nothing there.

    Args:
        listening: the sockets that have the job's address.
        place: see `Place`.
        terms: see `Terms`.
        alone: seconds for others to come to a part that is too small. Its ranks are then sent to
            look at the other hosts, all at once, and the coordinator goes on for when they return.
            It is longer than they are away, so that two parts that begin at other times do meet.
    """

    def __init__(
        self, listening: list[socket.socket], place: Place, terms: Terms, alone: float
    ) -> None:
        super().__init__(daemon=True, name="plait coordinator")
        self._listening = listening
        self._is_asked_to_end = False
        self._is_over = False
        self._place = place
        self._terms = terms
        self._host = socket.gethostname()
        self._lock = threading.Lock()
        self._guests: list[tuple[Channel, Member]] = []
        self._callers: set[Channel] = set()  # connections that have not introduced themselves
        self._watch = Watch()
        self._has_decided = threading.Event()
        self._begin(alone)

    def _begin(self, alone: float) -> None:
        """Begin a meeting."""
        self._alone = alone
        self._stays_open = False
        self._network = HostWatch(self._place)
        self._began = time.monotonic()
        self._occupied: float | None = None  # when the first member arrived
        self._settled: float | None = None  # since when only new ranks are missing
        self._reported: dict[str, float] = {}  # when a process was first said to be lost
        self._has_decided.clear()

    def has_decided(self) -> bool:
        """Return whether the meeting is over."""
        return self._has_decided.is_set()

    def is_door(self) -> bool:
        """Wait for the end of the meeting; return whether others can wait here for the next one."""
        while self.is_alive() and not self._has_decided.wait(1.0):
            pass
        return self._stays_open

    def meet_again(self, alone: float) -> None:
        """Begin another meeting at the door; `alone` as for the first one."""
        self._begin(alone)

    def is_someone_waiting(self) -> bool:
        """Return whether a rank waits for the next meeting, or a coordinator on another host."""
        with self._lock:
            return bool(self._guests or self._callers)

    def close(self) -> None:
        """End without a decision, and close all connections."""
        self._is_asked_to_end = True
        self.join()

    def run(self) -> None:
        """Serve, and close all sockets at the end."""
        strangers = Listener(self._listening, self._place.ask_for_proof)
        try:
            while not self._is_asked_to_end:
                if not self._has_decided.is_set() and self._decide():
                    self._network.close()
                    self._has_decided.set()
                    if not self._stays_open:
                        break
                strangers.welcome(_DOOR if self._has_decided.is_set() else _PAUSE, self._serve)
        finally:
            strangers.close()
            self._network.close()
            self._stays_open = False
            self._stop_listening()
            self._has_decided.set()
        with self._lock:
            self._is_over = True
            for channel in [*self._callers, *(channel for channel, _ in self._guests)]:
                channel.close()

    def _stop_listening(self) -> None:
        for listening in self._listening:
            listening.close()

    def _serve(self, channel: Channel) -> None:
        """Read messages of one member, and notice the end of its connection."""
        guest = None
        try:
            with self._lock:
                if self._is_over:  # it comes to the next coordinator
                    raise EOFError
                self._callers.add(channel)
            guest = channel, Member.of(receive(channel))
            with self._lock:
                self._callers.discard(channel)
                if self._is_over:
                    raise EOFError
                self._guests.append(guest)
            channel.receive()  # nothing more comes
        except (OSError, EOFError, ValueError, RecursionError):
            pass
        with self._lock:
            self._callers.discard(channel)
            if guest in self._guests:
                self._guests.remove(guest)
        channel.close()

    # ---- the decision ----------------------------------------------------------------------------

    def _present(self) -> list[Member]:
        """Return the connected members, one for each place."""
        by_place: dict[int, Member] = {}
        with self._lock:
            for _, member in self._guests:
                by_place.setdefault(member.place, member)
        return [by_place[place] for place in sorted(by_place)]

    def _decide(self) -> bool:
        """Send the members the decision, if it is time; return whether it was sent."""
        present = self._present()
        now, terms = time.monotonic(), self._terms
        late = now - self._began > terms.timeout
        if not present:
            self._occupied = None
            return late
        if self._occupied is None:
            self._occupied = now
        ended = any(member.finished for member in present)
        outvoted = "" if ended else _outvoted(present, self._host)
        if outvoted and now - self._occupied > self._alone:
            self._occupied = None
            self._send(present, outvoted, is_elsewhere=True)
            return late
        missing = {**self._missing(present, now), **self._stopped(present)}
        if missing and not late:
            self._settled = None
            return False
        if missing:  # they are lost if the members that arrived are enough
            present = [member for member in present if member.place not in missing]
            if not ended and (not present or _outvoted(present, self._host, missing)):
                caller = ", ".join(f"rank {place} {process}" for place, process in missing.items())
                text = f"waited {terms.timeout:g} s for {caller}, which run but do not come"
                return self._tell(self._present(), text)
        if self._settled is None:
            self._settled = now
        # ranks that come for the first time do not begin without the others, who may be training
        first = all(member.is_new for member in present)
        fewest = terms.size if first else terms.min_size
        if first and Notes().has_ended():
            text = (
                "the training has ended: other ranks of the job came to the end of the program "
                "while this one was started again"
            )
            return self._tell(present, text)
        patient = not late and now - self._settled < terms.patience
        waits = len(present) < terms.size and patient
        if ended or (len(present) >= fewest and not waits):
            return not outvoted and self._tell(present)
        if late:
            text = f"waited {terms.timeout:g} s for {fewest} ranks, {len(present)} came"
            return self._tell(present, text)
        return False

    def _missing(self, present: list[Member], now: float) -> dict[int, Peer]:
        """Return the members of the last group that may still come, by place."""
        results = {}
        last = max(present, key=lambda member: member.generation)
        here = {member.process for member in present}
        again = {member.place for member in present if member.is_new}
        lost = {process for member in present for process in member.lost}
        for place, text, address in last.group:
            if text in here:
                continue
            process = Peer.of(text)
            if process.host != self._host:
                # of a host that has members here, they alone know; else it may be cut off, with
                # all its ranks, of which one alone was named
                beside = [m.lost for m in _of_host(present, process.host)]
                known = any(text in each for each in beside) if beside else text in lost
                known = known or (not beside and self._network.is_cut_off(address))
                if not known and place not in again:
                    results[place] = process
                continue
            state = self._watch.look(process)
            if state == "lost" or (state == "stopped" and text in lost):
                end_process(process.pid, process.started)
                results[place] = process  # until it has ended
            elif state != "ended":
                since = self._reported.setdefault(text, now) if text in lost else now
                if now - since < _GRACE or state == "stopped":
                    results[place] = process
        return results

    def _stopped(self, present: list[Member]) -> dict[int, Peer]:
        """Return members that are here, but stopped, by place."""
        results = {}
        for member in present:
            process = Peer.of(member.process)
            if process.host != self._host:
                continue
            state = self._watch.look(process)
            if state == "lost":
                end_process(process.pid, process.started)
            if state != "runs":
                results[member.place] = process
        return results

    def _tell(self, present: list[Member], error: str = "") -> bool:
        self._stays_open = len(present) < self._terms.size and not error
        if not self._stays_open:
            self._stop_listening()  # whoever comes now finds the next coordinator
        self._send(present, error)
        return True

    def _send(self, present: list[Member], error: str, *, is_elsewhere: bool = False) -> None:
        """Tell members a decision; they are no guests any more."""
        generation = 1 + max(member.generation for member in present)
        decision = Decision(generation, present, error, is_elsewhere)
        messages = {id(member) for member in present}
        with self._lock:
            guests = [guest for guest in self._guests if id(guest[1]) in messages]
            self._guests = [guest for guest in self._guests if guest not in guests]
        for channel, _ in guests:
            with contextlib.suppress(OSError):
                send(channel, decision)


def _of_host(present: list[Member], host: str) -> list[Member]:
    """Return the members of a host that know a group, and so of the host's other ranks."""
    return [m for m in present if m.generation >= 0 and Peer.of(m.process).host == host]


def _outvoted(present: list[Member], here: str, missing: Collection[int] = ()) -> str:
    """Say why these members may not go on: ranks of which they know nothing may.

    Of the last group the part with more than half of the ranks goes on, or with half of them and
    rank 0; so two parts never do. It is the last group that a member here received, even if it
    could not be opened here: others may have, and go on in it. A rank counts if it is in the part
    or has surely ended: it was started again, or somebody of its host is in the part, and would be
    waited for if he did not say so.

    Args:
        present: the members.
        here: the host of the coordinator, which checks the processes of this host.
        missing: places of ranks that run, but are no longer waited for.
    """
    group = max(present, key=lambda member: member.generation).group
    again = {member.place for member in present if member.is_new}
    lost = []
    for i, (place, text, _) in enumerate(group):
        host = Peer.of(text).host
        vouched = place in again or host == here or _of_host(present, host)
        if place in missing or not vouched:
            lost.append(i)
    if 2 * len(lost) < len(group) or (2 * len(lost) == len(group) and 0 not in lost):
        return ""
    names = ", ".join(f"rank {i} {Peer.of(group[i][1])}" for i in lost)
    return (
        f"lost {names}, and no rank of those hosts came: they are {len(lost)} of the last "
        f"group's {len(group)} ranks, so they may go on, and these ranks end; begin again from a "
        "checkpoint if they do not"
    )
