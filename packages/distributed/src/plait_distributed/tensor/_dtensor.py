"""`DTensor`: a tensor of which each process holds a part."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

from plait_abi.components import require
from plait_distributed._arguments import core
from plait_distributed._gathers import broadcast
from plait_distributed._reductions import ReduceOp
from plait_distributed.device_mesh import DeviceMesh, current_mesh
from plait_distributed.tensor import _transfers
from plait_distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
    shard_bounds,
)

_Tensor: Any = require("core").Tensor
_rules: list[Callable[..., Any]] = []  # what answers to operators; the package sets it
_Parameter: Any = require("nn").Parameter


def set_rules(call: Callable[..., Any]) -> None:
    """Choose what answers to operators: a function of the operator and its arguments."""
    _rules[:] = [call]


def place(caller: str, placements: Any, mesh: DeviceMesh, ndim: int) -> tuple[Placement, ...]:
    """Check placements, one for each dimension of the mesh; negative dimensions become others."""
    full_placements = (Replicate(),) * mesh.ndim if placements is None else tuple(placements)
    if len(full_placements) != mesh.ndim:
        raise ValueError(
            f"{caller}: `placements` must have one for each of the mesh's {mesh.ndim} dimensions, "
            f"got {full_placements}"
        )
    results: list[Placement] = []
    for each in full_placements:
        if isinstance(each, Shard):
            if not -ndim <= each.dim < ndim:
                raise ValueError(
                    f"{caller}: {each} is out of range for a tensor with {ndim} dimensions"
                )
            results.append(Shard(each.dim % ndim))
        elif isinstance(each, (Replicate, Partial)):
            results.append(each)
        else:
            raise TypeError(f"{caller}: `placements` must be placements, got {each!r}")
    return tuple(results)


def local_shape(
    shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement], rank: Any = None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape of a rank's part, and where it begins in the whole tensor."""
    at = (mesh.get_coordinate() or []) if rank is None else rank
    sizes, first = list(shape), [0] * len(shape)
    for dim, each in enumerate(placements):
        if isinstance(each, Shard):
            begin, length = shard_bounds(sizes[each.dim], mesh.size(dim), at[dim])
            first[each.dim] += begin
            sizes[each.dim] = length
    return tuple(sizes), tuple(first)


