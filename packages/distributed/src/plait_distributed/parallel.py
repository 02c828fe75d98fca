"""Data-parallel training: one model in many processes, one step for all."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from plait_abi.components import require
from plait_distributed._arguments import core
from plait_distributed._buckets import GradBucket
from plait_distributed._casting import casting
from plait_distributed._errors import MismatchError
from plait_distributed._futures import Future
from plait_distributed._objects import all_gather_object
from plait_distributed._process_group import ProcessGroup
from plait_distributed._reducer import Reducer
from plait_distributed._world import default_group
from plait_distributed.algorithms.ddp_comm_hooks.default_hooks import compressing
from plait_distributed.algorithms.join import Join, Joinable, JoinHook

__all__ = ["DistributedDataParallel"]

_Module: Any = require("nn").Module
_BUFFER_BYTES = 25 << 20  # of the parameters that are broadcast at once


class _ShadowHook(JoinHook):
    """The part of a rank without batches in the passes of the others."""

    def __init__(self, parallel: DistributedDataParallel, by_all: bool) -> None:
        self._parallel = parallel
        parallel.reducer.join(by_all)

    def main_hook(self) -> None:
        self._parallel._shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        self._parallel.reducer.unjoin()
        self._parallel._become_the_last(is_last_joiner)


class DistributedDataParallel(_Module, Joinable):  # type: ignore[misc]
    """A module whose gradients are the means over all processes.

    Every process has the module, with the parameters and buffers of rank 0, and computes the
    gradients of its part of a batch. While the backward pass runs they are reduced in buckets; when
    it returns, every process has the gradients of the mean of all losses, with the same bits. So an
    optimizer in each process takes the same step.

    Args:
        module: the module; its parameters have the same names and shapes on all ranks.
        device_ids, output_device: None, or the one device on which the module is.
        dim: unused.
        broadcast_buffers: whether buffers become those of rank 0 at each forward call.
        init_sync: whether parameters and buffers become those of rank 0 now.
        process_group: None: all processes.
        bucket_cap_mb: MiB of a bucket, 25 by default; the first one has 1.
        find_unused_parameters: whether passes may leave out parameters. One that no rank used keeps
            the gradient that it had.
        check_reduction: unused.
        gradient_as_bucket_view: unused: gradients always lie in the buckets.
        static_graph: that every pass uses the same parameters.
        mixed_precision: a `MixedPrecision`: the module computes in `param_dtype`, with parameters
            that are cast at each call, and gradients travel in `reduce_dtype`; both are added to
            what lies in the parameters' own dtype.
        device_mesh: in place of `process_group`, a mesh of one dimension.
        delay_all_reduce_named_params, param_to_hook_all_reduce: None.
        skip_all_reduce_unused_params: False.

    State has the names of the module behind ``module.``. Hooks and derived modules of the inner
    module work as they do without it.

    Raises:
        ValueError: no process group, or no parameter that requires grad.
        MismatchError: ranks have other parameters.
        NotImplementedError: an argument that is not there.

    Reference:
        Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", 2020.

    Example:
        >>> import plait_core as pc, plait_nn as nn, plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:ddp", rank=0, world_size=1)
        >>> model = dist.DistributedDataParallel(nn.Linear(2, 1, bias=False))
        >>> model(pc.ones(3, 2)).sum().backward()
        >>> list(model.state_dict()), model.module.weight.grad.tolist()
        (['module.weight'], [[3.0, 3.0]])
        >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        module: Any,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
    ) -> None:
        super().__init__()
        _refuse(
            delay_all_reduce_named_params=delay_all_reduce_named_params,
            param_to_hook_all_reduce=param_to_hook_all_reduce,
            skip_all_reduce_unused_params=skip_all_reduce_unused_params or None,
        )
        if device_mesh is not None:
            if process_group is not None:
                raise ValueError(
                    "DistributedDataParallel: give `process_group` or `device_mesh`, not both"
                )
            process_group = device_mesh.get_group()
        self.process_group = _group(process_group)
        self.mixed_precision = mixed_precision
        self.module = module
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = self._named()
        if not named:
            raise ValueError(
                "DistributedDataParallel: `module` must have a parameter that requires grad"
            )
        _check_devices(self.process_group, named, device_ids)
        cap = 25.0 if bucket_cap_mb is None else float(bucket_cap_mb)
        if not cap > 0:
            raise ValueError(
                f"DistributedDataParallel: `bucket_cap_mb` must be positive, got {bucket_cap_mb}"
            )
        self.device_ids = None
        self.output_device = None
        self.dim = dim
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.bucket_bytes_cap = int(cap * (1 << 20))
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        _verify(self.process_group, named)
        if init_sync:
            self._broadcast([*(p for _, p in module.named_parameters()), *self._module_buffers()])
        self._has_comm_hook = False
        self._make_reducer()
        self._join = None

    def _module_buffers(self) -> list[Any]:
        ignored = self.parameters_to_ignore
        return [b for name, b in self.module.named_buffers() if name not in ignored]

    def _broadcast(self, tensors: Sequence[Any], root: int = 0) -> None:
        """Make tensors those of a rank, many at once."""
        group = self.process_group
        if group.size() == 1:
            return
        by_dtype: dict[Any, list[Any]] = {}
        for tensor in tensors:
            by_dtype.setdefault(tensor.dtype, []).append(tensor.detach())
        for same in by_dtype.values():
            some: list[Any] = []
            nbytes = 0
            for tensor in same:
                some.append(tensor)
                nbytes += tensor.numel() * tensor.element_size()
                if nbytes >= _BUFFER_BYTES or tensor is same[-1]:
                    self._broadcast_some(some, root)
                    some, nbytes = [], 0

    def _broadcast_some(self, tensors: list[Any], root: int) -> None:
        dense = [tensor.contiguous() for tensor in tensors]
        call = self.process_group.begin_call("DistributedDataParallel state", "", dense)
        self.process_group.start(call, "broadcast", dense, dense, peer=root)
        for tensor, each in zip(tensors, dense, strict=True):
            if each.data_ptr() != tensor.data_ptr():
                tensor.copy_(each)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module."""
        syncs = self.require_backward_grad_sync and require("autograd").is_grad_enabled()
        root = 0
        if self._join is not None and require("autograd").is_grad_enabled():
            Join.notify_join_context(self)
            root = self._told(True, syncs)[0]
        self.reducer.enabled = self.require_backward_grad_sync
        if syncs:
            self.reducer.prepare()
        if self.require_forward_param_sync and self.broadcast_buffers:
            with require("autograd").no_grad():
                self._broadcast(self._module_buffers(), root)
        self.require_forward_param_sync = self.require_backward_grad_sync
        if self.mixed_precision is None:
            return self.module(*inputs, **kwargs)
        with casting(self.module, self.mixed_precision) as cast:
            return self.module(*cast(inputs), **cast(kwargs))

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """A context manager in which passes only add to the gradients of this process.

        The first pass after it reduces what was added.

        Example:
            >>> import plait_core as pc, plait_nn as nn, plait_distributed as dist
            >>> dist.init_process_group(init_method="shm:no_sync", rank=0, world_size=1)
            >>> model = dist.DistributedDataParallel(nn.Linear(1, 1, bias=False))
            >>> with model.no_sync():
            ...     model(pc.ones(1, 1)).sum().backward()
            >>> model(pc.ones(1, 1)).sum().backward()
            >>> model.module.weight.grad.tolist()
            [[2.0]]
            >>> dist.destroy_process_group()
        """
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state: Any, hook: Callable[[Any, GradBucket], Future]) -> None:
        """Call a function in place of the mean over the ranks.

        Args:
            state: what the function gets first.
            hook: called as ``hook(state, bucket)`` with a `GradBucket` of this process's gradients,
                in one order of buckets on all ranks. It returns a `Future` of the reduced tensor.

        Raises:
            TypeError: the hook is not callable.
            RuntimeError: there is one already.

        Example:
            >>> import plait_core as pc, plait_nn as nn, plait_distributed as dist
            >>> from plait_distributed.algorithms.ddp_comm_hooks import default_hooks
            >>> dist.init_process_group(init_method="shm:hook", rank=0, world_size=1)
            >>> model = dist.DistributedDataParallel(nn.Linear(1, 1, bias=False))
            >>> model.register_comm_hook(None, default_hooks.fp16_compress_hook)
            >>> model(pc.ones(1, 1)).sum().backward()
            >>> model.module.weight.grad.tolist()
            [[1.0]]
            >>> dist.destroy_process_group()
        """
        if not callable(hook):
            raise TypeError(f"register_comm_hook: `hook` must be callable, got {hook!r}")
        if self._has_comm_hook:
            raise RuntimeError("register_comm_hook: there is a communication hook already")
        self._has_comm_hook = True
        self.reducer.register_comm_hook(state, hook)

    def regroup(self, process_group: Any = None) -> None:
        """Continue in another group, as after the loss of a rank.

        Buckets are made anew, and gradients that were being reduced are forgotten. Parameters and
        buffers stay as they are: it is for the caller to make them the same on all ranks.

        Args:
            process_group: None: all processes.

        Example:
            >>> import plait_nn as nn, plait_distributed as dist
            >>> dist.init_process_group(init_method="shm:one group", rank=0, world_size=1)
            >>> model = dist.DistributedDataParallel(nn.Linear(1, 1))
            >>> dist.destroy_process_group()
            >>> dist.init_process_group(init_method="shm:another", rank=0, world_size=1)
            >>> model.regroup()
            >>> dist.destroy_process_group()
        """
        self.process_group = _group(process_group)
        hook = self.reducer.comm_hook
        self.reducer.forget()
        self.module.zero_grad(set_to_none=True)
        self._make_reducer()
        if hook is not None:
            self.register_comm_hook(*hook)
        self._join = None
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True

    def _set_static_graph(self) -> None:
        """Say, before the first pass, that every pass uses the same parameters."""
        self.static_graph = True
        self.reducer.forget()
        self._make_reducer()

    # ---- unequal numbers of batches -------------------------------------------------------------

    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Join:
        """Return a context manager in which ranks may have unequal numbers of batches: `Join`.

        Example:
            >>> import plait_core as pc, plait_nn as nn, plait_distributed as dist
            >>> dist.init_process_group(init_method="shm:uneven", rank=0, world_size=1)
            >>> model = dist.DistributedDataParallel(nn.Linear(1, 1))
            >>> with model.join():
            ...     model(pc.ones(2, 1)).sum().backward()
            >>> dist.destroy_process_group()
        """
        return Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return what a rank does that has used up its batches."""
        return _ShadowHook(self, bool(kwargs.get("divide_by_initial_world_size", True)))

    @property
    def join_process_group(self) -> ProcessGroup:
        """The group of all ranks of the module."""
        group: ProcessGroup = self.process_group
        return group

    def _told(self, active: bool, syncs: bool) -> tuple[int, bool, bool]:
        """Return the first rank that continues, and whether passes and buffers are shared."""
        new, group = core(), self.process_group
        own = new.tensor([active, active and syncs, self.require_forward_param_sync])
        messages = [new.empty_like(own) for _ in range(group.size())]
        call = group.begin_call("DistributedDataParallel join", "", (own,))
        group.start(call, "all_gather", [own], messages)
        rows = [x.tolist() for x in messages]
        going = [rank for rank, row in enumerate(rows) if row[0]]
        self.reducer.going = len(going)
        return going[0], any(row[1] for row in rows), bool(rows[going[0]][2])

    def _shadow(self) -> None:
        root, syncs, buffers = self._told(False, False)
        with require("autograd").no_grad():
            if buffers and self.broadcast_buffers:
                self._broadcast(self._module_buffers(), root)
            if syncs:
                self.reducer.contribute_nothing()

    def _become_the_last(self, is_last: bool) -> None:
        """Take parameters and buffers of a rank that trained longest."""
        new, group = core(), self.process_group
        rank = new.tensor([group.rank() if is_last else -1])
        call = group.begin_call("DistributedDataParallel join end", "", (rank,))
        group.start(call, "all_reduce", [rank], [rank], reduction="max")
        with require("autograd").no_grad():
            tensors = [*(p for _, p in self.module.named_parameters()), *self._module_buffers()]
            self._broadcast(tensors, int(rank.item()))

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without what belongs to this process."""
        state = dict(self.__dict__)
        for name in ("process_group", "reducer", "_join"):
            state.pop(name, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a copy, in the group of all processes of this job."""
        super().__setstate__(state)
        self.process_group = default_group("DistributedDataParallel")
        self._join = None
        self._make_reducer()

    def _make_reducer(self) -> None:
        named = self._named()
        self.reducer = Reducer(
            [name for name, _ in named],
            [p for _, p in named],
            self.process_group,
            self.bucket_bytes_cap,
            self.find_unused_parameters,
            self.static_graph,
        )
        self._has_comm_hook = False
        reduces = getattr(self.mixed_precision, "reduce_dtype", None)
        if reduces is not None:
            self.reducer.register_comm_hook(self.process_group, compressing(reduces))

    def _named(self) -> list[tuple[str, Any]]:
        """Return the parameters that are reduced, with their names."""
        ignored = self.parameters_to_ignore
        every = self.module.named_parameters()
        return [(name, p) for name, p in every if p.requires_grad and name not in ignored]


