"""The agent of a process, which sends and serves remote calls."""

from __future__ import annotations

import dataclasses
import functools
import os
import socket
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any

from plait_ray import _contexts
from plait_ray._errors import RemoteError, WorkerLost, reason
from plait_ray._futures import CallFuture
from plait_ray._instance import library
from plait_ray._mailbox import Mailbox
from plait_ray._messages import Decoder, encode

_NAMESPACE = "plait_rpc"
_POLL = 1.0  # seconds that a process waits in its mailbox at a time
_AT_ONCE = 1000  # calls that a mailbox holds

_current: list[Agent] = []


def agent(caller: str) -> Agent:
    """Return this process's agent."""
    if not _current:
        raise RuntimeError(f"{caller}: there is no RPC agent; call init_rpc first")
    return _current[0]


def install(new: Agent | None) -> None:
    """Set this process's agent; None removes it."""
    _current[:] = [] if new is None else [new]


@dataclasses.dataclass
class Peer:
    """One process of the job, as the others know it."""

    name: str
    id: int
    host: str = ""
    pid: int = 0
    program: str = ""
    mailbox: Any = dataclasses.field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.name!r} (rank {self.id}, host {self.host}, pid {self.pid})"


def _program() -> str:
    """Return the file of the main program; '' if Ray's own program runs here."""
    main = sys.modules.get("__main__")
    path = os.path.realpath(getattr(main, "__file__", "") or "")
    spec = getattr(main, "__spec__", None)
    name = spec.name if spec else ""
    inner = os.path.join(os.path.dirname(library().__file__), "")
    return "" if path.startswith(inner) else f"{path} {name}"


