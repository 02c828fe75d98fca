"""Forked workers that only `_exit` ends.

What the handler of a signal raises in a child of `os.fork`, before the child runs its process
object, leaves the standard module's block that ends the child: it returns into its parent's frames,
and may end by libc's exit. This runs destructors of the parent's libraries, which may wait for
threads that the child lacks. Here signals wait until the child has a block around it.

`plait_multiprocessing` does the same in C, which this package, without others of plait, cannot use.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing import context, forkserver, popen_fork, util
from typing import Any, NoReturn

_context: Any = context
_forkserver: Any = forkserver
_util: Any = util
_SERVER = "plait_data._workers._server"
_libc = ctypes.CDLL(None)
# Python 3.13 calls the exit functions that the child itself registers
_exit_functions: Any = getattr(popen_fork, "atexit", None)


def end_by_exit(process: Any) -> None:
    """Let a process that is not started yet be one that only `_exit` ends, if it will be forked by
    the standard module or by its server. A server that runs already stays as it is.
    """
    kind: Any = type(process)
    if kind._Popen is _context.Process._Popen:
        kind = getattr(multiprocessing.get_context(), "Process", kind)
    if kind._Popen is _context.ForkProcess._Popen:
        process._Popen = _Fork
    elif kind._Popen is _context.ForkServerProcess._Popen:
        server = _forkserver._forkserver
        if _SERVER not in server._preload_modules:
            server._preload_modules = [*server._preload_modules, _SERVER]


class _Fork(popen_fork.Popen):
    """The start of a process by a fork."""

    pid: int
    sentinel: int
    finalizer: util.Finalize | None

    def _launch(self, process_obj: Any) -> None:
        (end, child_end), (parent, alive) = os.pipe(), os.pipe()
        ours, theirs = (end, alive), (child_end, parent)

        def run() -> int:
            _util.close_fds(*ours)
            status: int = process_obj._bootstrap(parent_sentinel=parent)
            return status

        try:
            self.pid = _fork_to_run(run)
        except BaseException:
            _util.close_fds(*ours)
            raise
        finally:
            _util.close_fds(*theirs)
        self.finalizer = util.Finalize(self, _util.close_fds, ours)
        self.sentinel = end


def _fork_to_run(run: Callable[[], int]) -> int:
    """Fork; return the child's pid. The child calls the function and exits with its result."""
    process, signals = os.getpid(), signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        child = os.fork()
        if child == 0:
            run_to_exit(run, signals)
        return child
    finally:
        while os.getpid() != process:  # what was raised came before the block of `run_to_exit`
            with suppress(BaseException):
                os._exit(1)
        signal.pthread_sigmask(signal.SIG_SETMASK, signals)


def run_to_exit(run: Callable[[], int], signals: Iterable[int]) -> NoReturn:
    """Call the function in a child of a fork with all signals blocked; exit with its result.

    `signals` are those that are blocked while it runs.
    """
    status = 1
    try:
        status = _run(run, signals)
    finally:
        while True:
            with suppress(BaseException):
                os._exit(status & 0xFF)  # what the system keeps; a larger number is an error


def _run(run: Callable[[], int], signals: Iterable[int]) -> int:
    if hasattr(_libc, "on_exit"):  # for a library of the child that calls exit
        _libc.on_exit(_libc._exit, None)
    if _exit_functions is not None:
        _exit_functions._clear()
        _exit_functions.register(_util._exit_function)
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, signals)
        return run()
    except SystemExit as error:  # before the process object's own block
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        if _exit_functions is not None:
            _exit_functions._run_exitfuncs()
