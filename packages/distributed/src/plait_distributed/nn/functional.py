"""Collectives that backward passes go through.

Each returns new tensors, and its derivative is the adjoint collective, which all ranks call in
their backward passes: gradients are those of the sum of all ranks' losses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plait_abi.components import require
from plait_distributed import _all_to_all, _gathers, _reductions
from plait_distributed._arguments import core
from plait_distributed._process_group import ProcessGroup
from plait_distributed._reductions import ReduceOp
from plait_distributed._world import member_of

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]

_Function: Any = require("autograd").Function


def _member(caller: str, group: Any) -> ProcessGroup:
    member = member_of(caller, group)
    if member is None:
        raise ValueError(f"{caller}: this process is not a member of the group")
    return member


def _check_linear(caller: str, op: ReduceOp, tensors: Sequence[Any]) -> None:
    if op not in (ReduceOp.SUM, ReduceOp.AVG) and any(x.requires_grad for x in tensors):
        raise NotImplementedError(
            f"{caller}: the derivative is there for `op` SUM and AVG, got {op}; detach() the tensor"
        )


class _AllReduce(_Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, member: ProcessGroup, op: ReduceOp, tensor: Any) -> Any:
        ctx.mine, ctx.op = member, op
        result = tensor.clone(memory_format=core().contiguous_format)
        _reductions.all_reduce(result, op, member)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return None, None, _AllReduce.apply(ctx.mine, ctx.op, gradient)


def all_reduce(tensor: Any, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Any:
    """Return the sum, or another reduction, over all ranks; see `plait.distributed.all_reduce`.

    Args:
        tensor: The tensor of this rank.
        op: How elements are combined.
        group: The ranks; None: all.

    Raises:
        NotImplementedError: a gradient is needed of another reduction than SUM and AVG.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> from plait_distributed.nn import functional as F
        >>> dist.init_process_group(init_method="shm:d1", rank=0, world_size=1)
        >>> x = pc.ones(2, requires_grad=True)
        >>> F.all_reduce(x * 2).sum().backward()
        >>> x.grad
        tensor([2., 2.])
        >>> dist.destroy_process_group()
    """
    _check_linear("all_reduce", op, (tensor,))
    return _AllReduce.apply(_member("all_reduce", group), op, tensor)


class _Broadcast(_Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, member: ProcessGroup, src: int, tensor: Any) -> Any:
        ctx.mine, ctx.src = member, src
        result = tensor.clone(memory_format=core().contiguous_format)
        _gathers.broadcast(result, src, member)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return None, None, _Reduce.apply(ctx.mine, ctx.src, ReduceOp.SUM, gradient)


def broadcast(tensor: Any, src: int, group: Any = None) -> Any:
    """Return the tensor of the rank `src`, to which all gradients go.

    Args:
        tensor: The tensor of this rank.
        group: The ranks; None: all.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> from plait_distributed.nn import functional as F
        >>> dist.init_process_group(init_method="shm:d2", rank=0, world_size=1)
        >>> F.broadcast(pc.ones(2), 0)
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    return _Broadcast.apply(_member("broadcast", group), src, tensor)


class _Reduce(_Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, member: ProcessGroup, dst: int, op: ReduceOp, tensor: Any) -> Any:
        ctx.mine, ctx.dst, ctx.op = member, dst, op
        result = tensor.clone(memory_format=core().contiguous_format)
        _reductions.reduce(result, dst, op, member)
        if member.ranks[member.rank()] != dst:
            result.zero_()
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        result = _Broadcast.apply(ctx.mine, ctx.dst, gradient)
        if ctx.op is ReduceOp.AVG:
            result = result / ctx.mine.size()
        return None, None, None, result


