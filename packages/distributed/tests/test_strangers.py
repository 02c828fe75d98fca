"""Strangers that connect and prove nothing keep no process of the job out."""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from plait_distributed.elastic._host_watch import HostWatch
from plait_distributed.elastic._place import Place
from plait_multiprocessing import listener as listeners
from plait_multiprocessing.listener import Listener

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import strangers


@pytest.mark.parametrize("kind", strangers.KINDS)
@pytest.mark.parametrize("descriptors", [0, 30], ids=["many descriptors", "few descriptors"])
def test_unknown_connections_do_not_block_members(kind: str, descriptors: int) -> None:
    with (
        strangers.server(kind, descriptors) as port,
        strangers.Strangers(strangers.address_of(kind, port), 400),
    ):
        strangers.ask(kind, port)  # waits for a limited time


@pytest.mark.parametrize("kind", strangers.KINDS)
def test_a_child_does_not_keep_the_address_of_a_lost_process(kind: str) -> None:
    """It has been forked, so it has had all descriptors."""
    with strangers.process_of(kind) as (port, process):
        address = strangers.address_of(kind, port)
        family = socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX
        with socket.socket(family) as before:
            before.settimeout(strangers.LONG)
            before.connect(address)
            assert before.recv(40).startswith(b"PLAITDS1")
            process.stdin.write("fork\n")
            process.stdin.flush()
            child = int(process.stdout.readline())
            try:
                process.kill()
                process.wait()
                with contextlib.suppress(ConnectionResetError):
                    assert before.recv(1) == b""
                deadline = time.monotonic() + strangers.LONG  # the child may just begin
                while _listens(family, address):
                    assert time.monotonic() < deadline
                os.kill(child, 0)
            finally:
                os.kill(child, signal.SIGKILL)


def _listens(family: int, address: Any) -> bool:
    with socket.socket(family) as end:
        return end.connect_ex(address) == 0


class _Proof:
    wanted = 4

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def take(self, data: bytes) -> bytes | None:
        if data != b"good":
            return None
        self._end.close()
        return data


@pytest.fixture(name="listening")
def listening_socket() -> Iterator[socket.socket]:
    with socket.create_server((strangers.HOST, 0)) as result:
        yield result


def _heard(listener: Listener) -> list[bytes]:
    """Return the proofs that come; none if none comes for long."""
    deadline = time.monotonic() + strangers.LONG
    while time.monotonic() < deadline:
        if result := listener.step(0.05):
            return result
    return []


def test_a_proof_in_parts_is_heard(listening: socket.socket) -> None:
    listener = Listener([listening], _Proof)
    with socket.create_connection(listening.getsockname()) as end:
        end.sendall(b"go")
        assert listener.step(0.05) == []
        end.sendall(b"od")
        assert _heard(listener) == [b"good"]
    with socket.create_connection(listening.getsockname()) as end:
        end.settimeout(strangers.LONG)
        end.sendall(b"evil and more")
        for _ in range(3):
            assert listener.step(0.05) == []
        with contextlib.suppress(ConnectionResetError):
            assert end.recv(1) == b""


def test_a_slow_stranger_has_to_go(
    listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "_TIME", 0.2)
    listener = Listener([listening], _Proof)
    with socket.create_connection(listening.getsockname()) as end:
        end.sendall(b"g")
        end.setblocking(False)
        is_closed = False
        while not is_closed:
            assert listener.step(0.05) == []
            try:
                is_closed = end.recv(1) == b""
            except BlockingIOError:
                continue
            except ConnectionResetError:  # closed before the byte was read
                is_closed = True
        assert listener._strangers == []


def test_the_oldest_stranger_has_to_go(
    listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "_MOST", 3)
    monkeypatch.setattr(listeners, "_SAFE", 0.0)
    listener = Listener([listening], _Proof)
    ends = [socket.create_connection(listening.getsockname()) for _ in range(8)]
    for _ in range(8):
        listener.step(0.02)
    ends[-1].sendall(b"good")
    assert len(listener._strangers) == 3 and _heard(listener) == [b"good"]
    for end in ends:
        end.close()
    listener.close()


def test_many_ranks_may_be_slow_at_the_same_time(
    listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "_SAFE", 0.0)
    listener = Listener([listening], _Proof)
    with contextlib.ExitStack() as closing:
        ends = [
            closing.enter_context(socket.create_connection(listening.getsockname()))
            for _ in range(128)
        ]
        deadline = time.monotonic() + strangers.LONG
        while len(listener._strangers) < len(ends) and time.monotonic() < deadline:
            assert listener.step(0.05) == []
        for end in ends:
            end.sendall(b"good")
        heard: list[bytes] = []
        while len(heard) < len(ends) and (more := _heard(listener)):
            heard += more
        assert len(heard) == len(ends)


def test_without_descriptors_it_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(socket.socket):
        tries = 0

        def accept(self) -> Any:
            Full.tries += 1
            raise OSError(errno.EMFILE, "there are no descriptors")

    monkeypatch.setattr(listeners, "_PAUSE", 1000.0)
    with Full() as listening:
        listening.bind((strangers.HOST, 0))
        listening.listen()
        listener = Listener([listening], _Proof)
        with socket.create_connection(listening.getsockname()):
            while Full.tries == 0:
                listener.step(0.05)
            for _ in range(20):
                listener.step(0.01)
        assert Full.tries == 1


def test_a_closed_socket_ends_it(listening: socket.socket) -> None:
    listener = Listener([listening], _Proof)
    thread = threading.Thread(target=listener.serve, args=(print,))
    thread.start()
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    thread.join(strangers.LONG)
    assert not thread.is_alive()


def test_a_coordinator_on_another_host_waits() -> None:
    """A rank that is started again on the first host meets there, where the others do not look."""
    port = strangers.free_port()
    door = strangers.serve("door", port, 0)
    watch = HostWatch(Place(f"strangers {port}", strangers.SECRET, (strangers.HOST, port)))
    deadline = time.monotonic() + strangers.LONG
    assert not watch.is_cut_off(strangers.HOST)
    while door.has_decided():  # the other thread of `serve` lets it in
        assert time.monotonic() < deadline
        time.sleep(0.01)
    watch.close()
    door.close()


def test_strangers_at_the_door_are_not_let_in() -> None:
    """Whoever connects to an elastic job while ranks are missing does not stop its training."""
    port = strangers.free_port()
    door = strangers.serve("door", port, 0)
    with strangers.Strangers((strangers.HOST, port), 300):
        deadline = time.monotonic() + 1
        while time.monotonic() < deadline:
            assert not door.is_someone_waiting()
            time.sleep(0.02)
    door.close()
