"""What a loader says when a worker is gone or doesn't answer."""

from __future__ import annotations

import errno
import resource
import signal
from typing import Any

from plait_data._worker_error import WorkerError, WorkerTimeout

__all__ = ["died", "no_descriptors", "process_state", "timed_out"]


_HINTS = {
    signal.SIGKILL: "something killed it, often the kernel for lack of memory",
    signal.SIGBUS: "memory or a mapped file that can't be reached, as when a file was cut short",
    signal.SIGSEGV: "a fault in native code",
    signal.SIGABRT: "native code gave up",
}


def died(worker: int, pid: int, status: int | None, where: str, index: Any, stack: str) -> Any:
    """The error for a worker that ended; ``status`` is negative for a signal, None if unknown."""
    if status is None:
        how = "ended, and another part of the program took its status"
    elif status < 0:
        how = f"was killed by signal {-status} ({_signal_name(-status)})"
        if -status in _HINTS:
            how += f": {_HINTS[signal.Signals(-status)]}"
    else:
        how = f"exited with status {status}"
    text = f"DataLoader: worker {worker} (pid {pid}) {how}; it stopped {where}"
    if stack:
        text += f"\n\nIts stack:\n{stack}"
    error = WorkerError(text)
    error.worker, error.pid, error.index = worker, pid, index
    if status is not None:
        error.signal, error.status = (-status, None) if status < 0 else (None, status)
    return error


def timed_out(
    worker: int, pid: int, seconds: float, where: str, index: Any, stopped: bool, stack: str
) -> WorkerTimeout:
    """The error for a worker that sent nothing within ``timeout``."""
    state = "is stopped (by SIGSTOP, a debugger or a terminal)" if stopped else "is busy"
    text = f"DataLoader: no batch came within timeout={seconds:g} s; worker {worker} (pid {pid}) "
    text += f"{state} {where}"
    text += f"\n\nIts stack:\n{stack}" if stack else "\n\nIt gave no stack: no Python code runs in it"
    error = WorkerTimeout(text)
    error.worker, error.pid, error.index = worker, pid, index
    return error


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"real-time signal {number}"


def process_state(pid: int) -> str:
    """The letter of a process's state ("T": stopped), or "" if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def no_descriptors(error: OSError, workers: int) -> OSError:
    """``error``, which came from opening something, with what to do about it."""
    if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ETOOMANYREFS):
        return error
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return OSError(
        error.errno,
        f"DataLoader: {workers} workers need {3 + 3 * workers} file descriptors, and the limit of "
        f"this process, {limit} (RLIMIT_NOFILE), leaves fewer; raise it (ulimit -n 4096, or "
        "resource.setrlimit), close files, or use fewer workers",
    )
