"""Collectives of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from plait_distributed._arguments import (
    Written,
    check_tensor,
    core,
    member_for,
    readable,
    root_rank,
    tensor_list,
)
from plait_distributed._errors import MismatchError
from plait_distributed._process_group import ProcessGroup
from plait_distributed._reduce_op import ReduceOp, reduction_name
from plait_distributed._work import Work, seconds_of

__all__ = [
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "gather",
    "monitored_barrier",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
]


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
    mine = member_for("all_reduce", group)
    if mine is None:
        return None
    reduction = reduction_name("all_reduce", op)
    out = Written("all_reduce", "tensor", (tensor,))
    call = mine.begin_call("all_reduce", reduction, (tensor,))
    return mine.run(
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
    """As `all_reduce`, of several tensors of one dtype at once.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:sums", rank=0, world_size=1)
        >>> dist.all_reduce_coalesced([pc.ones(2), pc.ones(3, 3)])
        >>> dist.destroy_process_group()
    """
    mine = member_for("all_reduce_coalesced", group)
    if mine is None:
        return None
    reduction = reduction_name("all_reduce_coalesced", op)
    given = tensor_list("all_reduce_coalesced", "tensors", tensors, None)
    out = Written("all_reduce_coalesced", "tensors", given)
    call = mine.begin_call("all_reduce_coalesced", reduction, out.dense)
    return mine.run(
        call,
        "all_reduce",
        out.dense,
        out.dense,
        reduction=reduction,
        asynchronous=async_op,
        finish=out.finish,
        result=out.given,
    )


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
    mine = member_for("broadcast", group)
    if mine is None:
        return None
    root = root_rank("broadcast", mine, src, group_src, "src")
    out = Written("broadcast", "tensor", (tensor,))
    call = mine.begin_call("broadcast", f"src={mine.ranks[root]}", (tensor,))
    return mine.run(
        call,
        "broadcast",
        out.dense,
        out.dense,
        peer=root,
        asynchronous=async_op,
        finish=out.finish if mine.rank() != root else None,
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
    """As `all_reduce`, on the rank `dst` alone; the tensors of the others stay as they are.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:one", rank=0, world_size=1)
        >>> dist.reduce(pc.ones(2), dst=0)
        >>> dist.destroy_process_group()
    """
    mine = member_for("reduce", group)
    if mine is None:
        return None
    reduction = reduction_name("reduce", op)
    root = root_rank("reduce", mine, dst, group_dst, "dst")
    out = Written("reduce", "tensor", (tensor,))
    call = mine.begin_call("reduce", f"{reduction}, dst={mine.ranks[root]}", (tensor,))
    here = mine.rank() == root
    return mine.run(
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
    who: str, outputs: Sequence[Any], tensor: Any, group: Any, async_op: bool
) -> Work | None:
    mine = member_for(who, group)
    if mine is None:
        return None
    source = readable(who, "tensor", tensor)
    out = Written(who, "tensor_list", tensor_list(who, "tensor_list", outputs, mine.size(), source))
    call = mine.begin_call(who, "", (tensor,))
    return mine.run(
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
    """As `all_gather`, of several tensors: ``output_tensor_lists[rank][i]`` gets a rank's i-th.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:lists", rank=0, world_size=1)
        >>> parts = [[pc.empty(2), pc.empty(3)]]
        >>> dist.all_gather_coalesced(parts, [pc.ones(2), pc.zeros(3)])
        >>> parts
        [[tensor([1., 1.]), tensor([0., 0., 0.])]]
        >>> dist.destroy_process_group()
    """
    who = "all_gather_coalesced"
    works = [
        _all_gather(who, [each[i] for each in output_tensor_lists], x, group, True)
        for i, x in enumerate(input_tensor_list)
    ]
    joined = _joined([work for work in works if work is not None], list(output_tensor_lists))
    if async_op or not joined:
        return joined
    joined.wait()
    return None


def _joined(works: Sequence[Work], result: Any) -> Work | None:
    """Return the work that is done when all of these are."""

    def finish() -> None:
        for work in works:
            work.wait()

    return Work([part for work in works for part in work.parts], result, finish) if works else None


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
    who = "all_gather_into_tensor"
    mine = member_for(who, group)
    if mine is None:
        return None
    source = readable(who, "input_tensor", input_tensor)
    parts = _slices(who, "output_tensor", output_tensor, mine.size(), source, "input_tensor")
    call = mine.begin_call(who, "", (input_tensor,))
    return mine.run(
        call, "all_gather", [source], parts, asynchronous=async_op, result=[output_tensor]
    )


def _slices(who: str, name: str, whole: Any, size: int, part: Any, other: str) -> list[Any]:
    """Return the part of each rank in a tensor."""
    plain = check_tensor(who, name, whole)
    n = part.numel()
    if plain.numel() != size * n or plain.dtype != part.dtype:
        raise ValueError(
            f"{who}: `{name}` must have {size} times the elements of `{other}` and its dtype, "
            f"{size} * {n} of {part.dtype}; got shape {tuple(plain.shape)} of {plain.dtype}"
        )
    if not plain.is_contiguous():
        raise ValueError(f"{who}: `{name}` must be contiguous, got strides {plain.stride()}")
    flat = plain.view(-1)
    return [flat[i * n : (i + 1) * n] for i in range(size)]


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
    mine = member_for("gather", group)
    if mine is None:
        return None
    root = root_rank("gather", mine, dst, group_dst, "dst")
    source = readable("gather", "tensor", tensor)
    outputs: Sequence[Any] = ()
    if mine.rank() == root:
        given = [] if gather_list is None else gather_list
        outputs = tensor_list("gather", "gather_list", given, mine.size(), source)
    elif gather_list:
        raise ValueError("gather: `gather_list` must be None on ranks other than `dst`")
    out = Written("gather", "gather_list", outputs)
    call = mine.begin_call("gather", f"dst={mine.ranks[root]}", (tensor,))
    return mine.run(
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
    mine = member_for("scatter", group)
    if mine is None:
        return None
    root = root_rank("scatter", mine, src, group_src, "src")
    out = Written("scatter", "tensor", (tensor,))
    inputs: list[Any] = []
    if mine.rank() == root:
        given = [] if scatter_list is None else scatter_list
        inputs = [
            readable("scatter", "scatter_list", each)
            for each in tensor_list("scatter", "scatter_list", given, mine.size(), tensor)
        ]
    elif scatter_list:
        raise ValueError("scatter: `scatter_list` must be None on ranks other than `src`")
    call = mine.begin_call("scatter", f"src={mine.ranks[root]}", (tensor,))
    return mine.run(
        call,
        "scatter",
        inputs,
        out.dense,
        peer=root,
        asynchronous=async_op,
        finish=out.finish,
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
    mine = member_for("reduce_scatter", group)
    if mine is None:
        return None
    given = tensor_list("reduce_scatter", "input_list", input_list, mine.size(), output)
    inputs = [readable("reduce_scatter", "input_list", each) for each in given]
    return _reduce_scatter("reduce_scatter", mine, output, inputs, op, async_op)


def _reduce_scatter(
    who: str, mine: ProcessGroup, output: Any, inputs: list[Any], op: ReduceOp, async_op: bool
) -> Work | None:
    reduction = reduction_name(who, op)
    out = Written(who, "output", (output,))
    call = mine.begin_call(who, reduction, (output,))
    return mine.run(
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
    output: Any,
    input: Any,
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """As `reduce_scatter`, with the parts for the ranks one behind the other in one tensor.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:part", rank=0, world_size=1)
        >>> x = pc.empty(2)
        >>> dist.reduce_scatter_tensor(x, pc.ones(2))
        >>> x
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    who = "reduce_scatter_tensor"
    mine = member_for(who, group)
    if mine is None:
        return None
    source = readable(who, "input", input)
    part = check_tensor(who, "output", output)
    parts = _slices(who, "input", source, mine.size(), part, "output")
    return _reduce_scatter(who, mine, output, parts, op, async_op)


