"""Moves between placements, with derivatives.

The gradient of a replicated tensor is whole on every rank, that of a shard is the shard's, and that
of a partial sum is whole too, as it is one for every term. Each function here keeps to that.
"""

from __future__ import annotations

from typing import Any

from plait_abi.components import require
from plait_distributed import _gathers, _reductions
from plait_distributed._arguments import core
from plait_distributed._process_group import ProcessGroup
from plait_distributed._reductions import ReduceOp
from plait_distributed.tensor.placement_types import shard_bounds

_Function: Any = require("autograd").Function


def _padded(tensor: Any, dim: int, length: int) -> Any:
    """Return the tensor with zeros behind it up to a length."""
    missing = length - tensor.shape[dim]
    if missing == 0:
        return tensor.contiguous()
    shape = list(tensor.shape)
    shape[dim] = missing
    return core().cat([tensor, tensor.new_zeros(shape)], dim)


def _gather(tensor: Any, dim: int, length: int, group: ProcessGroup) -> Any:
    chunk = -(-length // group.size())
    own = _padded(tensor, dim, chunk)
    parts = [own.new_empty(own.shape) for _ in range(group.size())]
    _gathers.all_gather(parts, own, group)
    return core().cat(parts, dim).narrow(dim, 0, length)


def _take(tensor: Any, dim: int, group: ProcessGroup) -> Any:
    first, length = shard_bounds(tensor.shape[dim], group.size(), group.rank())
    return tensor.narrow(dim, first, length).clone(memory_format=core().contiguous_format)


def _scatter_sum(tensor: Any, dim: int, op: ReduceOp, group: ProcessGroup) -> Any:
    length, n = tensor.shape[dim], group.size()
    chunk = -(-length // n)
    parts = _padded(tensor, dim, chunk * n).split(chunk, dim) if chunk else [tensor] * n
    parts = [part.contiguous() for part in parts]
    own = tensor.new_empty(parts[0].shape)
    _reductions.reduce_scatter(own, parts, op, group)
    return own.narrow(dim, 0, shard_bounds(length, n, group.rank())[1])


def _sum(tensor: Any, op: ReduceOp, group: ProcessGroup) -> Any:
    result = tensor.clone(memory_format=core().contiguous_format)
    _reductions.all_reduce(result, op, group)
    return result


class _GatherShards(_Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, tensor: Any, dim: int, length: int, group: ProcessGroup) -> Any:
        ctx.dim, ctx.group = dim, group
        return _gather(tensor, dim, length, group)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return _TakeShard.apply(gradient, ctx.dim, ctx.group), None, None, None


class _TakeShard(_Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, tensor: Any, dim: int, group: ProcessGroup) -> Any:
        ctx.dim, ctx.length, ctx.group = dim, tensor.shape[dim], group
        return _take(tensor, dim, group)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return _GatherShards.apply(gradient, ctx.dim, ctx.length, ctx.group), None, None


class _ScatterSum(_Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, tensor: Any, dim: int, op: ReduceOp, group: ProcessGroup) -> Any:
        ctx.dim, ctx.length, ctx.op, ctx.group = dim, tensor.shape[dim], op, group
        return _scatter_sum(tensor, dim, op, group)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        result = _GatherShards.apply(gradient, ctx.dim, ctx.length, ctx.group)
        result = result / ctx.group.size() if ctx.op is ReduceOp.AVG else result
        return result, None, None, None


class _SumPartials(_Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, tensor: Any, op: ReduceOp, group: ProcessGroup) -> Any:
        ctx.op, ctx.group = op, group
        return _sum(tensor, op, group)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        result = gradient / ctx.group.size() if ctx.op is ReduceOp.AVG else gradient
        return result, None, None


class _SumGradients(_Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, tensor: Any, group: ProcessGroup) -> Any:
        ctx.group = group
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return _SumPartials.apply(gradient, ReduceOp.SUM, ctx.group), None


def gather_shards(tensor: Any, dim: int, length: int, group: ProcessGroup) -> Any:
    """Return the whole tensor of the length `length` from every rank's chunk."""
    return _GatherShards.apply(tensor, dim, length, group)


def take_shard(tensor: Any, dim: int, group: ProcessGroup) -> Any:
    """Return this rank's chunk of a tensor that all ranks have."""
    return _TakeShard.apply(tensor, dim, group)


def scatter_sum(tensor: Any, dim: int, op: ReduceOp, group: ProcessGroup) -> Any:
    """Return this rank's chunk of the reduction of every rank's tensor."""
    return _ScatterSum.apply(tensor, dim, op, group)


def sum_partials(tensor: Any, op: ReduceOp, group: ProcessGroup) -> Any:
    """Return the reduction of every rank's tensor."""
    return _SumPartials.apply(tensor, op, group)


def sum_gradients(tensor: Any, group: ProcessGroup) -> Any:
    """Return the tensor itself; gradients that ranks have parts of are summed behind it."""
    return _SumGradients.apply(tensor, group)
