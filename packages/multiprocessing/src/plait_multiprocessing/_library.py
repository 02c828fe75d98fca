"""The component, loaded once, and what a process does about it when it forks and when it ends."""

from __future__ import annotations

import os
import sys
from multiprocessing import util

import plait_abi

__all__: list[str] = []

if not sys.platform.startswith("linux"):
    raise ImportError(
        "plait_multiprocessing: Linux is required (memfd and descriptors in messages), "
        f"this is {sys.platform}; the standard multiprocessing sends tensors by value here"
    )

plait_abi.load(plait_abi.paths("plait_multiprocessing")["libplait_multiprocessing.so"])

from plait_multiprocessing import _shared  # noqa: E402


class _Watch:
    """Something to hang the after-fork hook of multiprocessing on."""


_watch = _Watch()


def _at_end(watch: object = None) -> None:
    # After queues have sent what they had (-5); children of multiprocessing end by os._exit.
    util.Finalize(None, _shared.leave, exitpriority=-100)


os.register_at_fork(before=_shared.before_fork, after_in_child=_at_end)
util.register_after_fork(_watch, _at_end)  # a child forgets its parent's finalizers
_at_end()