def _refuse(**arguments: Any) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise NotImplementedError(
                f"DistributedDataParallel: `{name}` is not supported; leave it out"
            )


def _group(argument: Any) -> ProcessGroup:
    if argument is None:
        return default_group("DistributedDataParallel")
    if not isinstance(argument, ProcessGroup):
        raise TypeError(
            f"DistributedDataParallel: `process_group` must be a ProcessGroup, got {argument!r}"
        )
    return argument


def _check_devices(
    group: ProcessGroup, named: Sequence[tuple[str, Any]], device_ids: Sequence[Any] | None
) -> None:
    first = named[0][1].device
    other = next((name for name, p in named if p.device != first), named[0][0])
    place = next(p.device for name, p in named if name == other)
    if place != first or not group.serves(place):
        raise ValueError(
            "DistributedDataParallel: parameters must be on one device that the backend "
            f"{group.backend!r} serves; {other} is on {place}"
        )
    expected = None if first.index is None else int(first.index)
    if device_ids and [_ordinal(device) for device in device_ids] != [expected]:
        raise ValueError(
            f"DistributedDataParallel: `device_ids` must be None for a module on {first}"
            f"{'' if expected is None else f', or [{expected}]'}; got {device_ids!r}"
        )


def _ordinal(device: Any) -> int:
    if isinstance(device, int):
        return device
    index = core().device(device).index
    return 0 if index is None else int(index)


def _verify(group: ProcessGroup, named: Sequence[tuple[str, Any]]) -> None:
    """Compare the parameters' names, shapes and dtypes over the ranks."""
    texts = [f"{name} {tuple(p.shape)} {p.dtype}" for name, p in named]
    digest = hashlib.blake2b("\n".join(texts).encode(), digest_size=16).hexdigest()
    message = group.gather_texts("DistributedDataParallel", digest)
    if len(set(message)) == 1:
        return
    every: list[Any] = [None] * group.size()
    all_gather_object(every, texts, group)
    for rank, other in enumerate(every[1:], 1):
        separate = sorted(set(every[0]).symmetric_difference(other)) or ["their order"]
        if other != every[0]:
            raise MismatchError(
                "DistributedDataParallel: the same parameters on all ranks are required; rank "
                f"{group.ranks[rank]} has {len(other)}, rank {group.ranks[0]} has "
                f"{len(every[0])}; they differ in {'; '.join(separate[:4])}"
            )
