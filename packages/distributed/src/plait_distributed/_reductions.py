"""Reductions of tensors over ranks: all_reduce, reduce, reduce_scatter."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from plait_distributed._arguments import (
    Written,
    check_tensor,
    member_for,
    readable,
    root_rank,
    slices_of,
    tensor_list,
)
from plait_distributed._process_group import ProcessGroup
from plait_distributed._work import Work


class ReduceOp(Enum):
    """The operation that combines the values of all ranks.

    Halves are summed in float32. For bools a sum or maximum is "or", a product or minimum "and".

    - SUM, PRODUCT: of numbers; integers wrap around.
    - AVG: the sum over the number of ranks, for floating-point and complex dtypes.
    - MIN, MAX: for dtypes with an order.
    - BAND, BOR, BXOR: of the bits of integers and bools.

    Example:
        >>> import plait_distributed as dist
        >>> dist.ReduceOp.SUM
        <ReduceOp.SUM: 'sum'>
    """

    SUM = "sum"
    AVG = "mean"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "and"
    BOR = "or"
    BXOR = "xor"


# PyTorch's name for the type of the members, which libraries ask for
ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]

_NAMES = {op: op.value for op in ReduceOp}


def reduction_name(caller: str, op: Any) -> str:
    """Return the ABI's name of a reduction."""
    name = _NAMES.get(op)
    if name is None:
        raise TypeError(
            f"{caller}: `op` must be one of ReduceOp.{', '.join(each.name for each in ReduceOp)}; "
            f"got {op!r}"
        )
    return name


def all_reduce(
    tensor: Any, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Replace each element by its sum, or another reduction, over all ranks.

    Every rank gets the same bits, and the same in each run with as many ranks.

    Args:
        tensor: written in place; of one shape and dtype on all ranks.
        op: a `ReduceOp`. Halves are summed in float32.
        group: None: all processes.
        async_op: whether to return a `Work` at once.

    Raises:
        MismatchError: ranks called different things.
        RankLost: a member died or left.
        CollectiveTimeout: others did not come in time.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:sum", rank=0, world_size=1)
        >>> x = pc.ones(2)
        >>> dist.all_reduce(x)
        >>> x
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    member = member_for("all_reduce", group)
    if member is None:
        return None
    reduction = reduction_name("all_reduce", op)
    out = Written("all_reduce", "tensor", (tensor,))
    call = member.begin_call("all_reduce", reduction, (tensor,))
    return member.run(
        call,
        "all_reduce",
        out.dense,
        out.dense,
        reduction=reduction,
        asynchronous=async_op,
        finish=out.finish,
        result=out.given,
    )


def all_reduce_coalesced(
    tensors: Sequence[Any], op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Do an `all_reduce` of several tensors of one dtype at once.

    Args:
        tensors: The tensors, which are written.
        op: How elements are combined.
        group: The ranks that take part; None: all.
        async_op: Whether to return at once, with a `Work` to wait for.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:sums", rank=0, world_size=1)
        >>> dist.all_reduce_coalesced([pc.ones(2), pc.ones(3, 3)])
        >>> dist.destroy_process_group()
    """
    member = member_for("all_reduce_coalesced", group)
    if member is None:
        return None
    reduction = reduction_name("all_reduce_coalesced", op)
    argument = tensor_list("all_reduce_coalesced", "tensors", tensors, None)
    out = Written("all_reduce_coalesced", "tensors", argument)
    call = member.begin_call("all_reduce_coalesced", reduction, out.dense)
    return member.run(
        call,
        "all_reduce",
        out.dense,
        out.dense,
        reduction=reduction,
        asynchronous=async_op,
        finish=out.finish,
        result=out.given,
    )


def reduce(
    tensor: Any,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Reduce on the rank `dst` alone; the tensors of the others are unchanged.

    Args:
        tensor: The tensor, of the same shape and dtype on each rank.
        dst: The rank in the whole job that receives.
        op: How elements are combined.
        group: The ranks that take part; None: all.
        async_op: Whether to return at once, with a `Work` to wait for.
        group_dst: The rank inside `group` that receives, instead of `dst`.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:one", rank=0, world_size=1)
        >>> dist.reduce(pc.ones(2), dst=0)
        >>> dist.destroy_process_group()
    """
    member = member_for("reduce", group)
    if member is None:
        return None
    reduction = reduction_name("reduce", op)
    root = root_rank("reduce", member, dst, group_dst, "dst")
    out = Written("reduce", "tensor", (tensor,))
    call = member.begin_call("reduce", f"{reduction}, dst={member.ranks[root]}", (tensor,))
    here = member.rank() == root
    return member.run(
        call,
        "reduce",
        out.dense,
        out.dense if here else (),
        reduction=reduction,
        peer=root,
        asynchronous=async_op,
        finish=out.finish if here else None,
        result=out.given,
    )


def reduce_scatter(
    output: Any,
    input_list: Sequence[Any],
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Write into `output` the sum, or another reduction, over all ranks of ``input_list[rank]``.

    Args:
        output: written in place; of one shape and dtype on all ranks.
        input_list: one tensor for each rank.
        op: a `ReduceOp`.
        group: None: all processes.
        async_op: whether to return a `Work` at once.

    Raises:
        MismatchError, RankLost, CollectiveTimeout: as `all_reduce`.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:parts", rank=0, world_size=1)
        >>> x = pc.empty(2)
        >>> dist.reduce_scatter(x, [pc.ones(2)])
        >>> x
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    member = member_for("reduce_scatter", group)
    if member is None:
        return None
    tensors = tensor_list("reduce_scatter", "input_list", input_list, member.size(), output)
    inputs = [readable("reduce_scatter", "input_list", each) for each in tensors]
    return _reduce_scatter("reduce_scatter", member, output, inputs, op, async_op)


def _reduce_scatter(
    caller: str, own: ProcessGroup, output: Any, inputs: list[Any], op: ReduceOp, async_op: bool
) -> Work | None:
    reduction = reduction_name(caller, op)
    out = Written(caller, "output", (output,))
    call = own.begin_call(caller, reduction, (output,))
    return own.run(
        call,
        "reduce_scatter",
        inputs,
        out.dense,
        reduction=reduction,
        asynchronous=async_op,
        finish=out.finish,
        result=out.given,
    )


def reduce_scatter_tensor(
    output: Any, input: Any, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Do a `reduce_scatter` with the parts for the ranks one after the other in one tensor.

    Args:
        output: Receives this rank's part.
        input: All parts, one after the other along dimension 0.
        op: How elements are combined.
        group: The ranks that take part; None: all.
        async_op: Whether to return at once, with a `Work` to wait for.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:part", rank=0, world_size=1)
        >>> x = pc.empty(2)
        >>> dist.reduce_scatter_tensor(x, pc.ones(2))
        >>> x
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    caller = "reduce_scatter_tensor"
    member = member_for(caller, group)
    if member is None:
        return None
    source = readable(caller, "input", input)
    part = check_tensor(caller, "output", output)
    parts = slices_of(caller, "input", source, member.size(), part, "output")
    return _reduce_scatter(caller, member, output, parts, op, async_op)
