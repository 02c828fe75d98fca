"""Processes that are members of the groups of a communicator under test, and what they do there.

The tasks run in the members; what they return, or the error that they raise, is compared in the
tests.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import multiprocessing
import os
import pathlib
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from typing import Any, NamedTuple

import numpy as np

import plait_abi

POISON = 0x5B
LONG = 120.0  # seconds after which a member counts as hanging


class Provider(NamedTuple):
    """The tested provider, and the names of its groups."""

    name: str
    where: str  # with {} for a fresh text
    libraries: tuple[str, ...]
    modules: tuple[str, ...] = ()
    launcher: str | None = None  # a command that starts {} processes of the one behind it


class Failure(NamedTuple):
    """The error of a task."""

    kind: str
    text: str
    failure: str = ""  # why a collective failed, if the provider states it


def load_provider(libraries: Sequence[str], modules: Sequence[str] = ()) -> None:
    """Load our own provider, if it is installed, and plug-ins."""
    package = plait_abi.choose("multiprocessing")
    if importlib.util.find_spec(package):
        importlib.import_module(package)
    for name in modules:
        importlib.import_module(name)
    for path in libraries:
        plait_abi.load(path)


def serve(end: Connection, provider: Provider) -> None:
    """Do tasks until None arrives: the loop of a member's process."""
    load_provider(provider.libraries, provider.modules)
    while (order := end.recv()) is not None:
        task, where, rank, size, timeout, arguments = order
        answer: Any
        try:
            group = plait_abi.Communicator.open(provider.name, where, rank, size, timeout)
            try:
                answer = task(group, *arguments)
            finally:
                group.close()
        except Exception as error:
            answer = Failure(type(error).__name__, str(error))
        end.send(answer)


def connect(folder: str) -> None:
    """Be a member that a launcher started: a socket and its key are in the folder."""
    key = pathlib.Path(folder, "key").read_bytes()
    with Client(os.path.join(folder, "socket"), authkey=key) as end:
        end.send(os.getpid())
        serve(end, end.recv())


class Spawned:
    """A member that `multiprocessing` started."""

    def __init__(self, provider: Provider) -> None:
        context = multiprocessing.get_context("spawn")
        self.end, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, provider), daemon=True)
        self._process.start()
        theirs.close()

    def is_alive(self) -> bool:
        """Return whether it can do another task."""
        return self._process.is_alive()

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()

    def join(self) -> None:
        """Wait until it has ended; fail if it does not."""
        self._process.join(LONG)
        if self._process.is_alive():
            self.kill()
            self._process.join()
            raise AssertionError(f"a member did not end within {LONG:g} s")


class Launched:
    """A member that a launcher started together with others: all of them end with one."""

    def __init__(self, end: Connection, job: subprocess.Popen[bytes]) -> None:
        self.end = end
        self._job = job
        self._pid = end.recv()
        self._whole = True

    def is_alive(self) -> bool:
        """Return whether it can do another task."""
        return self._whole and self._job.poll() is None

    def kill(self) -> None:
        """End it at once."""
        os.kill(self._pid, signal.SIGKILL)

    def join(self) -> None:
        """Wait until it has ended."""
        self._whole = False

    def end_job(self) -> None:
        """Wait until all have ended; make them end if they do not."""
        try:
            self._job.wait(10)
        except subprocess.TimeoutExpired:
            self._job.terminate()
            self._job.wait()


def knock(path: str, job: subprocess.Popen[bytes]) -> None:
    """Connect to a socket without its key once the job has ended, as no member of it will."""
    job.wait()
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as end:
        end.connect(path)


