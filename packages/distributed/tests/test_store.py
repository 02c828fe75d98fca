"""Stores in memory and in files."""

from __future__ import annotations

import multiprocessing
import random
import signal
import threading
import time
from typing import Any

import pytest

import plait_distributed as dist

LONG = 120.0  # seconds, for machines that are busy; a test that passes waits for none of them


@pytest.fixture(name="store", params=["hash", "file", "tcp", "prefix", "tcp prefix"])
def any_store(request: pytest.FixtureRequest, tmp_path: Any) -> dist.Store:
    if request.param == "hash":
        return dist.HashStore(timeout=LONG)
    if request.param.startswith("tcp"):
        tcp = dist.TCPStore("127.0.0.1", 0, is_master=True, timeout=LONG)
        return dist.PrefixStore("inner", tcp) if "prefix" in request.param else tcp
    file = dist.FileStore(str(tmp_path / "store"), timeout=LONG)
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
    assert store.get("late") == b"x"


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
        store = dist.TCPStore("localhost", port, 3, rank == 1, timeout=LONG)
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
    master = dist.TCPStore(host, 0, is_master=True, timeout=LONG)
    other = dist.TCPStore(host, master.port, timeout=LONG)
    other.set("a", b"\0" * 1000)
    assert master.get("a") == b"\0" * 1000 and other.add("n", 2) == 2
    monkeypatch.setenv("PLAIT_JOB_SECRET", "another")
    with pytest.raises(dist.DistNetworkError, match="another secret"):
        dist.TCPStore(host, master.port, timeout=LONG)


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


class _Stop(Exception):
    pass


class _Alarm:
    """Raises an exception in a call, from a signal's handler.

    The signal comes again and again: one that comes just before a system call does not end it. The
    exception comes once in a minute, so that what follows a call that was stopped is not stopped.
    """

    def __init__(self) -> None:
        self._armed, self._raised = False, -60.0
        self._before = signal.signal(signal.SIGALRM, self._handle)

    def _handle(self, number: int, frame: Any) -> None:
        if self._armed and time.monotonic() - self._raised > 60:
            self._raised = time.monotonic()
            raise _Stop

    def stops(self, call: Any, seconds: float) -> bool:
        """Return whether a call was stopped behind so many seconds."""
        try:
            self._armed, self._raised = True, -60.0
            signal.setitimer(signal.ITIMER_REAL, seconds, 0.05)
            call()
            self._armed = False
        except _Stop:
            self._armed = False
            return True
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        return False

    def close(self) -> None:
        signal.signal(signal.SIGALRM, self._before)


CALLS: dict[str, Any] = {
    "set": lambda s: s.set("i", "interrupted"),
    "get": lambda s: s.get("here"),
    "get that waits": lambda s: s.get("missing"),
    "add": lambda s: s.add("count", 1),
    "append": lambda s: s.append("grows", "x"),
    "compare_set": lambda s: s.compare_set("here", "there", "gone"),
    "check": lambda s: s.check(["here", "missing"]),
    "wait": lambda s: s.wait(["missing"]),
    "delete_key": lambda s: s.delete_key("missing"),
    "num_keys": lambda s: s.num_keys(),
    "multi_set": lambda s: s.multi_set(["a", "b"], ["1", "2"]),
    "multi_get": lambda s: s.multi_get(["here", "there"]),
}


def _call_at_random(store: dist.Store, numbers: random.Random, known: dict[str, bytes]) -> None:
    """Make one call, whose answer is known."""
    key = f"r{numbers.randrange(4)}"
    value = b"%d" % numbers.randrange(1000)
    kind = numbers.randrange(6)
    if kind == 0 or key not in known:
        store.set(key, value)
        known[key] = value
    elif kind == 1:
        known[key] = b"%d" % (int(known[key]) + 3)
        assert store.add(key, 3) == int(known[key])
    elif kind == 2:
        assert store.compare_set(key, "no number", "x") == known[key]
    elif kind == 3:
        assert store.check([key]) and not store.check([key, "missing"])
    elif kind == 4:
        assert store.delete_key(key)
        del known[key]
    else:
        assert store.multi_get(sorted(known)) == [known[each] for each in sorted(known)]


# an interrupt may come when a socket is made and nobody has it yet: its destructor closes it
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", ["tcp", "hash"])
def test_calls_behind_an_interrupted_one_are_right(call: str, kind: str) -> None:
    if kind == "tcp":
        master = dist.TCPStore("localhost", 0, is_master=True)
        store: dist.Store = dist.TCPStore("localhost", master.port)
    else:
        store = dist.HashStore()
    store.multi_set(["here", "there"], ["here", "there"])
    alarm, numbers, known, stopped = _Alarm(), random.Random(0), dict[str, bytes](), 0
    try:
        for i in range(40):
            seconds = 0.02 if i == 0 else numbers.uniform(5e-6, 4e-4)
            stopped += alarm.stops(lambda: CALLS[call](store), seconds)
            for _ in range(20):
                _call_at_random(store, numbers, known)
    finally:
        alarm.close()
    assert stopped or call not in ("wait", "get that waits")


def test_an_interrupted_change_of_a_file_is_made_everywhere_or_nowhere(tmp_path: Any) -> None:
    store = dist.FileStore(str(tmp_path / "store"))
    store.set("n", "1")

    def change(data: dict[str, bytes]) -> None:
        data["n"] = b"2"
        raise _Stop

    with pytest.raises(_Stop):
        store._change(change)
    assert store.get("n") == b"1" and store.add("n", 1) == 2
    assert dist.FileStore(str(tmp_path / "store")).get("n") == b"2"


def test_a_forked_child_asks_over_its_own_connection() -> None:
    master = dist.TCPStore("localhost", 0, is_master=True)
    store = dist.TCPStore("localhost", master.port)
    store.multi_set(["parent", "child"], ["of the parent", "of the child"])

    def ask(copy: Any) -> None:
        for _ in range(200):
            assert copy.get("child") == b"of the child"
        copy.__del__()

    process = multiprocessing.get_context("fork").Process(target=ask, args=(store,))
    process.start()
    for _ in range(200):
        assert store.get("parent") == b"of the parent"
    process.join()
    assert process.exitcode == 0 and store.num_keys() == 2
