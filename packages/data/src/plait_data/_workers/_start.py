"""Ways to start a worker process with one end of a socket."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Process(Protocol):
    """A started worker."""

    pid: int

    def reap(self, seconds: float) -> int | None:
        """Wait for its end: return the exit status, a negative signal number, or None after the
        time limit.

        ValueError if another part of the program took the status.
        """

    def forget(self) -> None:
        """Forget the process in a forked child, to which it does not belong."""


class Start(Protocol):
    """A method to start workers. ``inherits``: workers get the job's object without pickling."""

    inherits: bool

    def __call__(self, end: socket.socket, job: Any) -> Process: ...


class _Spawned:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid

    def reap(self, seconds: float) -> int | None:
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def forget(self) -> None:
        self._process.returncode = 0


class Spawn:
    """The default: a new interpreter that imports `plait_data` and never runs the main module."""

    inherits = False

    def __call__(self, end: socket.socket, job: Any) -> Process:
        # the path comes first, as `plait_data` and NumPy may be in folders of this program's path
        # only
        code = (
            f"import sys; sys.path[:] = {_importable_path()!r}; {_imports_of_finders()}"
            "from plait_data._workers._child import main; "
            f"main({end.fileno()})"
        )
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        environment = dict(os.environ)
        for name in _THREADS:  # one thread for each worker, as there are several workers
            environment.setdefault(name, "1")
        process = subprocess.Popen(
            [sys.executable, *flags, "-c", code],
            stdin=subprocess.DEVNULL,
            pass_fds=(end.fileno(),),
            env=environment,
        )
        return _Spawned(process)


def _importable_path() -> list[str]:
    # '' is the folder the program is in at the time of an import.
    return [entry or os.getcwd() for entry in sys.path if isinstance(entry, str)]


def _imports_of_finders() -> str:
    """Return the code that puts the program's own finders in place, before the dataset is loaded.

    A finder on ``sys.meta_path`` says by its attribute ``installed_by`` which module does that.
    """
    names = [getattr(finder, "installed_by", None) for finder in sys.meta_path]
    return "".join(f"import {name}; " for name in names if isinstance(name, str))


class _Contextual:
    def __init__(self, process: Any) -> None:
        self._process = process
        self.pid = process.pid

    def reap(self, seconds: float) -> int | None:
        self._process.join(seconds)
        status: int | None = self._process.exitcode
        return status

    def forget(self) -> None:
        self._process._popen = None


class Contextual:
    """A start by a context of the multiprocessing module, with its ``Process``."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self.inherits = context.get_start_method() == "fork"

    def __call__(self, end: socket.socket, job: Any) -> Process:
        from plait_data._workers import _child
        from plait_data._workers._fork import end_by_exit

        arguments = (end, job if self.inherits else None)
        process = self._context.Process(target=_child.start, args=arguments, daemon=True)
        end_by_exit(process)
        process.start()
        return _Contextual(process)


def start_of(context: Any) -> Start:
    """The start method for a ``multiprocessing_context`` argument.

    Raises:
        ValueError: an unknown name.
        TypeError: not a name, a context or None.
    """
    if context is None:
        return Spawn()
    if isinstance(context, str):
        import multiprocessing

        if context not in (names := multiprocessing.get_all_start_methods()):
            raise ValueError(
                "DataLoader: `multiprocessing_context` must be None, 'thread' or one of "
                f"{', '.join(map(repr, names))}; got {context!r}"
            )
        return Contextual(multiprocessing.get_context(context))
    if not callable(getattr(context, "Process", None)):
        raise TypeError(
            "DataLoader: `multiprocessing_context` must be None, a name or a context of "
            f"multiprocessing; got {type(context).__name__}"
        )
    return Contextual(context)


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    """Sends a signal to a process that may be gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


Starter = Callable[[socket.socket, Any], Process]