def launch(provider: Provider, count: int) -> list[Launched]:
    """Start a job of members by the provider's launcher."""
    assert provider.launcher is not None
    key = secrets.token_bytes(16)
    with (
        tempfile.TemporaryDirectory() as folder,
        Listener(path := os.path.join(folder, "socket"), authkey=key, backlog=count) as listener,
    ):
        pathlib.Path(folder, "key").write_bytes(key)
        command = shlex.split(provider.launcher.format(count))
        task = "import sys; from plait_conformance import _members; _members.connect(sys.argv[1])"
        job = subprocess.Popen(
            [*command, sys.executable, "-c", task, folder], stdin=subprocess.DEVNULL
        )
        threading.Thread(target=knock, args=(path, job), daemon=True).start()
        try:
            members = [Launched(listener.accept(), job) for _ in range(count)]
        except (EOFError, OSError, AuthenticationError) as error:
            job.terminate()
            raise RuntimeError(
                f"`{provider.launcher}` ended with status {job.wait()} before {count} members "
                "had connected"
            ) from error
    for member in members:
        member.end.send(provider)
    return members


class Members:
    """Processes that are started when they are needed, and used again."""

    def __init__(self, provider: Provider, most: int) -> None:
        self.provider = provider
        self._most = most
        self._all: list[Any] = []
        self._count = 0

    def run(
        self, size: int, task: Callable[..., Any], *arguments: Any, timeout: float = 60.0
    ) -> list[Any]:
        """Run ``task(communicator, *arguments)`` in a group of new communicators.

        Returns what it returned by rank, a Failure where it raised, None where the process died.
        """
        self._start(size)
        self._count += 1
        where = self.provider.where.format(f"kit-{os.getpid()}-{self._count}")
        for rank, member in enumerate(self._all[:size]):
            member.end.send((task, where, rank, size, timeout, arguments))
        return [self._answer(rank) for rank in range(size)]

    def _start(self, size: int) -> None:
        if self.provider.launcher is None:
            self._all = [member for member in self._all if member.is_alive()]
            while len(self._all) < size:
                self._all.append(Spawned(self.provider))
        elif not self._all or not all(member.is_alive() for member in self._all):
            self.close()
            self._all = list(launch(self.provider, self._most))

    def _answer(self, rank: int) -> Any:
        member = self._all[rank]
        try:
            if member.end.poll(LONG):
                return member.end.recv()
        except (EOFError, ConnectionResetError):
            member.join()
            return None
        member.kill()
        member.join()
        return Failure("Hang", f"member {rank} did not answer within {LONG:g} s")

    def close(self) -> None:
        """End the processes."""
        for member in self._all:
            try:
                member.end.send(None)
            except OSError:
                continue  # it has ended
        for member in self._all:
            member.join()
        if self._all and self.provider.launcher is not None:
            self._all[0].end_job()
        self._all = []


def input_of(rank: int, count: int, dtype: str, turn: int = 0) -> Any:
    """The input of a member: the same numbers in the tests and in its process."""
    source = np.random.default_rng([rank, count, turn])
    if dtype == "bool":
        return source.random(count) > 0.4
    if dtype.startswith(("int", "uint")):
        return source.integers(1, 100, count).astype(dtype)
    values = source.standard_normal(count) * 3
    return (values + 1j * values[::-1] if dtype.startswith("complex") else values).astype(dtype)


def poisoned(count: int, dtype: str) -> Any:
    """Return an array of bytes that no result has."""
    array = np.empty(count, dtype)
    array.view(np.uint8)[...] = POISON
    return array


# ---- tasks


def run_collective(group: Any, kind: str, count: int, dtype: str, reduction: str) -> list[Any]:
    """Run one collective; the root is the last rank. Returns this member's outputs."""
    rank, size, root = group.rank, group.size, group.size - 1
    lists = kind in ("scatter", "reduce_scatter", "all_to_all")
    inputs = [input_of(rank, count, dtype, turn) for turn in range(size if lists else 1)]
    many = kind in ("all_gather", "gather", "all_to_all")
    outputs = [poisoned(count, dtype) for _ in range(size if many else 1)]
    if rank != root and kind in ("broadcast", "scatter"):
        inputs = []
    if rank != root and kind in ("reduce", "gather"):
        outputs = []
    before = [array.copy() for array in inputs]
    group.start(kind, inputs, outputs, reduction=reduction, peer=root)
    assert all(np.array_equal(a, b) for a, b in zip(before, inputs, strict=True)), "inputs changed"
    return outputs