class Agent:
    """The mailboxes of all processes of the job, and the threads that serve this one's."""

    def __init__(self, job: str, name: str, rank: int, size: int, timeout: float) -> None:
        self.rank, self.size, self.timeout = rank, size, timeout
        self.me = Peer(name, rank, socket.gethostname(), os.getpid(), _program())
        self.peers: list[Peer] = []
        self.describe: Callable[[Any], Any] = lambda _: None
        self.replace: Callable[[Any], Any] = lambda name: name
        # what this agent's thread will send: calls, and references that were deleted
        self.later: deque[tuple[int, Callable[..., Any], tuple[Any, ...]]] = deque()
        self.released: deque[tuple[int, Any, Any]] = deque()
        self.between: Callable[[], Any] = lambda: None
        self._job = job
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._make_mailbox()

    def _make_mailbox(self) -> None:
        ray = library()
        description = "\t".join(map(str, (self.me.name, self.rank, self.size, *self._place())))
        result = ray.remote(num_cpus=0, max_concurrency=_AT_ONCE)(Mailbox)
        try:
            self.me.mailbox = result.options(
                name=f"{self._job}/{self.rank}", namespace=_NAMESPACE
            ).remote(description)
        except ValueError:
            raise RuntimeError(
                f"init_rpc: another process of this job has the rank {self.rank}"
            ) from None
        ray.get(self.me.mailbox.describe.remote())

    def _place(self) -> tuple[Any, ...]:
        return self.me.host, self.me.pid, self.me.program

    def meet(self) -> None:
        """Wait until all processes of the job are there, and begin to serve."""
        ray, deadline = library(), time.monotonic() + self.timeout
        for rank in range(self.size):
            while True:
                try:
                    box = ray.get_actor(f"{self._job}/{rank}", namespace=_NAMESPACE)
                    description = ray.get(box.describe.remote(), timeout=self.timeout)
                    break
                except (ValueError, ray.exceptions.RayActorError):
                    if time.monotonic() > deadline:
                        raise RuntimeError(
                            f"init_rpc: rank {rank} did not come within {self.timeout:g} s"
                        ) from None
                    time.sleep(0.05)
            name, _, size, host, pid, program = description.split("\t")
            if int(size) != self.size:
                raise ValueError(
                    f"init_rpc: `world_size` is {self.size} here, and {size} in rank {rank}"
                )
            if any(peer.name == name for peer in self.peers):
                raise ValueError(f"init_rpc: the name {name!r} is given to several processes")
            self.peers.append(Peer(name, rank, host, int(pid), program, box))
        self._thread.start()
        self.arrive("start")

    def peer(self, caller: str, to: Any) -> Peer:
        """Return the process that a name, a rank or a `WorkerInfo` means."""
        key = getattr(to, "id", to)
        for peer in self.peers:
            if (isinstance(key, int) and key == peer.id) or key == peer.name:
                return peer
        names = ", ".join(peer.name for peer in self.peers)
        raise ValueError(
            f"{caller}: `to` must be a worker's name or rank, got {to!r}; known: {names}"
        )

    # calls

    def call(
        self, to: Peer, function: Any, args: Any, kwargs: Any, timeout: float | None = None
    ) -> CallFuture:
        """Call a function in a process; timeout: seconds, 0 for none, None for the job's."""
        seconds = self.timeout if timeout is None else timeout
        deadline = time.monotonic() + seconds if seconds > 0 else None
        ray, message = library(), self._packed(to, (function, args, kwargs))
        reference = to.mailbox.call.remote(message)
        name = getattr(function, "__qualname__", None) or repr(function)

        def fetch() -> Any:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                return self._result(to, ray.get(reference, timeout=left))
            except ray.exceptions.GetTimeoutError:
                raise RuntimeError(
                    f"rpc: the call of {name} in {to} ran for more than {seconds:g} s; it goes on "
                    "there"
                ) from None
            except (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError) as error:
                raise WorkerLost(
                    f"rpc: {to} died or left before it answered the call of {name}: {reason(error)}"
                ) from None

        return CallFuture(fetch, lambda: bool(ray.wait([reference], timeout=0)[0]))

    def tell(self, to: Peer, function: Any, *args: Any) -> None:
        """Call a function in a process, in the order of such calls, without an answer."""
        to.mailbox.tell.remote(self._packed(to, (function, args, {})))

    def _packed(self, to: Peer, thing: Any) -> tuple[Any, ...]:
        """Return a message: sender, context, and its parts or the Ray object that holds them."""
        same = self.me.program != "" and self.me.program == to.program
        encoded = encode(thing, self.describe, same)
        context = _contexts.current()
        note = None if context is None else context.sent(to.id, encoded.tensors)
        inside = encoded.is_small()
        parts = encoded.parts if inside else library().put(encoded.parts)
        return self.rank, note, inside, parts

    def _unpacked(self, message: tuple[Any, ...]) -> Any:
        sender, note, inside, parts = message
        decoder = Decoder(parts if inside else library().get(parts))
        if note is None:
            tensors = decoder.tensors()
            for i in decoder.required():
                tensors[i].requires_grad_()
        else:
            tensors = _contexts.joined(note[0]).received(sender, note, decoder)
        return decoder.read(tensors, self.replace)

    def _result(self, to: Peer, message: tuple[Any, ...]) -> Any:
        succeeded, value = self._unpacked(message)
        if succeeded:
            return value
        kind, text = value
        text = f"On {to}:\n{text}"
        try:
            error = kind(text)
        except Exception:
            error = None
        raise error if isinstance(error, BaseException) else RemoteError(text)

    # service

    def _serve(self) -> None:
        ray = library()
        while not self._stopped.is_set():
            self.flush()
            try:
                result = ray.get(self.me.mailbox.take.remote(_POLL))
            except (ray.exceptions.RayError, RuntimeError, AttributeError):
                return  # Ray or the mailbox has ended
            for number, message in result:
                if number:
                    threading.Thread(
                        target=self._answer, args=(number, message), daemon=True
                    ).start()
                else:
                    self._run(message)

    def flush(self) -> None:
        """Send the calls that could not be sent at once, such as those of finalizers."""
        while self.later:
            rank, function, args = self.later.popleft()
            self.tell(self.peers[rank], function, *args)
        self.between()

    def _run(self, message: Any) -> None:
        try:
            function, args, kwargs = self._unpacked(message)
            function(*args, **kwargs)
        except Exception:
            traceback.print_exc()

    def _answer(self, number: int, message: Any) -> None:
        context = None if message[1] is None else _contexts.joined(message[1][0])
        sender = self.peers[message[0]]
        with _contexts.inside(context):
            try:
                function, args, kwargs = self._unpacked(message)
                value = function(*args, **kwargs)
                if getattr(function, "_plait_async", False):
                    value.add_done_callback(
                        functools.partial(self._finish, number, sender, context)
                    )
                    return
                answer = self._packed(sender, (True, value))
            except BaseException as error:
                answer = self._failed(sender, error)
            self.me.mailbox.answer.remote(number, answer)

    def _finish(self, number: int, sender: Peer, context: Any, future: Any) -> None:
        """Answer with the result of the future that an asynchronous function returned."""
        with _contexts.inside(context):
            try:
                answer = self._packed(sender, (True, future.wait()))
            except BaseException as error:
                answer = self._failed(sender, error)
            self.me.mailbox.answer.remote(number, answer)

    def _failed(self, sender: Peer, error: BaseException) -> tuple[Any, ...]:
        text = f"{error!r}\n{''.join(traceback.format_exception(error))}"
        kind = type(error) if isinstance(error, Exception) else RemoteError
        try:
            return self._packed(sender, (False, (kind, text)))
        except Exception:  # a type that cannot be pickled
            return self._packed(sender, (False, (RemoteError, text)))

    # the end

    def arrive(self, name: str, seconds: float = 0) -> None:
        """Wait until all processes have called this with the name.

        Raise if some have died, or did not call within `seconds`; 0 waits without a limit. The
        error names all that are gone: one that leaves because another died may be seen first.
        """
        ray, first = library(), self.peers[0].mailbox
        deadline = time.monotonic() + seconds if seconds else float("inf")
        here = first.arrive.remote(name, self.rank, self.size)
        while not ray.wait([here], timeout=_POLL)[0]:
            if time.monotonic() > deadline:
                raise RuntimeError(f"rpc: other workers did not call shutdown within {seconds:g} s")
            self._check_peers()
        try:
            ray.get(here)
        except ray.exceptions.RayError as error:
            raise WorkerLost(f"rpc: {self.peers[0]} died or left: {reason(error)}") from None

    def _check_peers(self) -> None:
        """Raise if processes have died or left; the error names all of them."""
        ray, lost, text = library(), list[str](), ""
        for peer in self.peers:
            try:
                ray.get(peer.mailbox.describe.remote(), timeout=self.timeout)
            except ray.exceptions.RayError as error:
                lost.append(str(peer))
                text = text or reason(error)
        if lost:
            raise WorkerLost(f"rpc: {', '.join(lost)} died or left: {text}")

    def stop(self) -> None:
        """Leave: calls to this process fail from now on."""
        self._stopped.set()
        library().kill(self.me.mailbox)
        if self._thread.is_alive():
            self._thread.join(timeout=2 * _POLL)

    def wait_until_alone(self) -> None:
        """Wait until the other processes have left."""
        ray = library()
        for peer in self.peers:
            deadline = time.monotonic() + self.timeout
            while peer.id != self.rank and time.monotonic() < deadline:
                try:
                    ray.get(peer.mailbox.describe.remote(), timeout=_POLL)
                    time.sleep(0.02)
                except ray.exceptions.GetTimeoutError:
                    continue
                except ray.exceptions.RayError:
                    break
