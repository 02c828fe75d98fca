"""Loads the component, and handles forks and the end of the process."""

from __future__ import annotations

import os
import sys
from multiprocessing import util

import plait_abi

if not sys.platform.startswith("linux"):
    raise ImportError(
        "plait_multiprocessing: Linux is required (memfd and descriptors in messages), "
        f"this is {sys.platform}; the standard multiprocessing sends tensors by value here"
    )

plait_abi.load(plait_abi.paths("plait_multiprocessing")["libplait_multiprocessing.so"])

from plait_multiprocessing import _shared  # noqa: E402


class _Watch:
    """An object for the after-fork hook of multiprocessing, which needs one."""


_watch = _Watch()


def _at_end(watch: object = None) -> None:
    # runs after queues have been flushed (-5), in children of multiprocessing too, which end by
    # os._exit
    util.Finalize(None, _shared.leave, exitpriority=-100)


os.register_at_fork(before=_shared.before_fork, after_in_child=_at_end)
util.register_after_fork(_watch, _at_end)  # a child forgets its parent's finalizers
_at_end()