def run_collectives(group: Any, kind: str, calls: Sequence[tuple[int, str, str]]) -> list[Any]:
    """Run one kind with several counts, dtypes and reductions."""
    return [run_collective(group, kind, *call) for call in calls]


def write_over_input(group: Any, kind: str) -> Any:
    """Run a collective whose output is its input."""
    x = input_of(group.rank, 1000, "float32")
    writes = kind != "reduce" or group.rank == 0
    group.start(kind, [x], [x] if writes else [], peer=0)
    return x


def reduce_with_delays(group: Any) -> list[bytes]:
    """Reduce the same numbers several times, with another member late each time."""
    results = []
    for turn in range(3):
        time.sleep(0.02 * ((group.rank + turn) % group.size))
        x = input_of(group.rank, 20_011, "float32")
        group.start("all_reduce", [x], [x])
        results.append(x.tobytes())
    return results


def wait_out_of_order(group: Any) -> list[Any]:
    """Begin several collectives; wait for them in another order; one goes on unwatched."""
    arrays = [input_of(group.rank, count, "float64") for count in (10, 300_007, 1, 5000)]
    works = [group.start("all_reduce", [x], [x], asynchronous=True) for x in arrays]
    unwatched = input_of(group.rank, 1000, "float64")
    group.start("all_reduce", [unwatched], [unwatched], asynchronous=True)
    last = input_of(group.rank, 3, "float64")
    group.start("all_reduce", [last], [last])  # behind the others
    for work in (works[2], works[0], works[3], works[1]):
        work.wait()
        assert work.query()
        work.wait()
    return [*arrays, unwatched, last]


def query_unfinished(group: Any) -> bool:
    """Ask for a work that cannot be done yet, and for it again when it is."""
    x = np.ones(3)
    if group.rank:
        assert group.start("recv", outputs=[poisoned(1, "uint8")], peer=0) is None
        group.start("all_reduce", [x], [x])
        return True
    work = group.start("all_reduce", [x], [x], asynchronous=True)
    early = work.query()
    for peer in range(1, group.size):
        group.start("send", [np.zeros(1, np.uint8)], peer=peer)
    work.wait()
    return not early and work.query() and bool((x == group.size).all())


def exchange_with_neighbours(group: Any, count: int) -> Any:
    """Send to the next member, and receive from the one before."""
    rank, size = group.rank, group.size
    x, y = input_of(rank, count, "float32"), poisoned(count, "float32")
    work = group.start("send", [x], peer=(rank + 1) % size, tag=7, asynchronous=True)
    group.start("recv", outputs=[y], peer=(rank - 1) % size, tag=7)
    work.wait()
    return y


def receive_by_tags(group: Any) -> list[int]:
    """Receive messages of several tags in another order than they were sent in."""
    if group.rank == 0:
        sent = [(tag, np.array([10 * tag + i])) for i in range(3) for tag in (1, 2, -3)]
        works = [group.start("send", [x], peer=1, tag=tag, asynchronous=True) for tag, x in sent]
        for work in reversed(works):
            work.wait()
        return []
    if group.rank > 1:
        return []
    received = []
    for tag in (2, -3, 1, 1, 2, -3, -3, 2, 1):
        x = np.zeros(1, np.int64)
        group.start("recv", outputs=[x], peer=0, tag=tag)
        received.append(int(x[0]))
    return received