def reduce(tensor: Any, dst: int, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Any:
    """Return the sum, or another reduction, on the rank `dst`, and zeros on the others.

    Args:
        tensor: The tensor of this rank.
        op: How elements are combined.
        group: The ranks; None: all.

    Raises:
        NotImplementedError: a gradient is needed of another reduction than SUM and AVG.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> from plait_distributed.nn import functional as F
        >>> dist.init_process_group(init_method="shm:d3", rank=0, world_size=1)
        >>> F.reduce(pc.ones(2), 0)
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    _check_linear("reduce", op, (tensor,))
    return _Reduce.apply(_member("reduce", group), dst, op, tensor)


class _AllGather(_Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, member: ProcessGroup, tensor: Any) -> Any:
        ctx.mine = member
        results = [tensor.new_empty(tensor.shape) for _ in range(member.size())]
        _gathers.all_gather(results, tensor, member)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return None, _ReduceScatter.apply(ctx.mine, ReduceOp.SUM, *gradients)


def all_gather(tensor: Any, group: Any = None) -> tuple[Any, ...]:
    """Return the tensors of all ranks, by rank.

    Args:
        tensor: The tensor of this rank.
        group: The ranks; None: all.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> from plait_distributed.nn import functional as F
        >>> dist.init_process_group(init_method="shm:d4", rank=0, world_size=1)
        >>> F.all_gather(pc.ones(2))
        (tensor([1., 1.]),)
        >>> dist.destroy_process_group()
    """
    results: tuple[Any, ...] = _AllGather.apply(_member("all_gather", group), tensor)
    return results


class _ReduceScatter(_Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, member: ProcessGroup, op: ReduceOp, *tensors: Any) -> Any:
        ctx.mine, ctx.op = member, op
        first = tensors[member.rank()]
        result = first.new_empty(first.shape)
        _reductions.reduce_scatter(result, list(tensors), op, member)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        results = _AllGather.apply(ctx.mine, gradient)
        if ctx.op is ReduceOp.AVG:
            results = tuple(each / ctx.mine.size() for each in results)
        return None, None, *results


def reduce_scatter(
    output: Any, input_list: Sequence[Any], op: ReduceOp = ReduceOp.SUM, group: Any = None
) -> Any:
    """Return the sum, or another reduction, over all ranks of ``input_list[rank]``.

    Args:
        output: gives the shape alone; it is not written.
        input_list: one tensor for each rank.
        op: a `ReduceOp`.
        group: None: all processes.

    Raises:
        NotImplementedError: a gradient is needed of another reduction than SUM and AVG.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> from plait_distributed.nn import functional as F
        >>> dist.init_process_group(init_method="shm:d5", rank=0, world_size=1)
        >>> F.reduce_scatter(pc.empty(2), [pc.ones(2)])
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    _check_linear("reduce_scatter", op, input_list)
    return _ReduceScatter.apply(_member("reduce_scatter", group), op, *input_list)


class _AllToAll(_Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, member: ProcessGroup, shapes: Sequence[Any], *tensors: Any) -> Any:
        ctx.mine = member
        ctx.shapes = [tuple(tensor.shape) for tensor in tensors]
        results = [tensors[0].new_empty(shape) for shape in shapes]
        _all_to_all.all_to_all(results, list(tensors), member)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return None, None, *_AllToAll.apply(ctx.mine, ctx.shapes, *gradients)


def all_to_all(
    output_tensor_list: Sequence[Any], input_tensor_list: Sequence[Any], group: Any = None
) -> tuple[Any, ...]:
    """Send ``input_tensor_list[i]`` to rank i, and return what comes, by rank.

    Args:
        output_tensor_list: give the shapes of the results alone; they are not written.
        input_tensor_list: one tensor for each rank.
        group: None: all processes.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> from plait_distributed.nn import functional as F
        >>> dist.init_process_group(init_method="shm:d6", rank=0, world_size=1)
        >>> F.all_to_all([pc.empty(2)], [pc.ones(2)])
        (tensor([1., 1.]),)
        >>> dist.destroy_process_group()
    """
    shapes = [tuple(tensor.shape) for tensor in output_tensor_list]
    own = _member("all_to_all", group)
    results: tuple[Any, ...] = _AllToAll.apply(own, shapes, *input_tensor_list)
    return results


def all_to_all_single(
    output: Any,
    input: Any,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
) -> Any:
    """Do an `all_to_all` with the parts in one tensor, divided in its first dimension.

    Args:
        output: Receives the parts.
        input: The parts for all ranks, one after the other.
        output_split_sizes: Size of each rank's part of the output; None: equal parts.
        input_split_sizes: Size of each rank's part of the input; None: equal parts.
        group: The ranks; None: all.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> from plait_distributed.nn import functional as F
        >>> dist.init_process_group(init_method="shm:d7", rank=0, world_size=1)
        >>> F.all_to_all_single(pc.empty(2), pc.ones(2))
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    own = _member("all_to_all_single", group)
    n = own.size()
    outputs = output.split(list(output_split_sizes or [output.shape[0] // n] * n))
    inputs = input.split(list(input_split_sizes or [input.shape[0] // n] * n))
    return core().cat(all_to_all(outputs, inputs, own))


def gather(tensor: Any, dst: int = 0, group: Any = None) -> tuple[Any, ...]:
    """Return the tensors of all ranks on the rank `dst`, and zeros on the others.

    Args:
        tensor: The tensor of this rank.
        group: The ranks; None: all.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> from plait_distributed.nn import functional as F
        >>> dist.init_process_group(init_method="shm:d8", rank=0, world_size=1)
        >>> F.gather(pc.ones(2))
        (tensor([1., 1.]),)
        >>> dist.destroy_process_group()
    """
    results: tuple[Any, ...] = _Gather.apply(_member("gather", group), dst, tensor)
    return results


class _Gather(_Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, member: ProcessGroup, dst: int, tensor: Any) -> Any:
        ctx.mine, ctx.dst = member, dst
        here = member.ranks[member.rank()] == dst
        results = [tensor.new_zeros(tensor.shape) for _ in range(member.size())]
        _gathers.gather(tensor, results if here else None, dst, member)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return None, None, _Scatter.apply(ctx.mine, ctx.dst, *gradients)


class _Scatter(_Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, member: ProcessGroup, src: int, *tensors: Any) -> Any:
        ctx.mine, ctx.src = member, src
        here = member.ranks[member.rank()] == src
        result = tensors[0].new_empty(tensors[0].shape)
        _gathers.scatter(result, list(tensors) if here else None, src, member)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return None, None, *_Gather.apply(ctx.mine, ctx.src, gradient)


def scatter(tensors: Sequence[Any], src: int = 0, group: Any = None) -> Any:
    """Return the tensor for this rank from the list of the rank `src`.

    Args:
        tensors: one for each rank; those of other ranks than `src` give shapes alone.
        src: a rank among all processes.
        group: None: all processes.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> from plait_distributed.nn import functional as F
        >>> dist.init_process_group(init_method="shm:d9", rank=0, world_size=1)
        >>> F.scatter([pc.ones(2)])
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    return _Scatter.apply(_member("scatter", group), src, *tensors)
