"""Tensors copied between ranks: broadcast, gather, all_gather, scatter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plait_distributed._arguments import (
    Written,
    core,
    member_for,
    readable,
    root_rank,
    slices_of,
    tensor_list,
)
from plait_distributed._work import Work

_ALIGNMENT = 16  # bytes


def broadcast(
    tensor: Any,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Replace the tensor by that of one rank.

    Args:
        tensor: written in place, except on the rank `src`.
        src: a rank among all processes.
        group: None: all processes.
        async_op: whether to return a `Work` at once.
        group_src: in place of `src`, a rank in the group.

    Raises:
        MismatchError, RankLost, CollectiveTimeout: as `all_reduce`.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:same", rank=0, world_size=1)
        >>> dist.broadcast(pc.ones(2), src=0)
        >>> dist.destroy_process_group()
    """
    member = member_for("broadcast", group)
    if member is None:
        return None
    root = root_rank("broadcast", member, src, group_src, "src")
    out = Written("broadcast", "tensor", (tensor,))
    call = member.begin_call("broadcast", f"src={member.ranks[root]}", (tensor,))
    return member.run(
        call,
        "broadcast",
        out.dense,
        out.dense,
        peer=root,
        asynchronous=async_op,
        finish=out.finish if member.rank() != root else None,
        result=out.given,
    )


