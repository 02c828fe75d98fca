"""What the attacks on saves share: a state with a version, and children that save it."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import plait_core as pc
import plait_distributed.checkpoint as dcp

KINDS: dict[str, dict[str, Any]] = {
    "file": {},
    "shards": {"max_shard_size": 150_000},
    "torch": {"format": "torch"},
    "folder": {},  # of plait_distributed, which is the folder of the path
    "folder_async": {},
}
# four tensors, of which two go to a part
PARTS = 2


def value(version: int) -> dict[str, Any]:
    state: dict[str, Any] = {f"x{i}": pc.full((16_000,), float(version)) for i in range(4)}
    return {"version": version, **state}


def save(version: int, path: Path, kind: str) -> None:
    if kind == "folder":
        dcp.save(value(version), checkpoint_id=path.parent, no_dist=True)
    elif kind == "folder_async":
        dcp.async_save(value(version), checkpoint_id=path.parent, no_dist=True).result()
    else:
        pc.save(value(version), path, **KINDS[kind])


def load(path: Path, **options: Any) -> Any:
    if not (path.parent / ".metadata").exists():
        return pc.load(path, **options)
    result = value(-7)
    dcp.load(result, checkpoint_id=path.parent, no_dist=True)
    return result


def version_of(path: Path, **options: Any) -> int:
    result = load(path, **options)
    version = int(result["version"])
    assert all(bool((result[f"x{i}"] == float(version)).all()) for i in range(4))
    return version


def in_child(work: Callable[[], None]) -> int:
    """Fork a child that does `work`, and return its number.

    An interrupt waits until the child is where it ends by itself, and not with pytest's own end.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    child = os.fork()
    if child:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return child
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        work()
        code = 0
    except BaseException:
        traceback.print_exc(file=sys.__stderr__)
    finally:
        os._exit(code)


def status_of(child: int, seconds: float = 180.0) -> int:
    """Wait until a child ends and return its status; one that hangs prints its stacks."""
    end = time.monotonic() + seconds
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        if time.monotonic() > end:
            os.kill(child, signal.SIGABRT)  # pytest's handler prints the stacks of all threads
            os.waitpid(child, 0)
            raise AssertionError(f"the child {child} did not end in {seconds:g} s")
        time.sleep(0.0005)


def check_what_is_left(path: Path, kind: str) -> None:
    """The next save leaves its own files alone."""
    save(-1, path, kind)
    assert version_of(path) == -1
    left = sorted(os.listdir(path.parent))
    assert len(left) == {"shards": 1 + PARTS, "folder": 2, "folder_async": 2}.get(kind, 1), left
