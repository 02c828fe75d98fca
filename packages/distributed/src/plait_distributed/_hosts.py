"""The launchers of a job, one on each host: they meet, start together, and end together.

The launcher of the first host listens at the master's address; the others connect, and each proves
that it knows the job's secret. Then one message says how an attempt begins, each host tells how it
ended there, and one says what follows: the end, or another attempt.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import json
import secrets
import socket
import threading
import time
from collections.abc import Callable
from multiprocessing import AuthenticationError
from typing import Any

from plait_distributed._errors import DistNetworkError
from plait_distributed._fields import read_fields
from plait_multiprocessing import authentication
from plait_multiprocessing.listener import Listener

_BEAT = 1.0  # seconds between two signs of life
_SILENCE = 4.0  # seconds without one, after which a launcher counts as lost
_SECOND_LOOK = 1.0  # seconds for another host to show that it failed first
_LATE_HOSTS = 2.0  # seconds that more hosts than necessary may take to come
_ENDING = 20.0  # seconds that hosts may take to end their processes


@dataclasses.dataclass(frozen=True)
class Terms:
    """The settings that all launchers share: numbers of hosts, restarts, and seconds to wait."""

    fewest: int
    most: int
    restarts: int
    patience: float


@dataclasses.dataclass(frozen=True)
class Attempt:
    """The start of the processes of this host."""

    number: int
    node: int  # this host's number
    sizes: tuple[int, ...]  # the number of processes on each host
    port: int  # where ranks meet, at the master's address
    job: str

    @property
    def first(self) -> int:
        """The rank of this host's first process."""
        return sum(self.sizes[: self.node])

    @classmethod
    def of(cls, message: Any) -> Attempt:
        """Return what a message says.

        Raises:
            ValueError: it does not describe an attempt.
        """
        read = read_fields(cls, message)
        if not 0 <= read.node < len(read.sizes):
            raise ValueError(f"host {read.node} of {len(read.sizes)}")
        return dataclasses.replace(read, sizes=tuple(read.sizes))


