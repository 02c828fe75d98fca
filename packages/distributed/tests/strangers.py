"""Connections of strangers to a listening socket, and servers of each kind to connect to."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from plait_distributed import _hosts, _tcp_store
from plait_distributed._peers import describe_self
from plait_distributed.elastic._coordinator import Coordinator, Terms
from plait_distributed.elastic._members import Decision, Member, receive, send
from plait_distributed.elastic._place import Place

HOST = "127.0.0.1"
LONG = 120.0  # seconds, for machines that are busy; a test that passes waits for none of them
SECRET = "of the job"
KINDS = ("store", "local store", "launcher", "elastic", "door")


def free_port() -> int:
    """Return a port at which nobody listens.

    It is none of those that the system gives to connections: until a test uses it, a connection of
    another program could have got it.
    """
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        first = int(file.read().split()[0])
    draw = random.SystemRandom()
    while True:
        port = draw.randrange(1024, first)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((HOST, port))
            return port


def serve(kind: str, port: int, descriptors: int) -> Any:
    """Listen as rank 0, or the first launcher, does, with so few descriptors that are free."""
    used = len(os.listdir("/proc/self/fd"))
    if descriptors:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + descriptors, hard))
    if kind in ("store", "local store"):
        return _tcp_store._Server(_place(kind, port))
    if kind == "launcher":
        terms = _hosts.Terms(1, 1, 0, 300.0)
        coordinator = _hosts.Coordinator((HOST, port), SECRET, terms, "job")
        coordinator.start()
        return coordinator
    place = _elastic_place(port)
    size = 2 if kind == "door" else 1
    result = Coordinator(place.listen(), place, Terms(size, 1, 0.0, 300.0), 300.0)
    result.start()
    if kind == "door":
        ask(kind, port)  # the first meeting, of one rank of two
        assert result.is_door()
        threading.Thread(target=_meet_again_at, args=(result,), daemon=True).start()
    return result


def _meet_again_at(door: Coordinator) -> None:
    """Let in whoever waits at the door, as a rank does that commits; strangers do not wait."""
    while door.is_alive():
        if door.is_someone_waiting():
            return door.meet_again(300.0)
        time.sleep(0.02)


def ask(kind: str, port: int) -> None:
    """Connect as a process of the job does, and get an answer."""
    if kind in ("store", "local store"):
        deadline = time.monotonic() + LONG
        while (end := _place(kind, port).connect()) is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        end.send([b"add", b"key", b"1"])
        assert end.receive() == [b"", b"1"]
        end.close()
    elif kind == "launcher":
        hosts = _hosts.Hosts((HOST, port), SECRET, 0, 1, LONG)
        assert hosts.begin().sizes == (1,)
        hosts.close()
    else:
        place = _elastic_place(port)
        place.is_here = False  # at the port, as from another host
        me = Member(0, describe_self(), generation=-1, group=[], is_new=kind != "door")
        me.address = (HOST, 1)
        decision, deadline = None, time.monotonic() + LONG
        while decision is None and time.monotonic() < deadline:
            end = place.reach()
            channel = None if end is None else place.prove(end)
            if channel is not None:
                send(channel, me)
                decision = Decision.of(receive(channel))
                channel.close()
        assert decision is not None and len(decision.members) == 1


def _place(kind: str, port: int) -> Any:
    """Return the place of a store, which an address of the loopback makes local."""
    place = _tcp_store._Place("localhost", port)
    if kind == "store":
        place.secret, place.address = SECRET, (HOST, port)
    return place


def _elastic_place(port: int) -> Place:
    return Place(f"strangers {port}", SECRET, (HOST, port))


def address_of(kind: str, port: int) -> Any:
    """Return where a server of this kind listens."""
    return _tcp_store._address(port) if kind == "local store" else (HOST, port)


class Strangers:
    """Connections that prove nothing, a third of which are idle, slow, or send garbage."""

    def __init__(self, address: Any, count: int) -> None:
        self._family = socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX
        self._address = address
        self._ends: list[socket.socket] = []
        self._is_over = threading.Event()
        for number in range(count):
            self._connect(b"GET / HTTP/1.1\r\n" * 8 if number % 3 == 0 else b"")
        self._thread = threading.Thread(target=self._drip)
        self._thread.start()

    def __enter__(self) -> Strangers:
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._thread.join()
        for end in self._ends:
            end.close()

    def _connect(self, data: bytes) -> None:
        end = socket.socket(self._family, socket.SOCK_STREAM)
        end.settimeout(0.2)
        with contextlib.suppress(OSError):
            end.connect(self._address)
            end.sendall(data)
        self._ends.append(end)

    def _drip(self) -> None:
        """Send a byte now and then on some connections."""
        while not self._is_over.wait(0.5):
            for end in self._ends[1::3]:
                with contextlib.suppress(OSError):
                    end.send(b"x")


@contextlib.contextmanager
def server(kind: str, descriptors: int = 0) -> Iterator[int]:
    """Run a server; yield its port."""
    with process_of(kind, descriptors) as (port, _):
        yield port


@contextlib.contextmanager
def process_of(kind: str, descriptors: int = 0) -> Iterator[tuple[int, Any]]:
    """Run a server; yield its port, and its process, which forks a child when it gets a line."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, __file__, kind, str(port), str(descriptors)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "listens\n"
        yield port, process
    finally:
        process.kill()
        process.communicate()


if __name__ == "__main__":  # a server in a process of its own, until its input ends
    kept = serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    print("listens", flush=True)
    if sys.stdin.readline():
        if (child := os.fork()) == 0:
            time.sleep(1000)
        print(child, flush=True)
        sys.stdin.read()
    os._exit(0)
