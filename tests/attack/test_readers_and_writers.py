"""Loads while others save to the same place: the old checkpoint or the new one, never neither."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from checkpoint_saves import KINDS, check_what_is_left, in_child, save, version_of


@pytest.mark.parametrize("kind", KINDS)
def test_loads_while_another_process_saves(rounds: Any, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "m.index.json"
    save(0, path, kind)
    version_of(path)

    def work() -> None:
        version = 0
        while True:
            version += 1
            save(version, path, kind)

    child = in_child(work)
    try:
        last, loads = 0, 0
        for rng in rounds:
            for _ in range(10):
                version = version_of(path, mmap=rng.random() < 0.3)
                assert version >= last
                last, loads = version, loads + 1
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert loads


@pytest.mark.parametrize("kind", ["shards", "folder", "folder_async"])
def test_threads_of_one_process(rounds: Any, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "m.index.json"
    save(0, path, kind)
    stopped, failures = threading.Event(), []

    def work(number: int) -> None:
        version = number
        try:
            while not stopped.is_set():
                version += 2
                save(version, path, kind)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    try:
        for _ in rounds:
            version_of(path)
    finally:
        stopped.set()
        for thread in threads:
            thread.join()
    assert not failures
    check_what_is_left(path, kind)
