"""The state of an elastic training: each commit copies it, and a lost rank restores the copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from plait_distributed._arguments import core
from plait_distributed._errors import DistError
from plait_distributed._process_group import ProcessGroup
from plait_distributed._world import default_group
from plait_distributed.elastic._copies import Copy
from plait_distributed.elastic._session import Session, current_session
from plait_distributed.elastic._shards import divided
from plait_distributed.elastic._snapshots import Snapshot, Source, choose


class StateLost(DistError):
    """Shards were lost with all their copies: the training must begin again from a checkpoint."""


class NewRanks(Exception):
    """Ranks wait to take part; raised by `State.commit` and caught by `run`."""


class State:
    """The objects and values that a training changes.

    Each argument becomes an attribute of the state: objects with ``state_dict`` and
    ``load_state_dict`` (models, optimizers, schedulers, `Batches`), generators, and values that can
    be pickled, such as numbers, lists and tensors. They are the same on all ranks, except models
    behind `fully_shard` and their optimizers, and objects with ``shard_state()`` and
    ``load_shards(iterator)`` (`ZeroRedundancyOptimizer`): each rank has a share of these, and
    another rank has a copy of the share. Objects with ``regroup(group)``
    (`DistributedDataParallel`) get each new group.

    Args:
        every: copy the state at every n-th commit only.
        **entries: the objects and values.

    Example:
        >>> import plait_distributed as dist, plait_nn as nn
        >>> from plait_distributed import elastic
        >>> elastic.init_process_group(init_method="shm:state", rank=0, world_size=1)
        >>> state = elastic.State(model=nn.Linear(1, 1), step=0)
        >>> @elastic.run
        ... def train(state):
        ...     while state.step < 3:
        ...         state.step += 1
        ...         state.commit()
        ...     return state.step
        >>> train(state)
        3
        >>> dist.destroy_process_group()
    """

    _entries: dict[str, Any]
    _every: int
    _commits: int
    _finished: bool
    _snapshots: list[Snapshot]  # the newest first
    _callbacks: list[Callable[[], Any]]
    _shares: dict[str, tuple[Any, Any]]  # of each entry: the object, and the result of `divided`

    def __init__(self, every: int = 1, **entries: Any) -> None:
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise ValueError(f"State: `every` must be a positive int, got {every!r}")
        hidden = [name for name in entries if name.startswith("_") or hasattr(State, name)]
        if hidden:
            raise ValueError(f"State: an entry cannot be called {hidden[0]!r}")
        own = {"_every": every, "_commits": 0, "_finished": False, "_snapshots": []}
        self.__dict__.update(own, _entries=dict(entries), _callbacks=[], _shares={})

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_entries"][name]
        except KeyError:
            raise AttributeError(f"State has no entry {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__:
            self.__dict__[name] = value
        elif name.startswith("_") or hasattr(State, name):
            raise AttributeError(f"State: an entry cannot be called {name!r}")
        else:
            self._entries[name] = value

    @property
    def commits(self) -> int:
        """The number of commits since the training began."""
        return self._commits

    def register_reset_callbacks(self, callbacks: list[Callable[[], Any]]) -> None:
        """Call functions after each change of the ranks, when the state is loaded."""
        self._callbacks.extend(callbacks)

    def commit(self) -> None:
        """Copy the state as it is now: after a loss, training continues from here.

        All ranks call it after the same number of steps, where the state is the same on all. If
        there are fewer ranks than at first and new ones wait, they join here.
        """
        self._commits += 1
        is_due = self._commits % self._every == 0
        if is_due:
            self._take_snapshot()
        session, group = current_session("commit"), default_group("commit")
        if group.size() < session.terms.size and self._someone_waits(session, group):
            if not is_due:
                self._take_snapshot()
            self._snapshots[0].wait()
            raise NewRanks

    def _someone_waits(self, session: Session, group: ProcessGroup) -> bool:
        new = core()
        flag = new.tensor([int(session.is_someone_waiting())])
        call = group.begin_call("elastic commit", "", (flag,))
        group.start(call, "all_reduce", [flag], [flag], reduction="max")
        return bool(flag.item())

    # ---- copies ----------------------------------------------------------------------------------

    def _sharded(self) -> dict[str, Any]:
        for name, entry in self._entries.items():
            if name not in self._shares or self._shares[name][0] is not entry:
                self._shares[name] = (entry, divided(name, entry))
        return {name: self._shares[name][1] for name in self._entries if self._shares[name][1]}

    def _replicated(self) -> dict[str, Any]:
        sharded = self._sharded()
        values = {name: _read(x) for name, x in self._entries.items() if name not in sharded}
        return {"commits": self._commits, "entries": values}

    def _take_snapshot(self) -> None:
        """Take a snapshot."""
        session, group = current_session("commit"), default_group("commit")
        shards = {name: x.shard_state() for name, x in self._sharded().items()}
        # a snapshot with shards is complete when another rank has a copy, so keep the one before it
        recent = self._snapshots[: 1 if shards else 0]
        old = self._snapshots[len(recent) : len(recent) + 1] or [Snapshot()]
        for snapshot in recent:
            snapshot.wait()
        if shards:  # no rank overwrites the snapshot before until that is complete on all ranks
            group.start(group.begin_call("elastic copies", "", ()), "barrier")
        old[0].take((session.generation, self._commits), self._replicated(), shards, group)
        self._snapshots = [old[0], *recent]

    def _load(self, copy: Copy) -> None:
        state = copy.thing()
        self._commits = state["commits"]
        for name, value in state["entries"].items():
            self._entries[name] = _write(self._entries.get(name), value)
        for entry in self._entries.values():
            if hasattr(entry, "zero_grad"):
                entry.zero_grad()

    # ---- what `run` does -------------------------------------------------------------------------

    def meet(self) -> None:
        """Meet the ranks that are left, and those that are new."""
        session = current_session("run")
        if session.generation < 0 and not self._snapshots:
            self._take_snapshot()  # if all ranks are new, they begin from that of the first rank
        for snapshot in self._snapshots:
            snapshot.give_up()
        names = [snapshot.name for snapshot in self._snapshots]
        shards = [shard for snapshot in self._snapshots for shard in snapshot.shards()]
        session.meet(names, shards, self._finished)

    def take_over(self) -> None:
        """Continue in the new group, from the newest state that is whole."""
        session, group = current_session("run"), default_group("run")
        sharded = self._sharded()
        for name, entry in self._entries.items():
            member = sharded.get(name, entry)
            if hasattr(member, "regroup"):
                member.regroup(group)
        source = choose(session.members)
        if source is None:
            raise StateLost(
                "elastic: a rank was lost together with the one that had the copy of its shard; "
                "begin again from a checkpoint"
            )
        self._restore(source, group)
        for callback in self._callbacks:
            callback()

    def _restore(self, source: Source, group: ProcessGroup) -> None:
        own_snapshot = next((s for s in self._snapshots if s.name == source.name), None)
        copy = own_snapshot.replicated if own_snapshot is not None else Copy()
        if len(source.holders) < group.size():
            received = copy if group.rank() == source.holders[0] else Copy()
            received.broadcast(group, source.holders[0])
            copy = copy if own_snapshot is not None else received
        self._load(copy)
        for name, entry in self._sharded().items():
            entry.load_shards(self._shards_of(source, name, group))
        # the next snapshot may fail too, so keep the one that was restored until it is complete
        self._snapshots = [] if own_snapshot is None else [own_snapshot]
        self._take_snapshot()
        self._snapshots[0].wait()

    def _shards_of(self, source: Source, name: str, group: ProcessGroup) -> Iterator[Any]:
        """Yield the shards of an object, in the order of the ranks that saved them."""
        for rank, owner in enumerate(source.owners):
            copy = Copy()
            if group.rank() == owner:
                copy = next(
                    snapshot.shard_of(rank, name)
                    for snapshot in self._snapshots
                    if (*source.name, rank, source.size) in snapshot.shards()
                )
            copy.broadcast(group, owner)
            yield copy.thing()

    def finish(self) -> None:
        """Wait until all ranks have come to the end of the training."""
        self._finished = True
        group = default_group("run")
        group.start(group.begin_call("elastic end", "", ()), "barrier")


def _read(thing: Any) -> Any:
    """Return the value of an entry that a snapshot copies."""
    if hasattr(thing, "load_state_dict"):
        return thing.state_dict()
    if isinstance(thing, core().Generator):
        return thing.get_state()
    return thing


def _write(thing: Any, value: Any) -> Any:
    """Restore an entry from its copied value; return the entry."""
    if hasattr(thing, "load_state_dict"):
        thing.load_state_dict(value)
    elif isinstance(thing, core().Generator):
        thing.set_state(value)
    else:
        return value
    return thing
