"""State that is divided among the ranks: collected, and divided again for other numbers of
ranks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from plait_abi.components import require
from plait_distributed._arguments import core
from plait_distributed._process_group import ProcessGroup
from plait_distributed.device_mesh import DeviceMesh
from plait_distributed.fsdp._fully_shard import FSDPModule
from plait_distributed.fsdp._state import ShardedState
from plait_distributed.fsdp._wrapper import FullyShardedDataParallel
from plait_distributed.tensor._dtensor import DTensor, wrap_local
from plait_distributed.tensor.placement_types import Shard, shard_bounds

_Module: Any = require("nn").Module


class Divided(Protocol):
    """An object of which each rank has a share.

    A share is a dictionary that can be copied; shares of all ranks, in their order, are loaded by
    any number of ranks.
    """

    def shard_state(self) -> dict[str, Any]:
        """Return this rank's share."""

    def load_shards(self, shards: Iterable[dict[str, Any]]) -> None:
        """Take this rank's share from those of all ranks of another time."""


class _Rows:
    """This rank's rows of tensors by name, filled from the rows of the ranks of another time."""

    def __init__(self, rank: int, size: int) -> None:
        self._rank, self._size = rank, size

    def fill(self, own: Any, shape: tuple[int, ...], rank: int, size: int, argument: Any) -> None:
        """Copy what of another rank's rows this rank has."""
        first, n = shard_bounds(shape[0], self._size, self._rank)
        other, m = shard_bounds(shape[0], size, rank)
        begin, end = max(first, other), min(first + n, other + m)
        if begin < end:
            own[begin - first : end - first].copy_(argument[begin - other : end - other])

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return room for this rank's rows of a tensor."""
        _, n = shard_bounds(shape[0], self._size, self._rank)
        return core().zeros((n, *shape[1:]), dtype=dtype)


def _rows_of(label: str, value: DTensor) -> tuple[tuple[int, ...], Any]:
    if value.placements != (Shard(0),):
        raise NotImplementedError(
            f"elastic.State: {label} is a DTensor with {value.placements}; of those on one "
            "dimension of ranks, divided by rows as `fully_shard` divides them, copies are kept"
        )
    return tuple(value.shape), value.detach().local()


class _Model:
    """A module with `fully_shard` inside: rows of parameters, and this rank's buffers."""

    def __init__(self, name: str, module: Any) -> None:
        self._name = name
        self._module = module
        self._states = sharded_states(module)
        for state in self._states:
            if state.group is not None and state.group.mesh.ndim != 1:
                raise NotImplementedError(
                    f"elastic.State: the parameters of {name!r} are sharded over a mesh of two "
                    "dimensions; after a loss, one of a single dimension alone can be made anew"
                )

    def _entries(self) -> dict[str, Any]:
        for state in self._states:
            if state.group is not None:
                state.group.reshard()
        if isinstance(self._module, FullyShardedDataParallel):
            return self._module._sharded_state_dict()
        result: dict[str, Any] = self._module.state_dict()
        return result

    def shard_state(self) -> dict[str, Any]:
        """Return this rank's rows, and what each rank has for itself."""
        group = self._group()
        rows, rest = {}, {}
        for key, value in self._entries().items():
            if isinstance(value, DTensor):
                rows[key] = _rows_of(f"{key} of {self._name!r}", value)
            else:
                rest[key] = value
        return {"rank": group.rank(), "size": group.size(), "rows": rows, "rest": rest}

    def _group(self) -> ProcessGroup:
        return next(state.group.group for state in self._states if state.group is not None)

    def load_shards(self, shards: Iterable[dict[str, Any]]) -> None:
        """Take this rank's rows, and the buffers of the rank that was at its place."""
        group = self._group()
        rank, size = group.rank(), group.size()
        rows, rest = _Rows(rank, size), {}
        own = {k: v.detach().local() for k, v in self._entries().items() if isinstance(v, DTensor)}
        with require("autograd").no_grad():
            for shard in shards:
                for key, (shape, argument) in shard["rows"].items():
                    rows.fill(own[key], shape, shard["rank"], shard["size"], argument)
                if shard["rank"] == rank * shard["size"] // size:
                    rest = shard["rest"]
            self._module.load_state_dict(rest, strict=False)

    def regroup(self, group: ProcessGroup) -> None:
        """Divide the parameters among the ranks of another group."""
        mesh = DeviceMesh("cpu", list(group.ranks))
        for each in self._module.modules():
            if isinstance(each, FSDPModule):
                each._fsdp.regroup(mesh)
            elif isinstance(each, FullyShardedDataParallel):
                each.process_group = group


