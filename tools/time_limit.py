"""A time limit for each test: one that hangs fails, and the stacks of its processes are printed.

`conftest.py` starts this file as a process of its own, which needs neither Python's lock nor a
thread of the tests' process. At the limit it

1. asks the process of the tests, and its forked children, for the stacks of all their threads, and
   lists all processes that the tests have started;
2. fails the test by a signal;
3. ends the processes that the tests have started, if the test still runs after some seconds: those
   in Python print their stacks at SIGABRT;
4. ends the process of the tests, if that has not helped either.

    python tools/time_limit.py PID SECONDS < names-of-tests
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import select
import signal
import sys
import time
from collections.abc import Iterator

__all__ = ["DUMP", "FAIL"]

DUMP = signal.SIGRTMAX - 2  # prints all stacks, by faulthandler
FAIL = signal.SIGRTMAX - 3  # raises in the main thread of the tests' process
_STEP = 10.0  # most seconds between the steps above
_PROC = pathlib.Path("/proc")


def main(pid: int, seconds: float) -> None:
    """Watch the tests of a process until it ends; standard input has a line for each event: the
    name of a test that begins, or an empty line for its end.
    """
    name, deadlines = "", [0.0]
    steps = [lambda: _report(pid, name, seconds), lambda: _end_others(pid), lambda: _abort(pid)]
    done = 0
    while _lives(pid):
        rest = deadlines[0] - time.monotonic() if name and done < len(steps) else 3600.0
        if select.select([0], [], [], min(max(rest, 0.0), 5.0))[0]:
            lines = os.read(0, 1 << 16).decode(errors="replace").split("\n")
            if lines == [""]:
                return
            # the last event counts; a read may begin or end within a name
            name, done = lines[-2] if len(lines) > 1 else lines[-1], 0
            deadlines[0] = time.monotonic() + seconds
        elif name and done < len(steps) and time.monotonic() >= deadlines[0]:
            steps[done]()
            done += 1
            deadlines[0] = time.monotonic() + min(_STEP, seconds)


def _lives(pid: int) -> bool:
    return (_PROC / str(pid)).exists()


def _report(pid: int, name: str, seconds: float) -> None:
    _print(f"\n{name} has not ended in {seconds:g} s. The stacks of process {pid}:")
    _send(pid, DUMP)
    time.sleep(1.0)
    for child in _descendants(pid):
        _print(_description(child))
        if _catches(child, DUMP):  # a fork of the process
            _send(child, DUMP)
            time.sleep(0.5)
    _send(pid, FAIL)


def _end_others(pid: int) -> None:
    # one that watches over all tests stays
    others = [p for p in _descendants(pid) if "resource_tracker" not in _description(p)]
    _print(f"the test still runs; these processes are ended: {others}")
    for child in others:
        _send(child, signal.SIGABRT if _catches(child, signal.SIGABRT) else signal.SIGKILL)
    deadline = time.monotonic() + _STEP
    while any(map(_runs, others)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for child in others:
        _send(child, signal.SIGKILL)


def _abort(pid: int) -> None:
    _print("the test still runs; the process of the tests is ended")
    _send(pid, signal.SIGABRT)
    time.sleep(5.0)
    _send(pid, signal.SIGKILL)


def _descendants(pid: int) -> Iterator[int]:
    for task in _PROC.glob(f"{pid}/task/*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, task.read_text().split()):
                yield child
                yield from _descendants(child)


def _description(pid: int) -> str:
    try:
        command = (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        state = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
        return f"process {pid} (state {state}): {command[:300]}"
    except (OSError, IndexError):
        return f"process {pid} has ended"


def _runs(pid: int) -> bool:
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (OSError, IndexError):
        return False


def _catches(pid: int, number: int) -> bool:
    with contextlib.suppress(OSError, ValueError):
        for line in (_PROC / str(pid) / "status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _print(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    if os.fork() == 0:  # no child of the tests' process, some of which count their children
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with contextlib.suppress(KeyboardInterrupt):
            main(int(sys.argv[1]), float(sys.argv[2]))