def all_to_all(
    output_tensor_list: Sequence[Any],
    input_tensor_list: Sequence[Any],
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Send ``input_tensor_list[i]`` to rank i, and get the i-th output from it.

    Sizes may differ from pair to pair; ranks tell each other theirs first.

    Args:
        output_tensor_list: one tensor for each rank, written in place.
        input_tensor_list: one tensor for each rank.
        group: None: all processes.
        async_op: whether to return a `Work` when the sizes are known.

    Raises:
        MismatchError: a rank sends another size than is received, or as `all_reduce`.
        RankLost, CollectiveTimeout: as `all_reduce`.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:each", rank=0, world_size=1)
        >>> parts = [pc.empty(2)]
        >>> dist.all_to_all(parts, [pc.ones(2)])
        >>> parts
        [tensor([1., 1.])]
        >>> dist.destroy_process_group()
    """
    mine = member_for("all_to_all", group)
    if mine is None:
        return None
    n = mine.size()
    inputs = [
        readable("all_to_all", "input_tensor_list", each)
        for each in tensor_list("all_to_all", "input_tensor_list", input_tensor_list, n)
    ]
    given = tensor_list("all_to_all", "output_tensor_list", output_tensor_list, n)
    out = Written("all_to_all", "output_tensor_list", given)
    return _all_to_all("all_to_all", mine, out.dense, inputs, async_op, out.finish, out.given)


def all_to_all_single(
    output: Any,
    input: Any,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Send a part of `input` to each rank, and write what comes into `output`, by rank.

    Args:
        output: contiguous, written in place.
        input: divided in its first dimension.
        output_split_sizes: lengths of the parts that come; None: equal parts.
        input_split_sizes: lengths of the parts that are sent; None: equal parts.
        group: None: all processes.
        async_op: whether to return a `Work` at once.

    If one rank gives sizes, all do.

    Raises:
        MismatchError, RankLost, CollectiveTimeout: as `all_to_all`.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:single", rank=0, world_size=1)
        >>> x = pc.empty(2)
        >>> dist.all_to_all_single(x, pc.ones(2))
        >>> x
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    who = "all_to_all_single"
    mine = member_for(who, group)
    if mine is None:
        return None
    source = readable(who, "input", input)
    target = check_tensor(who, "output", output)
    if not target.is_contiguous():
        raise ValueError(f"{who}: `output` must be contiguous, got strides {target.stride()}")
    inputs = _rows(who, "input", source, input_split_sizes, mine.size())
    outputs = _rows(who, "output", target, output_split_sizes, mine.size())
    if output_split_sizes or input_split_sizes:
        return _all_to_all(who, mine, outputs, inputs, async_op, None, [output])
    if inputs[0].numel() != outputs[0].numel():
        raise ValueError(
            f"{who}: `output` and `input` must have one size without split sizes, got shapes "
            f"{tuple(target.shape)} and {tuple(source.shape)}"
        )
    call = mine.begin_call(who, "", (source,))
    return mine.run(call, "all_to_all", inputs, outputs, asynchronous=async_op, result=[output])


def _rows(who: str, name: str, x: Any, sizes: Sequence[int] | None, ranks: int) -> list[Any]:
    length = x.shape[0] if x.ndim else 0
    if not sizes:
        if x.ndim == 0 or length % ranks:
            raise ValueError(
                f"{who}: `{name}` must have a first dimension that the {ranks} ranks divide, or "
                f"`{name}_split_sizes`; got shape {tuple(x.shape)}"
            )
        sizes = [length // ranks] * ranks
    if len(sizes) != ranks or sum(sizes) != length or min(sizes) < 0:
        raise ValueError(
            f"{who}: `{name}_split_sizes` must be {ranks} lengths with the sum {length}, got "
            f"{list(sizes)}"
        )
    parts, first = [], 0
    for size in sizes:
        parts.append(x[first : first + size])
        first += size
    return parts


def _all_to_all(
    who: str,
    mine: ProcessGroup,
    outputs: Sequence[Any],
    inputs: Sequence[Any],
    async_op: bool,
    finish: Callable[[], None] | None,
    result: Any,
) -> Work | None:
    """Parts of any sizes: the largest one's room for each, if they differ."""
    most = _agree_on_sizes(
        who, mine, [x.numel() for x in inputs], [x.numel() for x in outputs], inputs[0].dtype
    )
    call = mine.begin_call(who, f"at most {most} elements", ())
    if most == 0:
        return mine.run(call, "barrier", (), (), asynchronous=async_op, finish=finish)
    if all(x.numel() == most for x in (*inputs, *outputs)):
        sent, received, back = list(inputs), list(outputs), finish
    else:
        new = core()
        sent = [new.zeros(most, dtype=inputs[0].dtype) for _ in inputs]
        received = [new.empty(most, dtype=inputs[0].dtype) for _ in outputs]
        for room, x in zip(sent, inputs, strict=True):
            room[: x.numel()].copy_(x.view(-1))

        def back() -> None:
            for x, room in zip(outputs, received, strict=True):
                x.view(-1).copy_(room[: x.numel()])
            if finish is not None:
                finish()

    return mine.run(
        call, "all_to_all", sent, received, asynchronous=async_op, finish=back, result=result
    )


def _agree_on_sizes(
    who: str, mine: ProcessGroup, sent: list[int], received: list[int], dtype: Any
) -> int:
    """Return the size of the largest part of all ranks; an error on all if any do not fit."""
    new, n = core(), mine.size()
    call = mine.begin_call(who, str(dtype), ())
    told = [new.empty(2 * n, dtype=new.int64) for _ in range(n)]
    mine.run(call, "all_gather", [new.tensor([*sent, *received], dtype=new.int64)], told)
    table = [x.tolist() for x in told]
    for a in range(n):
        for b in range(n):
            if table[a][b] != table[b][n + a]:
                raise MismatchError(
                    f"{call}: rank {mine.ranks[a]} sends {table[a][b]} elements to rank "
                    f"{mine.ranks[b]}, which receives {table[b][n + a]}"
                )
    most: int = max(max(row) for row in table)
    return most


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait until all ranks have called it.

    Args:
        group: None: all processes.
        async_op: whether to return a `Work` at once.
        device_ids: unused.

    Raises:
        MismatchError, RankLost, CollectiveTimeout: as `all_reduce`.

    Example:
        >>> import plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:barrier", rank=0, world_size=1)
        >>> dist.barrier()
        >>> dist.destroy_process_group()
    """
    mine = member_for("barrier", group)
    if mine is None:
        return None
    call = mine.begin_call("barrier", "", ())
    return mine.run(call, "barrier", (), (), asynchronous=async_op)


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Wait until all ranks have called it; the error names those that did not come in time.

    Args:
        group: None: all processes.
        timeout: seconds or a `datetime.timedelta`; None: the group's.
        wait_all_ranks: unused: all ranks that did not come are named in any case.

    Raises:
        CollectiveTimeout: some did not come; the group is broken then.
        MismatchError, RankLost: as `all_reduce`.

    Example:
        >>> import plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:monitored", rank=0, world_size=1)
        >>> dist.monitored_barrier(timeout=5)
        >>> dist.destroy_process_group()
    """
    mine = member_for("monitored_barrier", group)
    if mine is None:
        return
    seconds = 0.0 if timeout is None else seconds_of("monitored_barrier", timeout)
    call = mine.begin_call("monitored_barrier", "", ())
    mine.start(call, "barrier", timeout=seconds)
