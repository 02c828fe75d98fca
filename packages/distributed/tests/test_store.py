"""Stores in memory and in files."""

from __future__ import annotations

import multiprocessing
import threading
import time
from typing import Any

import pytest

import plait_distributed as dist


@pytest.fixture(name="store", params=["hash", "file", "tcp", "prefix", "tcp prefix"])
def any_store(request: pytest.FixtureRequest, tmp_path: Any) -> dist.Store:
    if request.param == "hash":
        return dist.HashStore(timeout=5)
    if request.param.startswith("tcp"):
        tcp = dist.TCPStore("127.0.0.1", 0, is_master=True, timeout=5)
        return dist.PrefixStore("inner", tcp) if "prefix" in request.param else tcp
    file = dist.FileStore(str(tmp_path / "store"), timeout=5)
    return dist.PrefixStore("inner", file) if request.param == "prefix" else file


def test_keys_and_values(store: dist.Store) -> None:
    store.set("a", "1")
    store.set("empty", b"")
    assert store.get("a") == b"1" and store.get("empty") == b""
    assert store.add("n", 5) == 5 and store.add("n", -2) == 3 and store.get("n") == b"3"
    store.append("a", b"\0x")
    assert store.get("a") == b"1\0x"
    assert store.compare_set("new", "", "first") == b"first"
    assert store.compare_set("new", "other", "second") == b"first"
    assert store.compare_set("new", "first", "second") == b"second"
    assert store.check(["a", "n"]) and not store.check(["a", "b"])
    store.multi_set(["x", "y"], ["1", "2"])
    assert store.multi_get(["y", "x"]) == [b"2", b"1"]
    before = store.num_keys()
    assert store.delete_key("a") and not store.delete_key("a")
    assert store.num_keys() == before - 1
    with pytest.raises(dist.DistStoreError, match=r"waited 0\.05 s for (inner/)?a, (inner/)?b"):
        store.wait(["a", "x", "b"], timeout=0.05)
    with pytest.raises(TypeError, match="str or bytes"):
        store.set("a", 1)  # type: ignore[arg-type]


def test_waiting_for_a_key(store: dist.Store) -> None:
    other = store
    if isinstance(store, dist.TCPStore):  # one that waits is busy
        other = dist.TCPStore("localhost", store.port)
    if isinstance(store, dist.PrefixStore) and isinstance(store.underlying_store, dist.TCPStore):
        other = dist.PrefixStore("inner", dist.TCPStore("localhost", store.underlying_store.port))
    threading.Timer(0.1, other.set, ("late", "x")).start()
    began = time.monotonic()
    assert store.get("late") == b"x"
    assert time.monotonic() - began < 4


def _add(path: str) -> None:
    store = dist.FileStore(path)
    for _ in range(50):
        store.add("n", 1)
    store.append("done", b".")


def test_processes_that_write_one_file(tmp_path: Any) -> None:
    path = str(tmp_path / "store")
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_add, args=(path,)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    store = dist.FileStore(path)
    assert store.get("n") == b"150" and store.get("done") == b"..."


def test_a_port_is_free_as_soon_as_its_store_is_closed() -> None:
    port = dist.TCPStore("localhost", 0, is_master=True).port
    for _ in range(50):  # two of three failed while the accepting thread held the socket
        assert dist.TCPStore("localhost", port, is_master=True).port == port


def test_a_store_of_several_processes(ranks: Any) -> None:
    port = dist.TCPStore("localhost", 0, is_master=True).port  # which nobody has then

    def work(rank: int) -> Any:
        store = dist.TCPStore("localhost", port, 3, rank == 1, timeout=20)
        store.set(f"of {rank}", str(rank))
        result = store.multi_get([f"of {other}" for other in range(3)])
        dist.barrier()  # the master stays until all have asked
        return result

    assert ranks(3, work) == [[b"0", b"1", b"2"]] * 3


def test_a_tcp_store_that_cannot_be_reached() -> None:
    with pytest.raises(dist.DistNetworkError, match=r"waited 0\.1 s for a master"):
        dist.TCPStore("localhost", 1, timeout=0.1)
    with pytest.raises(ValueError, match=r"of another host.*PLAIT_JOB_SECRET"):
        dist.TCPStore("192.0.2.1", 1)
    master = dist.TCPStore("localhost", 0, is_master=True)
    with pytest.raises(dist.DistNetworkError, match="another store of this user has it"):
        dist.TCPStore("localhost", master.port, is_master=True)
    with pytest.raises(dist.DistStoreError, match="for 2 processes, 1 came"):
        dist.TCPStore("localhost", 0, 2, True, timeout=0.1)


def test_a_store_that_other_hosts_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    # an address of the loopback that no name says is one
    monkeypatch.setattr(
        "plait_distributed._tcp_store._resolved", lambda host: [(0, 0, 0, "", (host, 0))]
    )
    host = "::ffff:127.0.0.1"
    monkeypatch.setenv("PLAIT_JOB_SECRET", "of the store")
    master = dist.TCPStore(host, 0, is_master=True, timeout=5)
    other = dist.TCPStore(host, master.port, timeout=5)
    other.set("a", b"\0" * 1000)
    assert master.get("a") == b"\0" * 1000 and other.add("n", 2) == 2
    monkeypatch.setenv("PLAIT_JOB_SECRET", "another")
    with pytest.raises(dist.DistNetworkError, match="another secret"):
        dist.TCPStore(host, master.port, timeout=5)


def test_a_value_that_is_too_long_is_refused() -> None:
    store = dist.TCPStore("localhost", 0, is_master=True)
    part = bytes(40 << 20)
    store.set("a", part)
    store.append("a", part)
    with pytest.raises(dist.DistStoreError, match="at most 67108864 bytes"):
        store.get("a")
    with pytest.raises(ValueError, match="at most 67108864 bytes"):
        store.set("b", part + part)
    assert store.add("count", 2) == 2