class _State:
    """An optimizer of such a module: its state's rows."""

    def __init__(self, name: str, optimizer: Any) -> None:
        self._name = name
        self._optimizer = optimizer
        self._parameters = [p for group in optimizer.param_groups for p in group["params"]]
        self._one = next(p for p in self._parameters if isinstance(p, DTensor))

    def shard_state(self) -> dict[str, Any]:
        """Return the rows of this rank's parameters, and the options."""
        mesh = self._one.device_mesh
        result = self._optimizer.state_dict()
        rows: dict[int, Any] = {}
        rest: dict[int, Any] = {}
        for number, values in result["state"].items():
            for key, value in values.items():
                if isinstance(value, DTensor):
                    label = f"{key} of parameter {number} of {self._name!r}"
                    rows.setdefault(number, {})[key] = _rows_of(label, value)
                else:
                    rest.setdefault(number, {})[key] = value
        return {
            "rank": mesh.get_local_rank(),
            "size": mesh.size(),
            "rows": rows,
            "rest": rest,
            "param_groups": result["param_groups"],
        }

    def load_shards(self, shards: Iterable[dict[str, Any]]) -> None:
        """Take the rows of this rank's parameters."""
        mesh = self._one.device_mesh
        rows = _Rows(mesh.get_local_rank(), mesh.size())
        state: dict[int, dict[str, Any]] = {}
        options: Any = None
        for shard in shards:
            options = shard["param_groups"]
            for number, values in shard["rest"].items():
                state.setdefault(number, {}).update(values)
            for number, values in shard["rows"].items():
                own = state.setdefault(number, {})
                for key, (shape, argument) in values.items():
                    if key not in own:
                        local = rows.empty(shape, argument.dtype)
                        own[key] = wrap_local(local, mesh, (Shard(0),), shape)
                    place = own[key].local()
                    rows.fill(place, shape, shard["rank"], shard["size"], argument)
        self._optimizer.load_state_dict({"state": state, "param_groups": options})


def sharded_states(model: Any) -> list[ShardedState]:
    """Return what `fully_shard` keeps of a module and those inside; [] of anything else."""
    if not isinstance(model, _Module):
        return []
    return [each._fsdp for each in model.modules() if isinstance(each, FSDPModule)]


def divided(name: str, entry: Any) -> Divided | None:
    """Return the `Divided` of an entry of a state; None if it is the same on all ranks."""
    if hasattr(entry, "load_shards"):
        result: Divided = entry
        return result
    if any(state.group is not None for state in sharded_states(entry)):
        return _Model(name, entry)
    groups = getattr(entry, "param_groups", ())
    if any(isinstance(p, DTensor) for group in groups for p in group["params"]):
        return _State(name, entry)
    return None


@contextlib.contextmanager
def kept_whole(model: Any, last: bool) -> Iterator[None]:
    """The context of a part of a batch of which some ranks compute more parts than others.

    All ranks gather the parameters of a sharded model at their first part, keep them whole, and
    reduce the gradients at their last one: so their collectives are the same.
    """
    states = sharded_states(model)
    flags = [(s.reshard_after_forward, s.reshard_after_backward, s.syncs) for s in states]
    for each in states:
        each.reshard_after_forward = False
        each.reshard_after_backward = each.syncs = last
    try:
        yield
    finally:
        for each, before in zip(states, flags, strict=True):
            each.reshard_after_forward, each.reshard_after_backward, each.syncs = before
