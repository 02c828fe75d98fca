"""Optimizers whose state is divided among the ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from plait_abi.components import require
from plait_distributed._arguments import core
from plait_distributed._objects import all_gather_object
from plait_distributed._process_group import ProcessGroup
from plait_distributed._world import member_of

__all__ = ["PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]

_Optimizer: Any = require("optim").Optimizer
_BUCKET_BYTES = 25 << 20  # bytes of parameters that are broadcast together


class ZeroRedundancyOptimizer(_Optimizer):  # type: ignore[misc]
    """An optimizer whose state is divided: each rank holds it only for its share of the parameters.

    A step updates the share on each rank; then each rank broadcasts its parameters. The
    gradients must be the same on all ranks, as behind `DistributedDataParallel`. So Adam's two
    moments take 1/N of their memory on each of N ranks.

    Args:
        params: parameters, or groups of them, the same on all ranks.
        optimizer_class: the optimizer of the share, such as ``plait.optim.Adam``.
        process_group: None: all processes.
        parameters_as_bucket_view: unused.
        overlap_with_ddp: False.
        **defaults: the options of `optimizer_class`.

    Raises:
        NotImplementedError: with `overlap_with_ddp`.

    Reference:
        Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
        2020; its first stage.

    Example:
        >>> import plait_core as pc, plait_nn as nn, plait_optim, plait_distributed as dist
        >>> from plait_distributed.optim import ZeroRedundancyOptimizer
        >>> dist.init_process_group(init_method="shm:zero", rank=0, world_size=1)
        >>> model = dist.DistributedDataParallel(nn.Linear(2, 1))
        >>> optimizer = ZeroRedundancyOptimizer(model.parameters(), plait_optim.Adam, lr=0.1)
        >>> model(pc.ones(3, 2)).sum().backward()
        >>> optimizer.step()
        >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: Callable[..., Any],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError(
                "ZeroRedundancyOptimizer: `overlap_with_ddp` must be False: steps that overlap "
                "with the backward pass are not supported"
            )
        group = member_of("ZeroRedundancyOptimizer", process_group)
        if group is None:
            raise ValueError("ZeroRedundancyOptimizer: this process is not a member of the group")
        self.process_group: ProcessGroup = group
        self.optim: Any = None
        self._class, self._options = optimizer_class, defaults
        self._owner: dict[int, int] = {}  # of each parameter, by its id
        self._loads = [0] * group.size()
        self._whole: dict[str, Any] | None = None
        super().__init__(params, defaults)
        self.optim = self._make_optimizer()
        for own, group in zip(self.optim.param_groups, self.param_groups, strict=True):
            group.update({name: value for name, value in own.items() if name != "params"})
        self.defaults = dict(self.optim.defaults)

    def _share(self, group: dict[str, Any]) -> list[Any]:
        """Return the parameters of a group that this rank updates."""
        rank = self.process_group.rank()
        return [p for p in group["params"] if self._owner[id(p)] == rank]

    def _make_optimizer(self) -> Any:
        """Return the optimizer of this rank's share."""
        groups = [
            {**{k: v for k, v in group.items() if k != "params"}, "params": self._share(group)}
            for group in self.param_groups
        ]
        if not any(group["params"] for group in groups):  # more ranks than parameters
            empty = core().zeros(0, requires_grad=True)
            groups[0]["params"] = [empty]
        return self._class(groups, **self._options)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group; its parameters go to the ranks that have least, the largest first."""
        super().add_param_group(param_group)
        self._divide(self.param_groups[-1]["params"])
        if self.optim is not None:
            group = self.param_groups[-1]
            options = {k: v for k, v in group.items() if k != "params"}
            self.optim.add_param_group({**options, "params": self._share(group)})

    def _divide(self, parameters: list[Any]) -> None:
        for p in sorted(parameters, key=lambda p: -p.numel() * p.element_size()):
            rank = self._loads.index(min(self._loads))
            self._owner[id(p)] = rank
            self._loads[rank] += p.numel() * p.element_size()

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Update this rank's share, and receive the other ranks' parameters."""
        for own, group in zip(self.optim.param_groups, self.param_groups, strict=True):
            own.update({name: value for name, value in group.items() if name != "params"})
        result = self.optim.step(closure, **kwargs) if closure else self.optim.step(**kwargs)
        with require("autograd").no_grad():
            self._broadcast_parameters()
        return result

    def _broadcast_parameters(self) -> None:
        """Broadcast every parameter from the rank that updated it, many at once."""
        group = self.process_group
        if group.size() == 1:
            return
        works = []
        for root in range(group.size()):
            owned = [p for p in self._parameters() if self._owner[id(p)] == root]
            by_dtype: dict[Any, list[Any]] = {}
            for p in owned:
                by_dtype.setdefault(p.dtype, []).append(p.detach())
            for tensors in by_dtype.values():
                works += [self._start_broadcast(bucket, root) for bucket in _buckets(tensors)]
        for part, tensors, dense in works:
            part.wait()
            for tensor, each in zip(tensors, dense, strict=True):
                if each.data_ptr() != tensor.data_ptr():
                    tensor.copy_(each)

    def _start_broadcast(self, tensors: list[Any], root: int) -> tuple[Any, list[Any], list[Any]]:
        dense = [tensor.contiguous() for tensor in tensors]
        call = self.process_group.begin_call("ZeroRedundancyOptimizer", f"src={root}", dense)
        part = self.process_group.start(
            call, "broadcast", dense, dense, peer=root, asynchronous=True
        )
        return part, tensors, dense

    def _parameters(self) -> list[Any]:
        return [p for group in self.param_groups for p in group["params"]]

    def shard_state(self) -> dict[str, Any]:
        """Return the state of this rank's share, for `load_shards` in any number of ranks."""
        numbers = {id(p): i for i, p in enumerate(self._parameters())}
        state = {
            numbers[id(p)]: dict(value)
            for p, value in self.optim.state.items()
            if id(p) in numbers and value
        }
        options = [
            {name: value for name, value in group.items() if name != "params"}
            for group in self.param_groups
        ]
        return {"state": state, "param_groups": options}

    def load_shards(self, shards: Iterable[dict[str, Any]]) -> None:
        """Load this rank's share from results of `shard_state` on any number of ranks."""
        every, rank = self._parameters(), self.process_group.rank()
        state: dict[int, Any] = {}
        options: list[dict[str, Any]] = []
        for shard in shards:
            options = shard["param_groups"]
            for number, value in shard["state"].items():
                if self._owner[id(every[number])] == rank:
                    state[number] = value
        self.load_state_dict({"state": state, "param_groups": options})

    def regroup(self, process_group: Any = None) -> None:
        """Divide the parameters again, among the ranks of another group; their state begins empty.

        Args:
            process_group: None: all processes.
        """
        group = member_of("ZeroRedundancyOptimizer", process_group)
        if group is None:
            raise ValueError("ZeroRedundancyOptimizer: this process is not a member of the group")
        self.process_group, self._whole = group, None
        self._loads = [0] * group.size()
        for each in self.param_groups:
            self._divide(each["params"])
        self.optim = self._make_optimizer()

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Send the state of all ranks to one rank, for `state_dict` there. All ranks call it.

        Args:
            to: a rank of the group.
        """
        numbers = {id(p): i for i, p in enumerate(self._parameters())}
        states: list[Any] = [None] * self.process_group.size()
        all_gather_object(states, self.shard_state()["state"], self.process_group)
        if self.process_group.rank() != to:
            return
        state = {number: value for part in states for number, value in part.items()}
        groups = [
            {
                **{name: value for name, value in group.items() if name != "params"},
                "params": [numbers[id(p)] for p in group["params"]],
            }
            for group in self.param_groups
        ]
        self._whole = {"state": dict(sorted(state.items())), "param_groups": groups}

    def state_dict(self) -> dict[str, Any]:
        """Return the state that `consolidate_state_dict` brought here, in PyTorch's layout.

        Raises:
            RuntimeError: it was not called, or brought it to another rank.
        """
        if self._whole is None:
            raise RuntimeError(
                "ZeroRedundancyOptimizer.state_dict: call consolidate_state_dict() on all ranks "
                "first; the state is on the rank `to` then"
            )
        whole, self._whole = self._whole, None
        return whole

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the state of all parameters; this rank keeps the part for its share.

        Args:
            state_dict: what `state_dict` returned, also of another number of ranks.
        """
        every, rank = self._parameters(), self.process_group.rank()
        for group, saved in zip(self.param_groups, state_dict["param_groups"], strict=True):
            group.update({name: value for name, value in saved.items() if name != "params"})
        shares = [self._share(group) for group in self.param_groups]
        numbers = {id(p): i for i, p in enumerate(every)}
        within: dict[int, int] = {}
        for share in shares:
            for p in share:
                within[numbers[id(p)]] = len(within)
        groups = []
        for group, share in zip(self.param_groups, shares, strict=True):
            options = {name: value for name, value in group.items() if name != "params"}
            groups.append({**options, "params": [within[numbers[id(p)]] for p in share]})
        if not within:
            return
        state = {
            within[number]: value
            for number, value in state_dict["state"].items()
            if number in within and self._owner[id(every[number])] == rank
        }
        self.optim.load_state_dict({"state": state, "param_groups": groups})


