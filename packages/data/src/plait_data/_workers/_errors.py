"""Errors of workers: those that died or do not answer, and exceptions sent to the program."""

from __future__ import annotations

import errno
import os
import pickle
import resource
import signal
import traceback
from typing import Any

from plait_data._randomness import library_draws
from plait_data._worker_info import WorkerError, WorkerTimeout
from plait_data._workers._codec import dumps

_DESCRIPTORS_EACH = 3  # socket, pidfd, mapping
_DESCRIPTORS_ELSE = 10  # the life line, the job, and temporary ones during a start


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
    text += f"\n\nIts stack:\n{stack}" if stack else "\n\nIt gave no stack: no Python runs in it"
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


def require_descriptors(workers: int) -> None:
    """Raise if there are too few file descriptors to start all workers.

    Raises:
        OSError: fewer are left than ``workers`` need.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    descriptors = len(os.listdir("/proc/self/fd"))
    needed = _DESCRIPTORS_EACH * workers + _DESCRIPTORS_ELSE
    if limit != resource.RLIM_INFINITY and descriptors + needed > limit:
        raise OSError(
            errno.EMFILE,
            f"DataLoader: {workers} workers need {needed} file descriptors and {descriptors} are "
            f"open; the limit of this process is {limit} (RLIMIT_NOFILE). Raise it (ulimit -n "
            "4096, resource.setrlimit), close files, or use fewer workers",
        )


Failure = tuple[bytes, str, str]  # the pickled exception (empty if it has none), its name, its text


class WorkerTraceback(Exception):
    """The traceback in a worker, as the cause of a worker's exception."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


def capture(error: BaseException, action: str) -> Failure:
    """Return the data of an exception in a worker, to be sent.

    ``action`` says what the worker did when the exception was raised.
    """
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return _pickled(error), action, trace


def _pickled(error: BaseException) -> bytes:
    error.__traceback__ = None
    try:
        content = dumps(error)
        if type(pickle.loads(content)) is type(error):
            return content
    except Exception:
        # its constructor takes other arguments than its `args`, or it has attributes that cannot be
        # pickled
        pass
    try:
        return dumps((_bare, (type(error), error.args, _plain(vars(error)))))
    except Exception:
        return b""


def _plain(attributes: dict[str, Any]) -> dict[str, Any]:
    plain = {}
    for name, value in attributes.items():
        try:
            dumps(value)
        except Exception:
            continue
        plain[name] = value
    return plain


def _bare(kind: type[BaseException], arguments: tuple[Any, ...], state: dict[str, Any]) -> Any:
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    vars(error).update(state)
    return error


def restore(failure: Failure, worker: int, pid: int | None) -> BaseException:
    """The exception, with the worker's traceback as its cause and a note that names the worker."""
    content, action, trace = failure
    error: Any = None
    if content:
        try:
            error = pickle.loads(content)
            if isinstance(error, tuple):
                error = error[0](*error[1])
        except Exception:
            error = None
    phase = f"in worker {worker} (pid {pid}) of the DataLoader, {action}"
    if not isinstance(error, BaseException):
        error = RuntimeError(f"DataLoader: an exception that can't be sent {phase}:\n{trace}")
    form = getattr(library_draws(), "worker_error", None)
    if form is not None:
        return form(error, trace, worker)  # type: ignore[no-any-return]
    if hasattr(error, "add_note"):  # Python 3.11 and later
        error.add_note(f"raised {phase}")
    error.__cause__ = WorkerTraceback(f"{trace}raised {phase}\n")
    return error  # type: ignore[no-any-return]
