"""Stores in memory and in files."""

from __future__ import annotations

import multiprocessing
import threading
import time
from typing import Any

import pytest

import plait_distributed as dist


@pytest.fixture(name="store", params=["hash", "file", "prefix"])
def any_store(request: pytest.FixtureRequest, tmp_path: Any) -> dist.Store:
    if request.param == "hash":
        return dist.HashStore(timeout=5)
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
    with pytest.raises(dist.DistStoreError, match=r"waited 0\.05 s for a, b"):
        store.wait(["a", "x", "b"], timeout=0.05)
    with pytest.raises(TypeError, match="str or bytes"):
        store.set("a", 1)  # type: ignore[arg-type]


def test_waiting_for_a_key(store: dist.Store) -> None:
    threading.Timer(0.1, store.set, ("late", "x")).start()
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
