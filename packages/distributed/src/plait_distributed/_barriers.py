"""Barriers."""

from __future__ import annotations

from typing import Any

from plait_distributed._arguments import member_for
from plait_distributed._work import Work, seconds_of


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait until all ranks have called it.

    Args:
        group: None: all processes.
        async_op: whether to return a `Work` at once.
        device_ids: unused.

    Raises:
        MismatchError, RankLost, CollectiveTimeout: as `all_reduce`.

    Example:
        >>> import plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:barrier", rank=0, world_size=1)
        >>> dist.barrier()
        >>> dist.destroy_process_group()
    """
    member = member_for("barrier", group)
    if member is None:
        return None
    call = member.begin_call("barrier", "", ())
    return member.run(call, "barrier", (), (), asynchronous=async_op)


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Wait until all ranks have called it; the error names those that did not come in time.

    Args:
        group: None: all processes.
        timeout: seconds or a `datetime.timedelta`; None: the group's.
        wait_all_ranks: unused: all ranks that did not come are named in any case.

    Raises:
        CollectiveTimeout: some did not come; the group is broken then.
        MismatchError, RankLost: as `all_reduce`.

    Example:
        >>> import plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:monitored", rank=0, world_size=1)
        >>> dist.monitored_barrier(timeout=5)
        >>> dist.destroy_process_group()
    """
    member = member_for("monitored_barrier", group)
    if member is None:
        return
    seconds = 0.0 if timeout is None else seconds_of("monitored_barrier", timeout)
    call = member.begin_call("monitored_barrier", "", ())
    member.start(call, "barrier", timeout=seconds)
