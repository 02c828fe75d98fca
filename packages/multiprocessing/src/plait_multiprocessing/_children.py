"""Forked children that always end by `_exit`.

The standard module forks in Python. A signal handler may raise an exception in the child before the
child runs its process object. The exception then leaves the block that ends the child, and the
child returns into frames of its parent. On the main thread it goes on as a second copy of the
program. On another thread the thread ends, and libc's exit ends the child: it runs destructors of
the parent's libraries, which may wait for threads that the child does not have.

`plait_data` does the same in Python: it needs no other package of plait, so it cannot share this.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from multiprocessing import popen_fork, util
from typing import Any

from plait_multiprocessing import _shared

_util: Any = util
# Python 3.13 calls the exit functions that the child itself registers
_exit_functions: Any = getattr(popen_fork, "atexit", None)


class Fork(popen_fork.Popen):
    """The start of a process by a fork."""

    pid: int
    sentinel: int
    finalizer: util.Finalize | None

    def _launch(self, process_obj: Any) -> None:
        (end, child_end), (parent, alive) = os.pipe(), os.pipe()
        ours, theirs = (end, alive), (child_end, parent)

        def bootstrap() -> int:
            _util.close_fds(*ours)
            status: int = process_obj._bootstrap(parent_sentinel=parent)
            return status

        try:
            self.pid = _shared.fork_to_run(functools.partial(run, bootstrap))
        except BaseException:
            _util.close_fds(*ours)
            raise
        finally:
            _util.close_fds(*theirs)
        self.finalizer = util.Finalize(self, _util.close_fds, ours)
        self.sentinel = end


def run(bootstrap: Callable[[], int]) -> int:
    """Return the exit status of a forked child that runs a process object."""
    if _exit_functions is None:
        return bootstrap()
    _exit_functions._clear()
    _exit_functions.register(_util._exit_function)
    try:
        return bootstrap()
    finally:
        _exit_functions._run_exitfuncs()