@dataclasses.dataclass(frozen=True)
class Introduction:
    """The introduction of a launcher."""

    host: str
    launcher: str  # the name of its process
    node: int  # the host's number, if it has one; else -1
    size: int  # the number of its processes


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The end of an attempt on a host."""

    code: int
    report: str = ""  # of the process that failed
    followed: bool = False  # its error is that another was lost
    asked: bool = False  # by a signal


class Link:
    """A channel with another launcher; a thread reads it, and another shows that this one lives."""

    def __init__(self, channel: authentication.Channel, heard: Callable[[Any], None]) -> None:
        self._channel = channel
        self._heard = heard
        self._sending = threading.Lock()
        self._closed = threading.Event()
        channel.settimeout(_SILENCE)
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._beat, daemon=True).start()

    def send(self, **message: Any) -> None:
        """Send a message; one that is lost with the link is noticed where the link is read."""
        with self._sending, contextlib.suppress(OSError):
            self._channel.send(json.dumps(message).encode())

    def close(self) -> None:
        """Send and hear nothing more."""
        self._closed.set()
        self._channel.close()

    def _read(self) -> None:
        try:
            while True:
                message = json.loads(self._channel.receive())
                if message["kind"] != "beat":
                    self._heard(message)
        except (OSError, EOFError, ValueError, KeyError, TypeError, RecursionError):
            self.close()  # the other end may have sent what is no message
            self._heard({"kind": "lost"})

    def _beat(self) -> None:
        while not self._closed.wait(_BEAT):
            self.send(kind="beat")


@dataclasses.dataclass(eq=False)
class Guest:
    """A host, as the coordinator sees it."""

    link: Link | None = None
    name: str = ""
    launcher: str = ""  # the name of its launcher's process
    wanted: int = -1  # the requested number
    size: int = 0
    ready: bool = False  # for an attempt
    came: float = 0.0  # when it was
    outcome: Outcome | None = None
    lost: bool = False
    attempt: dict[str, Any] | None = None  # that runs there, of one that has come back


class Coordinator(threading.Thread):
    """Serves the launchers of all hosts; a thread of the first one's.

    Args:
        address: where it listens: of the interface that the launcher names.
        secret: of the job.
        terms: see `Terms`.
        job: the job's name.
    """

    def __init__(self, address: tuple[str, int], secret: str, terms: Terms, job: str) -> None:
        super().__init__(daemon=True, name="plait coordinator")
        self._address = address
        self._secret = secret
        self._terms = terms
        self._job = job
        self._begun: dict[str, Any] = {}  # the attempt, but for a host's number
        self._changed = threading.Condition()
        self._guests: list[Guest] = []
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._listening = socket.socket(family, socket.SOCK_STREAM)
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._listening.bind(address)
        except OSError as error:
            self._listening.close()
            raise DistNetworkError(
                f"the launcher cannot listen at {address[0]}:{address[1]}: {error.strerror}"
            ) from None
        self._listening.listen(1024)
        listener = Listener(
            [self._listening], lambda end: authentication.SecretProof(end, self._secret)
        )
        self._accepting = threading.Thread(
            target=listener.serve, args=(self._welcome,), daemon=True
        )
        self._accepting.start()

    def _welcome(self, channel: authentication.Channel) -> None:
        guest = Guest()
        with self._changed:
            self._guests.append(guest)
            guest.link = Link(channel, lambda message: self._hear(guest, message))

    def _hear(self, guest: Guest, message: Any) -> None:
        with self._changed:
            if message["kind"] == "lost":
                guest.lost = True
            elif message["kind"] == "ready":
                del message["kind"]
                text = read_fields(Introduction, message)
                guest.name, guest.wanted, guest.launcher = text.host, text.node, text.launcher
                guest.size, guest.outcome, guest.ready = text.size, None, True
                guest.came = time.monotonic()
            elif message["kind"] == "outcome":
                guest.outcome = read_fields(Outcome, message["outcome"])
            self._changed.notify_all()

    def run(self) -> None:
        """Serve attempts until one ends well, or no more are allowed."""
        attempt = 0
        with self._changed:
            while True:
                hosts = self._gather()
                if hosts is None:
                    return self._finish(1, f"the hosts did not come: {self._missing()}")
                self._start(attempt, hosts)
                code, text, request = self._watch(hosts)
                again = code != 0 and not request and attempt < self._terms.restarts
                if not again:
                    return self._finish(code, text)
                attempt += 1
                for guest in hosts:
                    guest.ready = False
                self._tell(hosts, kind="again", text=text, attempt=attempt)

    def _tell(self, hosts: list[Guest], **message: Any) -> None:
        for guest in hosts:
            if guest.link is not None and not guest.lost:
                guest.link.send(**message)

    def _finish(self, code: int, text: str) -> None:
        self._tell(self._guests, kind="end", code=code, text=text)
        self._stop_listening()
        # they leave when they have read it
        self._changed.wait_for(lambda: all(guest.lost for guest in self._guests), _SILENCE)

    def _stop_listening(self) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listening.close()
        self._accepting.join(1.0)  # the address is free when it waits no longer at the socket

    def _missing(self) -> str:
        came = [guest.name for guest in self._ready()]
        return f"{len(came)} of {self._terms.fewest} are there ({', '.join(came) or 'none'})"

    def _ready(self) -> list[Guest]:
        return [guest for guest in self._guests if guest.ready and not guest.lost]

    def _gather(self) -> list[Guest] | None:
        """Wait for the hosts of an attempt; return them in the order of their numbers."""
        began = time.monotonic()
        enough = 0.0
        while True:
            if (running := self._running()) is not None:
                return running
            ready = self._ready()
            now = time.monotonic()
            enough = 0.0 if len(ready) < self._terms.fewest else enough or now
            late = bool(enough) and now - enough > _LATE_HOSTS
            if len(ready) >= self._terms.most or late:
                numbered = sorted(ready, key=lambda g: (g.wanted < 0, g.wanted))
                return numbered[: self._terms.most]
            if now - began > self._terms.patience:
                return None
            self._changed.wait(0.2)

    def _running(self) -> list[Guest] | None:
        """Return the hosts of an attempt that runs already; None if there is none."""
        return None

    def _start(self, attempt: int, hosts: list[Guest]) -> None:
        sizes = [guest.size for guest in hosts]
        port = _free_port(self._address[0])
        self._begun = {"number": attempt, "sizes": sizes, "port": port, "job": self._job}
        for node, guest in enumerate(hosts):
            self._tell([guest], kind="start", attempt={**self._begun, "node": node})

    def _watch(self, hosts: list[Guest]) -> tuple[int, str, bool]:
        """Wait until an attempt has ended on all hosts; return its code and first cause."""
        cause: tuple[Guest, Outcome] | None = None
        deadline = float("inf")
        while True:
            for guest in hosts:
                if guest.lost and guest.outcome is None:
                    guest.outcome = Outcome(1, f"the launcher of host {guest.name} was lost")
                outcome = guest.outcome
                if outcome is None or outcome.code == 0:
                    continue
                if cause is None or (cause[1].followed and not outcome.followed):
                    if cause is None:
                        deadline = time.monotonic() + (_SECOND_LOOK if outcome.followed else 0.0)
                    cause = guest, outcome
            running = [guest for guest in hosts if guest.outcome is None]
            if not running:
                break
            if cause is not None and time.monotonic() >= deadline:
                self._tell(running, kind="stop")
                if not self._changed.wait_for(
                    lambda: all(g.outcome is not None or g.lost for g in hosts), _ENDING
                ):
                    break
                continue
            self._changed.wait(0.2)
        if cause is None:
            return 0, "", False
        guest, outcome = cause
        prefix = "" if "launcher of host" in outcome.report else f"on host {guest.name}, "
        return outcome.code, prefix + outcome.report, outcome.asked


class Hosts:
    """One launcher's side: what the coordinator orders.

    `fileno()` is readable when there is an order to stop.
    """

    def __init__(
        self, address: tuple[str, int], secret: str, node: int, size: int, patience: float
    ) -> None:
        self._node, self._size, self._patience = node, size, patience
        self._place = f"{address[0]}:{address[1]}"
        self._launcher = secrets.token_hex(8)  # a name
        self._orders: collections.deque[Any] = collections.deque()
        self._changed = threading.Condition()
        self._bell, self._ring = socket.socketpair()
        self._address, self._secret = address, secret
        self._link = Link(self._connect(), self._hear)

    def _connect(self) -> authentication.Channel:
        deadline = time.monotonic() + self._patience
        while True:
            try:
                channel = authentication.reach(
                    lambda: socket.create_connection(self._address, timeout=5.0),
                    self._secret,
                    f"who listens at {self._place}",
                )
                assert channel is not None
                return channel
            except AuthenticationError as error:
                raise DistNetworkError(str(error)) from None
            except OSError as error:
                if time.monotonic() > deadline:
                    raise DistNetworkError(
                        f"the launcher of the first host was not reached at {self._place} in "
                        f"{self._patience:g} s: {error}"
                    ) from None
                time.sleep(0.1)

    def _hear(self, message: Any) -> None:
        with self._changed:
            self._orders.append(message)
            self._changed.notify_all()
        if message["kind"] in ("stop", "lost"):
            self._ring_bell()

    def _ring_bell(self) -> None:
        with contextlib.suppress(OSError):
            self._ring.send(b"!")

    def _silence_bell(self) -> None:
        self._bell.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while self._bell.recv(64):
                pass

    def fileno(self) -> int:
        """Return a descriptor that is readable when the processes here must end."""
        return self._bell.fileno()

    def must_end(self) -> bool:
        """Return whether the processes here must end, when the descriptor is readable."""
        return True

    def note_end(self) -> None:
        """Tell that a process here has come to the end of its program."""

    def _next(self, *kinds: str) -> Any:
        """Return the next message of these kinds, or that the coordinator was lost."""
        with self._changed:
            while True:
                while self._orders:
                    message = self._orders.popleft()
                    if message["kind"] in (*kinds, "lost"):
                        return message
                self._changed.wait(1.0)

    def _self(self) -> dict[str, Any]:
        """The description of this launcher for the coordinator."""
        name = socket.gethostname()
        return dataclasses.asdict(Introduction(name, self._launcher, self._node, self._size))

    def begin(self) -> Attempt:
        """Wait until all hosts are there.

        Raises:
            DistNetworkError: they do not come, or the first host is lost.
        """
        self._link.send(kind="ready", **self._self())
        message = self._next("start", "end")
        if message["kind"] == "lost":
            raise DistNetworkError(f"the launcher of the first host, at {self._place}, was lost")
        if message["kind"] == "end":
            raise DistNetworkError(message["text"])
        self._silence_bell()  # an order of an earlier attempt
        return Attempt.of(message["attempt"])

    def finish(self, outcome: Outcome) -> tuple[int | None, str]:
        """Tell how the attempt ended here; return the job's exit code, None if there is another
        attempt, and the first cause.
        """
        self._link.send(kind="outcome", outcome=dataclasses.asdict(outcome))
        message = self._next("end", "again")
        if message["kind"] == "lost":
            return outcome.code or 1, f"the launcher of the first host, at {self._place}, was lost"
        return (int(message["code"]) if message["kind"] == "end" else None), message["text"]

    def close(self) -> None:
        """Leave the others."""
        self._link.close()
        self._bell.close()
        self._ring.close()


def _free_port(address: str) -> int:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind((address, 0))
        port: int = probe.getsockname()[1]
    return port
