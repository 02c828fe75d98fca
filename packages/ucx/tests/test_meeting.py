"""How processes meet: by a name on one host, and at an address with a secret."""

from __future__ import annotations

import contextlib
import hashlib
import json
import multiprocessing
import os
import random
import resource
import socket
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import plait_abi
import plait_ucx
from plait_multiprocessing.authentication import Channel, connect as authenticate

pytestmark = pytest.mark.usefixtures("ucx")
assert plait_ucx
DESCRIPTORS = "PLAIT_TEST_DESCRIPTORS"  # free ones of rank 0
LONG = 120.0  # seconds, for machines that are busy; a test that passes waits for none of them


def _serve(end: Any, where: str, rank: int, size: int, timeout: float, secret: str) -> None:
    os.environ["PLAIT_JOB_SECRET"] = secret
    if rank == 0 and DESCRIPTORS in os.environ:
        used, hard = len(os.listdir("/proc/self/fd")), resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + int(os.environ[DESCRIPTORS]), hard))
    try:
        group = plait_abi.Communicator.open("ucx", where, rank, size, timeout)
        group.start("barrier")
        end.send("met")
        group.close()
    except Exception as error:
        end.send(f"{type(error).__name__}: {error}")


def meet(
    where: Sequence[str],
    ranks: Sequence[int],
    sizes: Sequence[int],
    timeout: float = LONG,
    secrets: Sequence[str] = ("", "", "", ""),
) -> list[str]:
    """Return what becomes of processes that open groups."""
    context = multiprocessing.get_context("spawn")
    ends = []
    for i, rank in enumerate(ranks):
        end, other = context.Pipe()
        arguments = (other, where[i % len(where)], rank, sizes[i % len(sizes)], timeout, secrets[i])
        context.Process(target=_serve, args=arguments, daemon=True).start()
        other.close()
        ends.append(end)
    return [end.recv() if end.poll(2 * LONG) else "it hangs" for end in ends]


def fresh() -> str:
    return f"local:test-{os.getpid()}-{time.monotonic_ns()}"


def local_port() -> str:
    """Return a place of this host; a Unix socket stands for its port."""
    return f"tcp://localhost:{random.SystemRandom().randrange(1, 65536)}"


def test_processes_meet_by_a_name_or_a_port() -> None:
    assert meet([fresh()], [0, 1, 2], [3]) == ["met"] * 3
    assert meet([f"{local_port()}/a"], [1, 0], [2]) == ["met"] * 2


