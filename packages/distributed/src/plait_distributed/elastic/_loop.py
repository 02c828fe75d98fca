"""Runs a training function again with the ranks that are left, until it ends."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from typing import Any

import plait_abi
from plait_distributed import _world
from plait_distributed._errors import CollectiveTimeout, DistBackendError, RankLost
from plait_distributed.elastic._session import current_session
from plait_distributed.elastic._state import NewRanks, State


def run(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that continues when ranks are lost or come back.

    All ranks call it with their `State`. It meets the others, makes the state the same on all, and
    calls `function`. When that ends with `RankLost`, or new ranks wait at a commit, the ranks that
    are there meet again, take the state of the last commit, and call `function` again: it must
    continue from the state. It returns when all ranks have come to the end.

    Args:
        function: called as ``function(state, ...)``.

    Raises:
        StateLost: shards were lost with their copies.
        CollectiveTimeout: a rank that runs did not come, or too few are left.
        Exception: what else `function` raises; this rank leaves the job: it is lost.

    Example:
        >>> import plait_distributed as dist
        >>> from plait_distributed import elastic
        >>> elastic.init_process_group(init_method="shm:run", rank=0, world_size=1)
        >>> elastic.run(lambda state: state.step + 1)(elastic.State(step=1))
        2
        >>> dist.destroy_process_group()
    """

    @functools.wraps(function)
    def running(state: State, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(state, State):
            raise TypeError(f"run: the first argument must be a State, got {type(state).__name__}")
        try:
            while True:
                state.meet()
                try:
                    state.take_over()
                    result = function(state, *args, **kwargs)
                    state.finish()
                    current_session("run").end()
                    return result
                except (NewRanks, DistBackendError, plait_abi.PlaitError, TimeoutError) as error:
                    reason = _world.default_group("run").explain_wait(error)
                    if not _is_loss(reason):
                        raise
                    current_session("run").note_loss(reason)
                    # tensors and groups of the steps that failed
                    traceback.clear_frames(error.__traceback__)
        except BaseException:
            current_session("run").close_door()
            if _world.is_initialized():
                _world.destroy_process_group()  # so that the others notice at once
            raise

    return running


def _is_loss(error: BaseException) -> bool:
    """Whether an error says that ranks were lost, or came."""
    if isinstance(error, (NewRanks, RankLost, CollectiveTimeout)):
        return True
    return isinstance(error, DistBackendError) and error.failure in ("lost", "timed_out")
