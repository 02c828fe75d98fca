"""The server of the start method forkserver, which imports this module before it forks.

The children of the server end as those of a fork do: see `_children`. A handler of a signal is here
one that the program's main module installs, which the server imports first.
"""

from __future__ import annotations

import functools
import os
from multiprocessing import forkserver
from typing import Any

from plait_multiprocessing import _children, _shared

_standard: Any = forkserver


class _System:
    """The module `os` for the server."""

    fork = staticmethod(_shared.fork_blocked)

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


def _serve_one(*arguments: Any, serve: Any = _standard._serve_one) -> None:
    _shared.run_to_exit(functools.partial(_children.run, functools.partial(serve, *arguments)))


if _standard.os is os:  # not where plait_data has done the same
    _standard.os = _System()
    _standard._serve_one = _serve_one
