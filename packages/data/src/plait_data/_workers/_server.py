"""The server of the start method forkserver, which imports this module before it forks.

The children of the server end as those of a fork do: see `_fork`. A handler of a signal is here one
that a module of the program installs, which the server imports first.
"""

from __future__ import annotations

import functools
import os
import signal
from contextlib import suppress
from multiprocessing import forkserver
from typing import Any

from plait_data._workers._fork import run_to_exit

_standard: Any = forkserver


class _System:
    """The module `os` for the server."""

    _signals: frozenset[int] = frozenset()

    def fork(self) -> int:
        """Fork as `os.fork` does; the child has all signals blocked until `_serve_one`."""
        process = os.getpid()
        self._signals = frozenset(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            child = os.fork()
        except BaseException:
            while os.getpid() != process:
                with suppress(BaseException):
                    os._exit(1)
            raise
        if child != 0:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._signals)
        return child

    def serve_one(self, *arguments: Any, serve: Any = _standard._serve_one) -> None:
        """Run a child."""
        run_to_exit(functools.partial(serve, *arguments), self._signals)

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


if _standard.os is os:  # not where plait_multiprocessing has done the same
    _standard.os = _System()
    _standard._serve_one = _standard.os.serve_one
