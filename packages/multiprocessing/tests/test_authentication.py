"""Connections whose ends prove that they know the job's secret."""

from __future__ import annotations

import pathlib
import socket
import threading
from typing import Any

import pytest

from plait_multiprocessing import AuthenticationError, authentication


def accept(end: socket.socket, secret: str) -> Any:
    """Return the channel with the other end; None, and it is closed, if it has no proof."""
    proof = authentication.SecretProof(end, secret)
    data = b""
    while len(data) < proof.wanted and (part := end.recv(proof.wanted - len(data))):
        data += part
    channel = proof.take(data) if len(data) == proof.wanted else None
    if channel is None:
        end.close()
    return channel


def both(secrets: tuple[str, str]) -> tuple[Any, Any]:
    """Return the channels of two ends, or their errors."""
    left, right = socket.socketpair()
    results: list[Any] = [None, None]

    def listen() -> None:
        results[0] = accept(left, secrets[0])

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        results[1] = authentication.connect(right, secrets[1], "the other")
    except AuthenticationError as error:
        results[1] = error
    thread.join()
    return results[0], results[1]


def test_who_knows_the_secret_is_heard() -> None:
    host, guest = both(("a", "a"))
    guest.send(b"x" * 100_000)
    host.send(b"")
    assert host.receive() == b"x" * 100_000 and guest.receive() == b""
    guest.close()
    with pytest.raises(EOFError):
        host.receive()
    host.close()


def test_who_does_not_is_not() -> None:
    host, guest = both(("a", "b"))
    assert host is None
    assert isinstance(guest, AuthenticationError) and "another secret" in str(guest)


@pytest.mark.parametrize("sent", [b"\0" * 64, b"GET / HTTP/1.1\r\n" * 8, b""])
def test_strangers_get_a_greeting_alone(sent: bytes) -> None:
    left, right = socket.socketpair()
    right.sendall(sent)
    right.shutdown(socket.SHUT_WR)
    assert accept(left, "a") is None
    with right:
        right.settimeout(5)
        assert len(right.recv(1000)) == 40
        with pytest.raises((ConnectionResetError, AssertionError)):
            assert right.recv(1000) != b""


def test_a_changed_frame_is_refused() -> None:
    host, guest = both(("a", "a"))
    guest._sent = 1  # as if a frame were repeated or left out
    guest.send(b"x")
    with pytest.raises(EOFError):
        host.receive()
    host.close()
    guest.close()


def test_the_file_of_the_secret(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "secret"
    names = {"PLAIT_JOB_SECRET_FILE": str(path)}
    with pytest.raises(ValueError, match="cannot be read"):
        authentication.job_secret(names)
    path.write_text("of the job\n")
    path.chmod(0o644)
    with pytest.raises(ValueError, match="by its owner alone"):
        authentication.job_secret(names)
    path.chmod(0o600)
    assert authentication.job_secret(names) == "of the job"
    assert authentication.job_secret({**names, "PLAIT_JOB_SECRET": "this"}) == "this"
    path.write_text(" \n")
    with pytest.raises(ValueError, match="is empty"):
        authentication.job_secret(names)
    assert authentication.job_secret({}) == ""