def use_subgroups(group: Any) -> Any:
    """Split into odd and even members in reverse order; both work at once, and then all."""
    rank, size = group.rank, group.size
    part = group.split(rank % 2, -rank)
    assert (part.rank, part.size) == ((size - 1 - rank) // 2, (size + 1 - rank % 2) // 2)
    values = []
    for turn in range(4):
        x = np.array([float(rank + turn)])
        work = part.start("all_reduce", [x], [x], asynchronous=True)
        y = np.array([1.0])
        group.start("all_reduce", [y], [y])
        work.wait()
        values.append((float(x[0]), float(y[0])))
    part.close()
    assert (group.split(-1 if rank else 0) is None) == (rank > 0)
    return values


def error_of(call: Callable[[], Any]) -> Failure | None:
    """Return the error of a call."""
    try:
        call()
    except Exception as error:
        return Failure(type(error).__name__, str(error), getattr(error, "failure", ""))
    return None


def call_differently(group: Any, how: str) -> Failure | None:
    """Call different things in different members."""
    x = np.ones(4 if how == "counts" and group.rank else 3)
    if how == "kinds" and group.rank:
        return error_of(lambda: group.start("broadcast", [x], [x]))
    if how == "dtypes" and group.rank:
        x = np.ones(3, np.int64)
    if how == "roots":
        return error_of(lambda: group.start("broadcast", [x], [x], peer=min(group.rank, 1)))
    reduction = "max" if how == "reductions" and group.rank else "sum"
    tag = group.rank if how == "tags" else 0
    return error_of(lambda: group.start("all_reduce", [x], [x], reduction=reduction, tag=tag))


def wait_for_absent(group: Any, asynchronously: bool) -> Failure | None:
    """Rank 1 does not take part."""
    x = np.ones(3)
    if group.rank == 1:
        time.sleep(3)
        return None
    call = {"timeout": 0.4, "asynchronous": asynchronously}
    if not asynchronously:
        return error_of(lambda: group.start("all_reduce", [x], [x], **call))
    work = group.start("all_reduce", [x], [x], **call)
    return error_of(work.wait)


def wait_for_killed(group: Any, kind: str) -> Failure | None:
    """Rank 1 is killed; the others wait for it."""
    group.start("barrier")
    x = np.ones(3)
    if group.rank == 1:
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "recv":
        return error_of(lambda: group.start("recv", outputs=[x], peer=1))
    return error_of(lambda: group.start(kind, [x], [x]))


def abort_during_wait(group: Any) -> list[Failure | None]:
    """Rank 1 ends what the others wait for; later calls fail as well."""
    x, y = np.ones(3), np.ones(3)
    if group.rank == 1:
        time.sleep(0.2)
        group.abort("the loss is not finite")
        return [None, None, error_of(lambda: group.start("barrier"))]
    work = group.start("all_reduce", [x], [x], asynchronous=True)
    return [
        error_of(work.wait),
        error_of(lambda: group.start("all_reduce", [y], [y])),
        error_of(lambda: group.start("barrier")),
    ]


def call_wrongly(group: Any) -> list[Failure | None]:
    """Calls with wrong arguments, which must fail by themselves; then one that is right."""
    x, short = np.ones(3), np.ones(2)
    whole = [np.ones(3) for _ in range(group.size)]
    frozen = np.ones(3)
    frozen.flags.writeable = False
    errors = [
        error_of(lambda: group.start("all_reduce", [x], [])),
        error_of(lambda: group.start("all_reduce", [x], [short])),
        error_of(lambda: group.start("all_reduce", [x], [np.ones(3, np.int64)])),
        error_of(lambda: group.start("all_reduce", [x], [frozen])),
        error_of(lambda: group.start("all_gather", [x], whole[1:])),
        error_of(lambda: group.start("reduce_scatter", whole[1:], [x])),
    ]
    group.start("barrier")
    return errors


def open_incomplete_groups(
    group: Any, provider: str, where: str
) -> list[tuple[tuple[int, int], Failure | None]]:
    """Open groups with wrong numbers; then one that no other member opens."""
    name = where.format(f"kit-incomplete-{os.getpid()}")
    open_ = functools.partial(plait_abi.Communicator.open, provider)
    result = []
    for rank, size in ((2, 2), (-1, 2), (0, 0), (0, 2)):
        error = error_of(functools.partial(open_, name, rank, size, 0.3))
        result.append(((rank, size), error))
    return result
