"""Ranks with unequal numbers of batches: `Join`."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

from plait_abi.frames import warn
from plait_distributed._arguments import core
from plait_distributed._process_group import ProcessGroup

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """The work of a rank without further batches for the ranks that continue.

    Example:
        >>> from plait_distributed.algorithms.join import JoinHook
        >>> JoinHook().main_hook()
    """

    def main_hook(self) -> None:
        """Called for each iteration of the ranks that continue: it calls their collectives."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called when all ranks have used up their batches."""


class Joinable:
    """The base class of objects that take part in `Join`.

    An object calls `Join.notify_join_context` once in each iteration, before its collectives.

    Example:
        >>> from plait_distributed.algorithms.join import Joinable
        >>> from plait_distributed import DistributedDataParallel
        >>> issubclass(DistributedDataParallel, Joinable)
        True
    """

    _join: Join | None = None

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return what a rank does that has used up its batches."""
        raise NotImplementedError(f"{type(self).__name__}: define join_hook")

    @property
    def join_device(self) -> Any:
        """The device of its collectives."""
        return core().device("cpu")

    @property
    def join_process_group(self) -> ProcessGroup:
        """The group of its collectives."""
        raise NotImplementedError(f"{type(self).__name__}: define join_process_group")


class Join:
    """A context manager within which ranks may have unequal numbers of batches.

    A rank that leaves the loop continues to call the collectives of the others until all have left;
    it contributes zeros to gradients. Then parameters and buffers become those of a rank that
    trained longest.

    Args:
        joinables: such as `DistributedDataParallel`; the first one counts iterations.
        enable: False: nothing happens, for ranks that are known to have as many batches.
        throw_on_early_termination: raise on all ranks when the first has used up its batches.
        **kwargs: for the `join_hook` of the joinables: `divide_by_initial_world_size`, whether
            gradients are divided by the number of all ranks, or by the number of those that
            continue.

    Raises:
        RuntimeError: with `throw_on_early_termination`, on all ranks.
        ValueError: the joinables are not of one group.

    Example:
        >>> import plait_core as pc, plait_nn as nn, plait_distributed as dist
        >>> from plait_distributed.algorithms.join import Join
        >>> dist.init_process_group(init_method="shm:join", rank=0, world_size=1)
        >>> model = dist.DistributedDataParallel(nn.Linear(1, 1))
        >>> with Join([model]):
        ...     for batch in (pc.ones(2, 1), pc.ones(3, 1)):
        ...         model(batch).sum().backward()
        >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        joinables: Sequence[Joinable],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if not joinables:
            raise ValueError("Join: `joinables` must not be empty")
        groups = [each.join_process_group for each in joinables]
        if any(group is not groups[0] for group in groups):
            raise ValueError("Join: the joinables must have one process group")
        self._joinables = list(joinables)
        self._group = groups[0]
        self._enabled = enable
        self._throws = throw_on_early_termination
        self._hooks = [each.join_hook(**kwargs) for each in joinables] if enable else []

    def __enter__(self) -> None:
        if self._enabled:
            for each in self._joinables:
                each._join = self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._enabled:
            return
        for each in self._joinables:
            each._join = None
        if error is not None:
            return
        last, iterations = True, 0
        while True:
            if self._active(False) == 0:
                break
            if self._throws:
                self._raise()
            for hook in self._hooks:
                hook.main_hook()
            last, iterations = False, iterations + 1
            if iterations == 1000:
                warn("Join: this rank had 1000 batches less than another; divide the data evenly")
        for hook in self._hooks:
            hook.post_hook(last)

    @staticmethod
    def notify_join_context(joinable: Joinable) -> None:
        """Tell the other ranks that this rank begins an iteration."""
        context = joinable._join
        if context is None or context._joinables[0] is not joinable:
            return
        if context._active(True) < context._group.size() and context._throws:
            context._raise()

    def _active(self, own: bool) -> int:
        """Return how many ranks begin an iteration."""
        new = core()
        count = new.tensor([int(own)], dtype=new.int64)
        call = self._group.begin_call("Join", "", (count,))
        self._group.start(call, "all_reduce", [count], [count])
        return int(count.item())

    def _raise(self) -> None:
        raise RuntimeError(
            "Join: a rank has used up its batches, and throw_on_early_termination is set"
        )
