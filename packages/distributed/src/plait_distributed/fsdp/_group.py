"""The parameters of one sharded module: gathered for use, reduced behind it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any

from plait_abi.components import require
from plait_distributed._arguments import core
from plait_distributed._process_group import ProcessGroup
from plait_distributed.device_mesh import DeviceMesh
from plait_distributed.fsdp._policies import MixedPrecisionPolicy
from plait_distributed.tensor._dtensor import DTensor, ShardedParameter, wrap_local
from plait_distributed.tensor.placement_types import Placement, Replicate, Shard, shard_bounds


class GroupedParameter:
    """One parameter: this rank's rows, which optimizers see, and the whole, while it is used."""

    def __init__(self, name: str, parameter: Any, slots: Sequence[tuple[Any, str]]) -> None:
        if parameter.ndim == 0:
            raise ValueError(
                f"fully_shard: the parameter {name} has no dimension to shard; give it shape (1,)"
            )
        self.name = name
        self.slots = list(slots)
        self.shape = tuple(parameter.shape)
        self.dtype = parameter.dtype
        self.given: Any = parameter
        self.sharded: Any = None
        self.whole: Any = None
        self.first = 0  # of its elements in the flat buffer
        self.handle: Any = None
        self.node: Any = None  # of the whole's gradients, in graphs

    def rows(self, size: int, rank: int) -> tuple[int, int]:
        """Return the first row of a rank and how many it has."""
        return shard_bounds(self.shape[0], size, rank)

    def count(self, size: int) -> int:
        """Return the number of elements of a rank with as many as any."""
        return int(-(-self.shape[0] // size) * math.prod(self.shape[1:]))

    def put(self, parameter: Any) -> None:
        """Make one of both the modules' parameter."""
        for module, name in self.slots:
            module._parameters[name] = parameter


class _Flat:
    """Parameters of one dtype: this rank's rows lie one behind the other in a buffer."""

    def __init__(
        self, parameters: Sequence[GroupedParameter], mesh: DeviceMesh, compute: Any
    ) -> None:
        self.parameters = list(parameters)
        self.dtype = parameters[0].dtype
        self.device = parameters[0].given.device
        self.compute = compute or self.dtype
        self.lay_out(mesh)

    def lay_out(self, mesh: DeviceMesh) -> None:
        """Give each parameter its place in a new buffer, with the rows of a rank of this mesh.

        At first they are those of the parameters that were given; afterwards zeros.
        """
        self.group = mesh.get_group(mesh.ndim - 1)
        self.result: Any = None
        self.part: Any = None
        placements: list[Placement] = [Replicate()] * (mesh.ndim - 1) + [Shard(0)]
        size, rank = self.group.size(), self.group.rank()
        total = sum(p.count(size) for p in self.parameters)
        self.buffer = core().zeros(total, dtype=self.dtype, device=self.device)
        at = 0
        for p in self.parameters:
            p.first = at
            at += p.count(size)
            part = wrap_local(self.view(self.buffer, p), mesh, placements, p.shape)
            if p.given is None:
                p.sharded.grad = None
                p.sharded.data = part
                continue
            first, n = p.rows(size, rank)
            part.local().copy_(p.given.detach().narrow(0, first, n))
            p.sharded = ShardedParameter(part, False)
            p.sharded.requires_grad = p.given.requires_grad
            empty = core().empty(0, dtype=self.compute, device=self.device)
            p.whole = require("nn").Parameter(empty, False)
            p.given = None

    def view(self, flat: Any, p: GroupedParameter, first: int | None = None) -> Any:
        """Return this rank's rows of a parameter in a flat tensor."""
        _, n = p.rows(self.group.size(), self.group.rank())
        at = p.first if first is None else first
        return flat[at : at + n * math.prod(p.shape[1:])].view(n, *p.shape[1:])

    def collect(self) -> None:
        """Bring rows back into the buffer that a program gave other memory."""
        for p in self.parameters:
            place, local = self.view(self.buffer, p), p.sharded.detach().local()
            if local.data_ptr() != place.data_ptr() and local.numel():
                place.copy_(local)
                with require("autograd").no_grad():
                    p.sharded.data = wrap_local(
                        place, p.sharded.device_mesh, p.sharded.placements, p.shape
                    )

    def begin(self, caller: str) -> None:
        """Begin to gather all ranks' rows."""
        self.collect()
        source = self.buffer.to(self.compute)
        n, size = source.numel(), self.group.size()
        self.result = core().empty(size * n, dtype=self.compute, device=self.device)
        parts = [self.result[i * n : (i + 1) * n] for i in range(size)]
        call = self.group.begin_call("fully_shard parameters", caller, (source,))
        self.part = self.group.start(call, "all_gather", [source], parts, asynchronous=True)

    def finish(self) -> None:
        """Wait for them, and make each parameter whole."""
        part, self.part = self.part, None
        part.wait()
        size = self.group.size()
        rows = self.result.view(size, -1)
        for p in self.parameters:
            n = p.count(size)
            whole = rows[:, p.first : p.first + n]
            if len(self.parameters) > 1:
                whole = whole.clone(memory_format=core().contiguous_format)
            p.whole.data = whole.view(-1)[: math.prod(p.shape)].view(p.shape)
        self.result = None


class _Reduction:
    """Gradients of some parameters of a buffer on their way."""

    def __init__(
        self,
        flat: _Flat,
        parameters: Sequence[GroupedParameter],
        dtype: Any,
        replicas: ProcessGroup | None,
        caller: str,
    ) -> None:
        self.flat, self.parameters, self.replicas, self.who = flat, parameters, replicas, caller
        group = flat.group
        size = group.size()
        self.firsts: list[int] = []
        at = 0
        for p in parameters:
            self.firsts.append(at)
            at += p.count(size)
        rows = core().zeros((size, at), dtype=dtype, device=flat.device)
        for p, first in zip(parameters, self.firsts, strict=True):
            _fill(rows[:, first : first + p.count(size)], p, size)
            p.whole.grad = None
        self.mine = core().empty(at, dtype=dtype, device=flat.device)
        self.rows = rows
        names = f"{caller}, {len(parameters)} parameters"
        call = group.begin_call("fully_shard gradients", names, (self.mine,))
        parts = [rows[i] for i in range(size)]
        self.part: Any = group.start(
            call, "reduce_scatter", parts, [self.mine], reduction="mean", asynchronous=True
        )

    def drop(self) -> None:
        """Wait, as ranks write each other's memory until then, and forget the result."""
        with contextlib.suppress(Exception):
            self.part.wait()

    def finish(self, factor: float) -> None:
        """Wait, and add this rank's rows to the gradients of its parameters."""
        self.part.wait()
        self.rows = None
        own = self.mine
        if self.replicas is not None:
            call = self.replicas.begin_call("fully_shard replicas", self.who, (own,))
            self.replicas.start(call, "all_reduce", [own], [own], reduction="mean")
        if factor != 1.0:
            own.mul_(factor)
        for p, first in zip(self.parameters, self.firsts, strict=True):
            gradient = self.flat.view(own, p, first).to(p.dtype)
            before = p.sharded.grad
            if before is None:
                p.sharded.grad = gradient
            else:
                before.local().add_(gradient)


def _fill(rows: Any, p: GroupedParameter, size: int) -> None:
    """Copy a gradient into the rows for the ranks; what is behind the last one stays zero."""
    gradient = p.whole.grad
    if gradient.layout is not core().strided:
        raise NotImplementedError(
            f"fully_shard: the gradient of {p.name} is sparse; give its module sparse=False"
        )
    if p.shape[0] % size == 0:
        rows.copy_(gradient.reshape(size, -1))
        return
    for rank in range(size):
        first, n = p.rows(size, rank)
        if n:
            part = gradient[first : first + n].reshape(-1)
            rows[rank, : part.numel()].copy_(part)


class ParameterGroup:
    """The parameters that one call of `fully_shard` shards: gathered and reduced together.

    Args:
        name: of the module, for errors.
        parameters: those that no module inside shards already.
        mesh: one dimension, of shards; or two, of replicas and of shards.
        policy: dtypes.
        arrived: called with the group and a parameter when a pass has computed its gradient.
    """

    def __init__(
        self,
        name: str,
        parameters: Sequence[GroupedParameter],
        mesh: DeviceMesh,
        policy: MixedPrecisionPolicy,
        arrived: Callable[[ParameterGroup, GroupedParameter], None],
    ) -> None:
        self.name = name
        self._take(mesh)
        self.policy = policy
        self.parameters = list(parameters)
        by_dtype: dict[Any, list[GroupedParameter]] = {}
        for p in self.parameters:
            by_dtype.setdefault(p.dtype, []).append(p)
        self.flats = []
        for dtype, some in by_dtype.items():
            compute = policy.param_dtype if dtype.is_floating_point else None
            self.flats.append(_Flat(some, mesh, compute))
        for p in self.parameters:
            p.put(p.sharded)
        self._arrived = arrived
        self.factor = 1.0  # by which reduced gradients are multiplied
        self.gathering = False
        self.is_whole = False
        self.whole_at: dict[int, Any] = {}  # of a root: whole parameters by their memory
        self._versions: list[int] = []

    def _take(self, mesh: DeviceMesh) -> None:
        self.mesh = mesh
        self.group = mesh.get_group(mesh.ndim - 1)
        self.replicas = mesh.get_group(0) if mesh.ndim == 2 else None

    def regroup(self, mesh: DeviceMesh) -> None:
        """Continue in another mesh, with rows of zeros; what was on its way is forgotten."""
        self._take(mesh)
        self.gathering = False
        self.reshard()
        self.drop_gradients()
        with require("autograd").no_grad():
            for flat in self.flats:
                flat.lay_out(mesh)

    # ---- parameters -----------------------------------------------------------------------------

    def versions(self) -> list[int]:
        """Return numbers that change when this rank's rows are written to."""
        return [p.sharded._version for p in self.parameters]

    def begin_unshard(self) -> None:
        """Begin to gather the parameters, unless that has begun or they are there."""
        if self.gathering:
            return
        now = self.versions()
        if self.is_whole:
            if now == self._versions:
                return
            self.reshard()
        self._versions = now
        self.gathering = True
        with require("autograd").no_grad():
            for flat in self.flats:
                flat.begin(self.name)

    def unshard(self) -> None:
        """Make the parameters whole, and those of the modules."""
        self.begin_unshard()
        if not self.gathering:
            return
        self.gathering = False
        with require("autograd").no_grad():
            for flat in self.flats:
                flat.finish()
        self.is_whole = True
        for p in self.parameters:
            if p.whole.requires_grad != p.sharded.requires_grad:
                p.whole.requires_grad = p.sharded.requires_grad
            if p.handle is None and p.whole.requires_grad:
                p.handle = p.whole.register_post_accumulate_grad_hook(self._hook_of(p))
                # taken while the tensor is whole: the node notes its shape then
                p.node = require("autograd").graph.get_gradient_edge(p.whole).node
            p.put(p.whole)
            if p.whole.numel():
                self.whole_at[p.whole._storage_extent()[0]] = (self, p)

    def _hook_of(self, p: GroupedParameter) -> Callable[[Any], None]:
        return lambda _: self._arrived(self, p)

    def reshard(self) -> None:
        """Give the memory of whole parameters back."""
        if self.gathering:
            self.gathering = False
            for flat in self.flats:
                flat.part.wait()
                flat.part = flat.result = None
        if not self.is_whole:
            return
        self.is_whole = False
        for flat in self.flats:
            for p in flat.parameters:
                if p.whole.numel():
                    self.whole_at.pop(p.whole._storage_extent()[0], None)
                p.whole.data = core().empty(0, dtype=flat.compute, device=flat.device)
                p.put(p.sharded)

    def write_back(self) -> None:
        """Take this rank's rows of whole parameters that were written to."""
        if not self.is_whole:
            return
        with require("autograd").no_grad():
            for flat in self.flats:
                for p in flat.parameters:
                    first, n = p.rows(self.group.size(), self.group.rank())
                    flat.view(flat.buffer, p).copy_(p.whole.detach().narrow(0, first, n))

    # ---- gradients ------------------------------------------------------------------------------

    def has_gradients(self) -> bool:
        """Return whether there are gradients that were not reduced."""
        return any(p.whole.grad is not None for p in self.parameters)

    def drop_gradients(self) -> None:
        """Forget those of a pass that failed."""
        for p in self.parameters:
            p.whole.grad = None

    def reduce(self) -> list[_Reduction]:
        """Begin to reduce the gradients that are there."""
        results = []
        for flat in self.flats:
            some = [p for p in flat.parameters if p.whole.grad is not None]
            if some:
                dtype = self.policy.reduce_dtype or some[0].whole.grad.dtype
                results.append(_Reduction(flat, some, dtype, self.replicas, self.name))
        return results


def check_not_sharded(name: str, parameter: Any) -> None:
    """Refuse parameters that other processes hold parts of."""
    if isinstance(parameter, DTensor):
        raise NotImplementedError(
            f"fully_shard: the parameter {name} is a DTensor already; sharding over a mesh with "
            "tensor parallelism is not supported"
        )