def all_gather(
    tensor_list: Sequence[Any], tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Write the tensors of all ranks into the list, by rank.

    Args:
        tensor_list: one tensor for each rank, written in place.
        tensor: this rank's, of one shape and dtype on all ranks.
        group: None: all processes.
        async_op: whether to return a `Work` at once.

    Raises:
        MismatchError, RankLost, CollectiveTimeout: as `all_reduce`.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:all", rank=0, world_size=1)
        >>> parts = [pc.empty(2)]
        >>> dist.all_gather(parts, pc.ones(2))
        >>> parts
        [tensor([1., 1.])]
        >>> dist.destroy_process_group()
    """
    return _all_gather("all_gather", tensor_list, tensor, group, async_op)


def _all_gather(
    caller: str, outputs: Sequence[Any], tensor: Any, group: Any, async_op: bool
) -> Work | None:
    member = member_for(caller, group)
    if member is None:
        return None
    source = readable(caller, "tensor", tensor)
    out = Written(
        caller, "tensor_list", tensor_list(caller, "tensor_list", outputs, member.size(), source)
    )
    call = member.begin_call(caller, "", (tensor,))
    return member.run(
        call,
        "all_gather",
        [source],
        out.dense,
        asynchronous=async_op,
        finish=out.finish,
        result=out.given,
    )


def all_gather_coalesced(
    output_tensor_lists: Sequence[Sequence[Any]],
    input_tensor_list: Sequence[Any],
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Do an `all_gather` of several tensors: ``output_tensor_lists[rank][i]`` gets a rank's i-th.

    Args:
        output_tensor_lists: For each tensor a list of tensors, one for each rank, that receive.
        input_tensor_list: The tensors of this rank.
        group: The ranks that take part; None: all.
        async_op: Whether to return at once, with a `Work` to wait for.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:lists", rank=0, world_size=1)
        >>> parts = [[pc.empty(2), pc.empty(3)]]
        >>> dist.all_gather_coalesced(parts, [pc.ones(2), pc.zeros(3)])
        >>> parts
        [[tensor([1., 1.]), tensor([0., 0., 0.])]]
        >>> dist.destroy_process_group()
    """
    caller = "all_gather_coalesced"
    member = member_for(caller, group)
    if member is None:
        return None
    sources = [readable(caller, "input_tensor_list", x) for x in input_tensor_list]
    outs = []
    for i, source in enumerate(sources):
        outputs = [each[i] for each in output_tensor_lists]
        checked = tensor_list(caller, "output_tensor_lists", outputs, member.size(), source)
        outs.append(Written(caller, "output_tensor_lists", checked))
    # One collective, so that ranks whose lists differ do not call different numbers of them.
    new = core()
    packed = [_as_bytes(source) for source in sources]
    joined = new.cat(packed) if packed else new.empty(0, dtype=new.uint8)
    rooms = [new.empty_like(joined) for _ in range(member.size())]

    def finish() -> None:
        for rank, room in enumerate(rooms):
            parts = room.split([each.numel() for each in packed]) if packed else ()
            for out, part in zip(outs, parts, strict=True):
                to = out.dense[rank]
                to.copy_(part[: to.numel() * to.element_size()].view(to.dtype).view(to.shape))
        for out in outs:
            if out.finish is not None:
                out.finish()

    return member.run(
        member.begin_call(caller, "", input_tensor_list),
        "all_gather",
        [joined],
        rooms,
        asynchronous=async_op,
        finish=finish,
        result=list(output_tensor_lists),
    )


def _as_bytes(dense: Any) -> Any:
    """Return the bytes of a tensor, up to a multiple of the size of every element."""
    new = core()
    data = dense.reshape(-1).view(new.uint8)
    rest = -data.numel() % _ALIGNMENT
    return new.cat([data, data.new_zeros(rest)]) if rest else data


def all_gather_into_tensor(
    output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Write the tensors of all ranks into one, one behind the other.

    Args:
        output_tensor: contiguous, with as many elements as all inputs have together: the inputs
            are stacked or concatenated in their first dimension, which is one in memory.
        input_tensor: this rank's, of one shape and dtype on all ranks.
        group: None: all processes.
        async_op: whether to return a `Work` at once.

    Raises:
        MismatchError, RankLost, CollectiveTimeout: as `all_reduce`.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:into", rank=0, world_size=1)
        >>> x = pc.empty(2)
        >>> dist.all_gather_into_tensor(x, pc.ones(2))
        >>> x
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    caller = "all_gather_into_tensor"
    member = member_for(caller, group)
    if member is None:
        return None
    source = readable(caller, "input_tensor", input_tensor)
    parts = slices_of(caller, "output_tensor", output_tensor, member.size(), source, "input_tensor")
    call = member.begin_call(caller, "", (input_tensor,))
    return member.run(
        call, "all_gather", [source], parts, asynchronous=async_op, result=[output_tensor]
    )


def gather(
    tensor: Any,
    gather_list: Sequence[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Write the tensors of all ranks into the list of the rank `dst`, which alone gives one.

    Args:
        tensor: this rank's, of one shape and dtype on all ranks.
        gather_list: on the rank `dst`, one tensor for each rank.
        dst: a rank among all processes; 0 by default.
        group: None: all processes.
        async_op: whether to return a `Work` at once.
        group_dst: in place of `dst`, a rank in the group.

    Raises:
        MismatchError, RankLost, CollectiveTimeout: as `all_reduce`.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:gather", rank=0, world_size=1)
        >>> parts = [pc.empty(2)]
        >>> dist.gather(pc.ones(2), parts, dst=0)
        >>> parts
        [tensor([1., 1.])]
        >>> dist.destroy_process_group()
    """
    member = member_for("gather", group)
    if member is None:
        return None
    root = root_rank("gather", member, dst, group_dst, "dst")
    source = readable("gather", "tensor", tensor)
    outputs: Sequence[Any] = ()
    if member.rank() == root:
        tensors = [] if gather_list is None else gather_list
        outputs = tensor_list("gather", "gather_list", tensors, member.size(), source)
    elif gather_list:
        raise ValueError("gather: `gather_list` must be None on ranks other than `dst`")
    out = Written("gather", "gather_list", outputs)
    call = member.begin_call("gather", f"dst={member.ranks[root]}", (tensor,))
    return member.run(
        call,
        "gather",
        [source],
        out.dense,
        peer=root,
        asynchronous=async_op,
        finish=out.finish,
        result=out.given,
    )


def scatter(
    tensor: Any,
    scatter_list: Sequence[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Write into `tensor` the one for this rank from the list of the rank `src`.

    Args:
        tensor: written in place; of one shape and dtype on all ranks.
        scatter_list: on the rank `src`, one tensor for each rank.
        src: a rank among all processes; 0 by default.
        group: None: all processes.
        async_op: whether to return a `Work` at once.
        group_src: in place of `src`, a rank in the group.

    Raises:
        MismatchError, RankLost, CollectiveTimeout: as `all_reduce`.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:scatter", rank=0, world_size=1)
        >>> x = pc.empty(2)
        >>> dist.scatter(x, [pc.ones(2)], src=0)
        >>> x
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    member = member_for("scatter", group)
    if member is None:
        return None
    root = root_rank("scatter", member, src, group_src, "src")
    out = Written("scatter", "tensor", (tensor,))
    inputs: list[Any] = []
    if member.rank() == root:
        tensors = [] if scatter_list is None else scatter_list
        inputs = [
            readable("scatter", "scatter_list", each)
            for each in tensor_list("scatter", "scatter_list", tensors, member.size(), tensor)
        ]
    elif scatter_list:
        raise ValueError("scatter: `scatter_list` must be None on ranks other than `src`")
    call = member.begin_call("scatter", f"src={member.ranks[root]}", (tensor,))
    return member.run(
        call,
        "scatter",
        inputs,
        out.dense,
        peer=root,
        asynchronous=async_op,
        finish=out.finish,
        result=out.given,
    )
