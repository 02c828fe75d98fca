"""Connections that prove nothing keep no process out of a manager."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import socket
import threading
import time
from multiprocessing import AuthenticationError
from pathlib import Path
from typing import Any

import pytest

from plait_multiprocessing import _manager_server
from plait_multiprocessing._manager_server import Server
from plait_multiprocessing.managers import BaseManager, SyncManager

KEY = b"the key"


class Counters(BaseManager):
    pass


Counters.register("numbers", list)


def limit_descriptors(count: int) -> None:
    if count:
        used = len(os.listdir("/proc/self/fd"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + count, used + count))


def connect(address: Any) -> socket.socket:
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    end = socket.socket(family)
    end.settimeout(0.2)
    with contextlib.suppress(OSError):
        end.connect(address)
    return end


def ask(address: Any) -> int:
    """Return what a manager says; a server that has too many connections may close one."""
    deadline = time.monotonic() + 120
    while True:
        manager = Counters(address, KEY)
        try:
            manager.connect()
            return int(manager.numbers([3, 1]).index(1))
        except (OSError, EOFError):
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.mark.parametrize("descriptors", [0, 30], ids=["many descriptors", "few descriptors"])
@pytest.mark.parametrize("where", ["network", "folder"])
def test_unknown_connections_do_not_block_members(
    where: str, descriptors: int, tmp_path: Path
) -> None:
    address: Any = ("127.0.0.1", 0) if where == "network" else str(tmp_path / "socket")
    manager = Counters(address, KEY)
    manager.start(limit_descriptors, (descriptors,))
    with manager, contextlib.ExitStack() as strangers:
        for number in range(400):
            end = strangers.enter_context(connect(manager.address))
            if number % 3 == 0:
                with contextlib.suppress(OSError):
                    end.sendall(b"GET / HTTP/1.1\r\n")
        assert ask(manager.address) == 1
        while True:  # a server that has too many connections may close this one, too
            try:
                Counters(manager.address, b"another").connect()
            except AuthenticationError:
                break
            except (OSError, EOFError):
                continue
            pytest.fail("another key was accepted")


def test_a_slow_stranger_has_to_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_manager_server, "_TIME", 0.2)
    monkeypatch.setattr(_manager_server, "_LOOK", 0.05)
    server = Counters(("127.0.0.1", 0), KEY).get_server()
    assert type(server) is Server
    server.stop_event = threading.Event()  # as serve_forever does
    threading.Thread(target=server.accepter, daemon=True).start()
    with connect(server.address) as end:
        end.settimeout(120)
        while end.recv(100):  # the challenge, and then the end
            pass
    assert ask(server.address) == 1
    server.listener.close()


class Stop(Exception):
    pass


# what a handler raises in a destructor is lost
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_request_behind_an_interrupted_one_gets_its_own_answer() -> None:
    armed, raised = False, 0.0

    def handle(number: int, frame: Any) -> None:
        nonlocal raised
        if armed and time.monotonic() - raised > 60:  # not again while the first one is handled
            raised = time.monotonic()
            raise Stop

    before = signal.signal(signal.SIGALRM, handle)
    numbers, stopped = random.Random(0), 0
    try:
        with SyncManager() as manager:
            queue, shared = manager.Queue(), manager.dict()
            for i in range(100):
                try:
                    armed, raised = True, -60.0
                    signal.setitimer(signal.ITIMER_REAL, numbers.uniform(5e-6, 4e-4), 0.05)
                    shared[f"interrupted {i}"] = -i
                    shared.get(f"interrupted {i}")
                    if i == 0:
                        queue.get()  # there is never anything
                    armed = False
                except Stop:
                    armed = False
                    stopped += 1
                shared["k"] = i
                assert shared["k"] == i and shared.get("missing", i + 0.5) == i + 0.5
                assert queue.qsize() == 0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert stopped