class DTensor(_Tensor):  # type: ignore[misc]
    """A tensor that the ranks of a mesh hold together.

    Its ``shape`` is that of the whole; each rank has a plain tensor in memory, `to_local`. What
    that is of the whole the placements say, one for each dimension of the mesh: `Shard`,
    `Replicate` or `Partial`.

    Operators that act element by element, sums and norms of all elements, matrix products of layers
    (``linear``, ``embedding``) and whatever has replicated arguments alone compute here. Others
    raise NotImplementedError: `redistribute` to `Replicate`, or compute with `to_local`.

    `distribute_tensor` and `from_local` make them.

    Args:
        data: The local tensor.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> from plait_distributed.tensor import Shard, distribute_tensor
        >>> from plait_distributed.device_mesh import init_device_mesh
        >>> dist.init_process_group(init_method="shm:dtensor", rank=0, world_size=1)
        >>> x = distribute_tensor(pc.arange(4), init_device_mesh("cpu", (1,)), [Shard(0)])
        >>> x.shape, x.to_local(), x.full_tensor()
        (plait.Size([4]), tensor([0, 1, 2, 3]), tensor([0, 1, 2, 3]))
        >>> dist.destroy_process_group()
    """

    _mesh: DeviceMesh
    _places: tuple[Placement, ...]
    _whole: tuple[int, ...]

    def __plait_function__(self, operator: Any, args: Any, kwargs: Any) -> Any:
        return _rules[0](operator, args, kwargs or {})

    # ---- what it is -----------------------------------------------------------------------------

    @property
    def device_mesh(self) -> DeviceMesh:
        """The ranks that hold it."""
        return self._mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """The placement for each dimension of the mesh."""
        return self._places

    @property
    def shape(self) -> Any:
        """The shape of the whole tensor."""
        return core().Size(self._whole)

    def size(self, dim: int | None = None) -> Any:
        """Return the shape of the whole tensor, or one length."""
        return self.shape if dim is None else self._whole[dim]

    def numel(self) -> int:
        """Return the number of elements of the whole tensor."""
        return math.prod(self._whole)

    nelement = numel

    def __len__(self) -> int:
        if not self._whole:
            raise TypeError("len: a tensor with a dimension is required, got shape ()")
        return self._whole[0]

    @property
    def grad(self) -> Any:
        """The gradient, held as the tensor itself is; None: there is none."""
        gradient = _Tensor.grad.__get__(self)
        if gradient is None or isinstance(gradient, DTensor):
            return gradient
        places = [Replicate() if isinstance(p, Partial) else p for p in self._places]
        return wrap_local(gradient, self._mesh, places, self._whole)

    @grad.setter
    def grad(self, value: Any) -> None:
        _Tensor.grad.__set__(self, value.to_local() if isinstance(value, DTensor) else value)

    @grad.deleter
    def grad(self) -> None:
        _Tensor.grad.__set__(self, None)

    @property
    def data(self) -> Any:
        """Return a DTensor of this one's elements that has no history."""
        return self.detach()

    @data.setter
    def data(self, value: Any) -> None:
        if not isinstance(value, DTensor) or value._places != self._places:
            raise TypeError(f"DTensor.data: a DTensor with {self._places} is required")
        _Tensor.data.__set__(self, value.detach().to_local())
        self._mesh, self._whole = value._mesh, value._whole

    @property
    def _local_tensor(self) -> Any:
        return self.local()

    def local(self) -> Any:
        """Return this rank's part, with the history."""
        return _Tensor.as_subclass(self, _Tensor)

    def to_local(self, *, grad_placements: Any = None) -> Any:
        """Return this rank's part, a plain tensor.

        Args:
            grad_placements: how the gradients of the result will lie: as this tensor does by
                default. `Partial` in place of `Replicate`: each rank will have a part of a sum.
        """
        local = self.local()
        for dim, argument in enumerate(grad_placements or ()):
            placement = self._places[dim]
            if isinstance(argument, Partial) and isinstance(placement, Replicate):
                local = _transfers.sum_gradients(local, self._mesh.get_group(dim))
            elif argument != placement and not isinstance(placement, Partial):
                raise NotImplementedError(
                    f"DTensor.to_local: a gradient with {argument} for a tensor with {placement} "
                    "is not supported"
                )
        return local

    @staticmethod
    def from_local(
        local_tensor: Any,
        device_mesh: DeviceMesh | None = None,
        placements: Any = None,
        *,
        run_check: bool = False,
        shape: Sequence[int] | None = None,
        stride: Any = None,
        grad_placements: Any = None,
    ) -> DTensor:
        """Return the tensor of which each rank gives its part.

        Args:
            local_tensor: this rank's part.
            device_mesh: the ranks; None: all.
            placements: one for each dimension of the mesh; None: `Replicate`.
            run_check: make replicated parts those of the first rank.
            shape: that of the whole; None: parts have equal lengths.
            stride, grad_placements: unused: parts are dense, and gradients lie as the tensor does.
        """
        mesh = device_mesh or current_mesh("DTensor.from_local")
        places = place("DTensor.from_local", placements, mesh, local_tensor.ndim)
        whole = list(local_tensor.shape)
        for dim, each in enumerate(places):
            if isinstance(each, Shard):
                whole[each.dim] *= mesh.size(dim)
            elif run_check and isinstance(each, Replicate):
                broadcast(local_tensor, group_src=0, group=mesh.get_group(dim))
        if shape is not None:
            whole = list(shape)
            want, _ = local_shape(whole, mesh, places)
            if want != tuple(local_tensor.shape):
                raise ValueError(
                    f"DTensor.from_local: this rank's part of shape {tuple(whole)} with {places} "
                    f"is {want}, got {tuple(local_tensor.shape)}"
                )
        return wrap_local(local_tensor, mesh, places, whole)

    # ---- moves ----------------------------------------------------------------------------------

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Any = None,
        *,
        async_op: bool = False,
        forward_dtype: Any = None,
        backward_dtype: Any = None,
    ) -> DTensor:
        """Return the same tensor, held otherwise. All ranks of the mesh call it.

        Args:
            device_mesh: None, or the tensor's own mesh.
            placements: one for each dimension of the mesh.
            async_op: unused: the result is there.
            forward_dtype, backward_dtype: None.

        Raises:
            NotImplementedError: another mesh, or a partial sum is requested.
        """
        if device_mesh is not None and device_mesh != self._mesh:
            raise NotImplementedError("DTensor.redistribute: another mesh is not supported")
        if forward_dtype is not None or backward_dtype is not None:
            raise NotImplementedError("DTensor.redistribute: `forward_dtype` must be None")
        target = place("DTensor.redistribute", placements, self._mesh, len(self._whole))
        local, mesh = self.local(), self._mesh
        places = list(self._places)
        for dim in _to_be_whole(places, target):
            local = _to_whole(local, self._whole, mesh, places, dim, target[dim])
            places[dim] = target[dim] if _scattered(mesh, places[dim], target[dim]) else Replicate()
        for dim, want in enumerate(target):
            if places[dim] == want:
                continue
            if isinstance(want, Partial):
                raise NotImplementedError("DTensor.redistribute: `Partial` is not supported")
            assert isinstance(want, Shard)
            local = _transfers.take_shard(local, want.dim, mesh.get_group(dim))
        return wrap_local(local, mesh, target, self._whole)

    def full_tensor(self, *, grad_placements: Any = None) -> Any:
        """Return the whole tensor on every rank. All ranks of the mesh call it."""
        whole = self.redistribute(placements=[Replicate()] * self._mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)

    # ---- values ---------------------------------------------------------------------------------

    def _same(self, change: Any) -> DTensor:
        return wrap_local(change(self.local()), self._mesh, self._places, self._whole)

    def to(self, *args: Any, **kwargs: Any) -> DTensor:
        """Return the tensor with another dtype."""
        result = self._same(lambda local: local.to(*args, **kwargs))
        is_sum = any(isinstance(each, Partial) for each in self._places)
        if is_sum and self.is_floating_point() and not result.is_floating_point():
            raise NotImplementedError(
                f"to: the terms of a sum cannot become {result.dtype} each; redistribute() the "
                f"DTensor with {self._places} first"
            )
        return result

    def cpu(self) -> DTensor:
        """Return the tensor itself."""
        return self

    def float(self) -> DTensor:
        """Return the tensor in float32."""
        return self.to(core().float32)

    def double(self) -> DTensor:
        """Return the tensor in float64."""
        return self.to(core().float64)

    def half(self) -> DTensor:
        """Return the tensor in float16."""
        return self.to(core().float16)

    def bfloat16(self) -> DTensor:
        """Return the tensor in bfloat16."""
        return self.to(core().bfloat16)

    def _replicated(self, caller: str) -> Any:
        if not all(isinstance(each, Replicate) for each in self._places):
            raise NotImplementedError(
                f"{caller}: a DTensor with {self._places} is not a whole tensor; use full_tensor() "
                "or to_local()"
            )
        return self.local()

    def item(self) -> Any:
        """Return the number of a replicated tensor with one element."""
        return self._replicated("item").item()

    def tolist(self) -> Any:
        """Return the numbers of a replicated tensor."""
        return self._replicated("tolist").tolist()

    def numpy(self, *args: Any, **kwargs: Any) -> Any:
        """Return a replicated tensor as an array."""
        return self._replicated("numpy").numpy(*args, **kwargs)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self._replicated("__array__").__array__(*args, **kwargs)

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        return self._replicated("__dlpack__").__dlpack__(*args, **kwargs)

    def __float__(self) -> builtins.float:
        return builtins.float(self._replicated("float"))

    def __int__(self) -> int:
        return int(self._replicated("int"))

    def __bool__(self) -> bool:
        return bool(self._replicated("bool"))

    def __iter__(self) -> Any:
        return iter(self._replicated("iter"))

    def __getitem__(self, index: Any) -> Any:
        return wrap_replicated(self._replicated("index")[index], self._mesh)

    @property
    def T(self) -> Any:  # noqa: N802 - PyTorch's name
        """The transpose of a replicated tensor."""
        return wrap_replicated(self._replicated("T").T, self._mesh)

    mT = T  # noqa: N815

    def __setitem__(self, index: Any, value: Any) -> None:
        local = value.to_local() if isinstance(value, DTensor) else value
        self._replicated("index")[index] = local

    def __repr__(self, **options: Any) -> str:
        local = self.detach().local() if self.requires_grad else self.local()
        return (
            f"DTensor(local_tensor={local!r}, device_mesh={self._mesh!r}, "
            f"placements={self._places!r})"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            copy = self.detach().clone()
            if isinstance(self, _Parameter):
                copy = copy.__plait_parameter__(self.requires_grad)
            elif self.requires_grad:
                copy.requires_grad = True
            memo[id(self)] = copy
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise NotImplementedError(
            "DTensor: one rank's part can't be pickled as the whole; save it with "
            "plait_distributed.checkpoint, or full_tensor()"
        )

    def __plait_parameter__(self, requires_grad: bool = True) -> ShardedParameter:
        """Return a parameter on the same memory."""
        return ShardedParameter(self, requires_grad)


class ShardedParameter(DTensor, _Parameter):  # type: ignore[misc]
    """A parameter of a module that the ranks of a mesh hold together.

    Example:
        >>> import plait_core as pc, plait_nn as nn, plait_distributed as dist
        >>> from plait_distributed.tensor import DTensor, Shard, distribute_tensor
        >>> from plait_distributed.device_mesh import init_device_mesh
        >>> dist.init_process_group(init_method="shm:parameter", rank=0, world_size=1)
        >>> x = distribute_tensor(pc.ones(4), init_device_mesh("cpu", (1,)), [Shard(0)])
        >>> isinstance(nn.Parameter(x), DTensor)
        True
        >>> dist.destroy_process_group()
    """

    def __new__(cls, data: DTensor, requires_grad: bool = True) -> ShardedParameter:
        self: ShardedParameter = _Tensor._make_subclass(cls, data.detach().local(), requires_grad)
        _set(self, data._mesh, data._places, data._whole)
        return self


def _set(x: Any, mesh: DeviceMesh, places: Sequence[Placement], whole: Sequence[int]) -> None:
    x._mesh, x._places, x._whole = mesh, tuple(places), tuple(whole)


def wrap_local(
    local: Any, mesh: DeviceMesh, places: Sequence[Placement], whole: Sequence[int]
) -> DTensor:
    """Return the DTensor of a local part, with its history."""
    result: DTensor = _Tensor.as_subclass(local, DTensor)
    _set(result, mesh, places, whole)
    return result


def wrap_replicated(local: Any, mesh: DeviceMesh) -> Any:
    """Return a replicated DTensor."""
    return wrap_local(local, mesh, [Replicate()] * mesh.ndim, local.shape)


def _scattered(mesh: DeviceMesh, now: Placement, want: Placement) -> bool:
    """Return whether a sum goes to its parts at once."""
    return isinstance(now, Partial) and isinstance(want, Shard) and mesh.ndim == 1


def _to_be_whole(now: Sequence[Placement], want: Sequence[Placement]) -> list[int]:
    """Return the dimensions of the mesh that are made whole, the innermost first.

    A dimension of the tensor that several ones of the mesh divide is divided by the first one
    first, so a change there touches those behind it.
    """
    results = {dim for dim in range(len(now)) if now[dim] != want[dim]}
    changed = {p.dim for dim in results for p in (now[dim], want[dim]) if isinstance(p, Shard)}
    first = min(results, default=len(now))
    for dim, place_of in enumerate(now):
        if dim > first and isinstance(place_of, Shard) and place_of.dim in changed:
            results.add(dim)
    return [dim for dim in sorted(results, reverse=True) if not isinstance(now[dim], Replicate)]


def _to_whole(
    local: Any,
    whole: Sequence[int],
    mesh: DeviceMesh,
    places: Sequence[Placement],
    dim: int,
    want: Placement,
) -> Any:
    now, group = places[dim], mesh.get_group(dim)
    if isinstance(now, Shard):
        length, _ = local_shape(whole, mesh, [*places[:dim], *[Replicate()] * (mesh.ndim - dim)])
        return _transfers.gather_shards(local, now.dim, length[now.dim], group)
    assert isinstance(now, Partial)
    op = _OPS.get(now.reduce_op)
    if op is None:
        raise NotImplementedError(f"DTensor.redistribute: {now}; known are {sorted(_OPS)}")
    if _scattered(mesh, now, want):
        assert isinstance(want, Shard)
        return _transfers.scatter_sum(local, want.dim, op, group)
    return _transfers.sum_partials(local, op, group)


_OPS = {"sum": ReduceOp.SUM, "avg": ReduceOp.AVG}


def distribute_tensor(
    tensor: Any,
    device_mesh: DeviceMesh | None = None,
    placements: Any = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """Return a tensor that the ranks of a mesh hold together, from the first rank's tensor.

    Args:
        tensor: of one shape and dtype on all ranks; a leaf.
        device_mesh: the ranks; None: all.
        placements: `Shard` or `Replicate` for each dimension of the mesh; None: `Replicate`.
        src_data_rank: 0: every rank takes its part of the first rank's tensor. None: of its own,
            and nothing is sent.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> from plait_distributed.tensor import Shard, distribute_tensor
        >>> from plait_distributed.device_mesh import init_device_mesh
        >>> dist.init_process_group(init_method="shm:distribute", rank=0, world_size=1)
        >>> x = distribute_tensor(pc.ones(2, 3), init_device_mesh("cpu", (1,)), [Shard(1)])
        >>> x.placements
        (Shard(dim=1),)
        >>> dist.destroy_process_group()
    """
    mesh = device_mesh or current_mesh("distribute_tensor")
    places = place("distribute_tensor", placements, mesh, tensor.ndim)
    if isinstance(tensor, DTensor):
        return tensor.redistribute(mesh, places)
    if any(isinstance(each, Partial) for each in places):
        raise ValueError(f"distribute_tensor: `placements` must not be partial, got {places}")
    if not tensor.is_leaf:
        raise RuntimeError("distribute_tensor: `tensor` must be a leaf; detach() it")
    whole = tensor.detach()
    if whole.device.type not in (mesh.device_type, "meta"):
        whole = whole.to(mesh.device_type)
    if src_data_rank is not None and mesh.size() > 1:
        whole = whole.clone(memory_format=core().contiguous_format)
        for dim in range(mesh.ndim):
            broadcast(whole, group_src=src_data_rank, group=mesh.get_group(dim))
    sizes, first = local_shape(whole.shape, mesh, places)
    local = whole
    for dim, (begin, length) in enumerate(zip(first, sizes, strict=True)):
        local = local.narrow(dim, begin, length)
    local = local.clone(memory_format=core().contiguous_format)
    result = wrap_local(local, mesh, places, whole.shape)
    if tensor.requires_grad:
        result.requires_grad = True
    return result