def test_groups_that_differ() -> None:
    result = meet([fresh()], [0, 1], [2, 3])
    assert all("says that the group has 3 members, rank 0 says 2" in each for each in result)
    result = meet([fresh()], [0, 1, 1], [3])
    assert sum("rank 1 is there already" in each for each in result) == 3


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("shm:name", "must be"),
        ("local:", "must be"),
        ("tcp://host", "must be"),
        ("tcp://localhost:0/a", "must be"),
        ("tcp://localhost:99999/a", "must be"),
        ("tcp://0.0.0.0:29500/a", "an address of one interface"),
        ("tcp://no-such-host.invalid:29500/a", "is not known"),
    ],
)
def test_places_that_are_none(where: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        plait_abi.Communicator.open("ucx", where, 0, 2, 1.0)


def test_other_hosts_need_a_secret(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.delenv("PLAIT_JOB_SECRET", raising=False)
    with pytest.raises(plait_abi.PlaitError, match="PLAIT_JOB_SECRET must be set"):
        plait_abi.Communicator.open("ucx", "tcp://192.0.2.1:29500/a", 1, 2, 1.0)
    path = tmp_path / "secret"
    path.write_text("x")
    path.chmod(0o644)
    monkeypatch.setenv("PLAIT_JOB_SECRET_FILE", str(path))
    with pytest.raises(plait_abi.PlaitError, match="by its owner alone"):
        plait_abi.Communicator.open("ucx", "tcp://192.0.2.1:29500/a", 1, 2, 1.0)


def test_the_error_names_a_missing_rank() -> None:
    with pytest.raises(TimeoutError, match=r"waited 0\.3 s for rank 1, rank 2 at local:"):
        plait_abi.Communicator.open("ucx", fresh(), 0, 3, 0.3)
    with pytest.raises(TimeoutError, match=r"waited 0\.3 s for rank 0 at local:"):
        plait_abi.Communicator.open("ucx", fresh(), 1, 3, 0.3)


def test_a_meeting_may_take_a_month() -> None:
    assert meet([fresh()], [0, 1], [2], 30 * 86400.0, ["caf\udce9", "caf\udce9"]) == ["met"] * 2
    with pytest.raises(ValueError, match="`timeout` must be positive, got inf"):
        plait_abi.Communicator.open("ucx", fresh(), 0, 2, float("inf"))


@contextlib.contextmanager
def waiting_host(name: str, size: int = 2) -> Iterator[Any]:
    """A process that is rank 0 and waits."""
    context = multiprocessing.get_context("spawn")
    end, other = context.Pipe()
    process = context.Process(target=_serve, args=(other, name, 0, size, LONG, "s"), daemon=True)
    process.start()
    yield end
    if process.is_alive():
        process.kill()
    process.join()


def test_secrets_must_be_the_same() -> None:
    name = fresh()
    with waiting_host(name) as host:
        (text,) = meet([name], [1], [2], secrets=["another"])
        assert "another secret: PLAIT_JOB_SECRET must be the same" in text
        assert not host.poll(0.1)  # it still waits


def test_groups_of_other_names_do_not_meet() -> None:
    place = local_port()
    with waiting_host(f"{place}/a") as host:
        (text,) = meet([f"{place}/b"], [1], [2], secrets=["s"])
        assert 'another group than "a" meets at' in text
        assert not host.poll(0.1)


def connect(name: str) -> socket.socket:
    digest = hashlib.sha256(name.encode()).hexdigest()
    deadline = time.monotonic() + LONG
    while True:
        end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        end.settimeout(LONG)
        try:
            end.connect(f"\0plait-ucx/{os.getuid()}/{digest}")
            return end
        except OSError:
            end.close()
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_strangers_are_not_heard() -> None:
    name = fresh()
    with waiting_host(name) as host:
        for sent in (b"\0" * 64, b"GET / HTTP/1.1\r\n" * 8, b"x", b""):
            with connect(name) as end:
                assert end.recv(8) == b"PLAITDS1" and len(end.recv(32)) == 32
                end.sendall(sent)
                end.shutdown(socket.SHUT_WR)
                with contextlib.suppress(ConnectionResetError):
                    assert end.recv(1) == b""
        assert not host.poll(0.1)  # it still waits


@pytest.mark.parametrize("descriptors", [0, 70], ids=["many descriptors", "few descriptors"])
def test_unknown_connections_do_not_block_members(
    descriptors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if descriptors:
        monkeypatch.setenv(DESCRIPTORS, str(descriptors))
    name = fresh()
    with waiting_host(name) as host, contextlib.ExitStack() as strangers:
        for number in range(400):
            end = strangers.enter_context(connect(name))
            with contextlib.suppress(OSError):
                end.sendall(b"x" if number % 2 else b"")
        assert meet([name], [1], [2], secrets=["s"]) == ["met"]
        assert host.poll(LONG) and host.recv() == "met"


@contextlib.contextmanager
def member(name: str) -> Iterator[Channel]:
    """Yield the channel to rank 0, of a process that knows the secret."""
    with contextlib.closing(authenticate(connect(name), "s", "rank 0")) as channel:
        channel.settimeout(LONG)
        yield channel


def message_of(name: str, rank: int, size: int) -> bytes:
    """Return what a process says of itself, with the address ``abc``."""
    return (
        json.dumps({"place": f"{name}/{name[6:]}", "rank": rank, "size": size}).encode() + b"\nabc"
    )


@pytest.mark.parametrize(
    "nonsense",
    [b"\xff" * 76, b"{}\n", b"[]\n", b'{"rank": "x"}\n', b'{"rank": Infinity}\n', b"[" * 9999, b""],
    ids=["no text", "no rank", "no facts", "no number", "no integer", "deep", "nothing"],
)
def test_who_knows_the_secret_and_then_sends_nonsense_is_not_heard(nonsense: bytes) -> None:
    name = fresh()
    with waiting_host(name) as host:
        with member(name) as channel:
            channel.send(nonsense)
            with pytest.raises((EOFError, ConnectionResetError)):
                channel.receive()
        assert not host.poll(0.1)


def test_a_forged_message_is_not_heard() -> None:
    name = fresh()
    with waiting_host(name, 3) as host:
        with member(name) as channel:
            channel._key = b"another"
            channel.send(message_of(name, 1, 3))
            with pytest.raises((EOFError, ConnectionResetError)):
                channel.receive()
        assert not host.poll(0.1)


def test_a_process_that_dies_while_others_meet_is_named() -> None:
    name = fresh()
    with waiting_host(name, 3) as host:
        with member(name) as channel:
            channel.send(message_of(name, 1, 3))
        assert host.poll(LONG)
        assert "rank 1 ended while the processes met" in host.recv()


def test_who_opens_a_group_without_a_meeting_is_told_so() -> None:
    with pytest.raises(plait_abi.PlaitError, match="plait_ucx_begin and plait_ucx_join come first"):
        plait_abi.binding.open_communicator("ucx", "cpu", fresh(), 0, 2, 1.0)


def test_a_meeting_of_more_processes_than_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    with pytest.raises(plait_abi.PlaitError, match=r"meeting of 1500 processes, and may have 1024"):
        plait_abi.Communicator.open("ucx", fresh(), 0, 1500, 1.0)