def _buckets(tensors: list[Any]) -> list[list[Any]]:
    parts: list[list[Any]] = [[]]
    nbytes = 0
    for tensor in tensors:
        if nbytes >= _BUCKET_BYTES:
            parts.append([])
            nbytes = 0
        parts[-1].append(tensor)
        nbytes += tensor.numel() * tensor.element_size()
    return parts


class PostLocalSGDOptimizer(_Optimizer):  # type: ignore[misc]
    """An optimizer that averages the parameters over the ranks after some of its steps.

    Use it with `post_localSGD_hook` of `DistributedDataParallel`, which reduces gradients over
    few ranks.

    Args:
        optim: the optimizer.
        averager: a `PeriodicModelAverager`, whose iterations are saved with the state.

    Example:
        >>> import plait_nn as nn, plait_optim, plait_distributed as dist
        >>> from plait_distributed.algorithms.model_averaging.averagers import (
        ...     PeriodicModelAverager
        ... )
        >>> from plait_distributed.optim import PostLocalSGDOptimizer
        >>> dist.init_process_group(init_method="shm:local", rank=0, world_size=1)
        >>> optimizer = plait_optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1)
        >>> optimizer = PostLocalSGDOptimizer(optimizer, PeriodicModelAverager(period=4))
        >>> optimizer.step()
        >>> dist.destroy_process_group()
    """

    def __init__(self, optim: Any, averager: Any) -> None:
        self.optim = optim
        self.averager = averager
        self.param_groups = optim.param_groups
        self.defaults = optim.defaults

    @property
    def state(self) -> Any:
        """The optimizer's state."""
        return self.optim.state

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make a step; the averager averages the parameters if its period is over."""
        result = self.optim.step(closure) if closure else self.optim.step()
        self.averager.average_parameters(self.param_groups)
        return result

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients."""
        self.optim.zero_grad(set_to_none=set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters."""
        self.optim.add_param_group(param_group)

    def state_dict(self) -> dict[str, Any]:
        """Return the optimizer's state and the number of iterations."""
        state: dict[str, Any] = self.optim.state_dict()
        state["step"] = self.averager.step
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` returned."""
        self.optim.load_state_dict(state_dict)
        self.averager.step = state_dict.get("step", 0)

    def __repr__(self) -> str:
        return repr(self.optim)
