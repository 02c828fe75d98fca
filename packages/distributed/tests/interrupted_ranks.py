"""An interrupt at any line of a save or a load of several ranks, in one that goes on afterwards."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import plait_distributed as dist
import plait_distributed.checkpoint as dcp
from plait_distributed.checkpoint import CheckpointException, _saving
from plait_distributed.checkpoint._errors import Together

KINDS = ("save", "async_save", "load")


def run(kind: str, state: Any, folder: Any, is_here: bool, at: int) -> int:
    """Save or load in a new group, with an interrupt at a line of one rank.

    Args:
        kind: one of `KINDS`.
        state: of this rank.
        folder: of the checkpoint.
        is_here: whether this rank is the one.
        at: the number of the line; 0: nowhere.

    Returns:
        How many lines the rank came to, on all ranks.

    Raises:
        CollectiveTimeout: a rank waited for the one that was interrupted.
    """
    group = dist.new_group(list(range(dist.get_world_size())))
    groups = [group]
    if kind == "async_save":  # the group for its thread is made at the first one
        groups.append(_saving._background_group(group))
    lines = _interrupted(at if is_here else 0, lambda: _work(kind, state, folder, group))
    message: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(message, lines if is_here else 0)
    for each in groups:  # at the end: who leaves a group lets nobody wait
        dist.destroy_process_group(each)
    return int(max(message))


def _work(kind: str, state: Any, folder: Any, group: Any) -> None:
    if kind == "save":
        dcp.save(state, checkpoint_id=folder, process_group=group)
    elif kind == "load":
        dcp.load(state, checkpoint_id=folder, process_group=group)
    else:
        dcp.async_save(state, checkpoint_id=folder, process_group=group).result()


def _interrupted(at: int, function: Callable[[], Any]) -> int:
    """Raise KeyboardInterrupt at the n-th line of plait_distributed that a function comes to, in
    the steps that ranks take together; return to how many it comes.
    """
    package, count, started = os.path.dirname(dist.__file__), 0, False

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal started, count
        if not frame.f_code.co_filename.startswith(package):
            return None
        if event == "return" and frame.f_code is Together.__enter__.__code__:
            started = True
        if event == "line" and started:
            count += 1
            if count == at:
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        function()
    except (KeyboardInterrupt, CheckpointException, dist.RankLost):
        pass
    finally:
        sys.settrace(None)
    return count
