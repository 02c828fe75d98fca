"""Tensors of each rank for each: all_to_all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from plait_distributed._arguments import (
    Written,
    check_tensor,
    core,
    member_for,
    readable,
    tensor_list,
)
from plait_distributed._errors import MismatchError
from plait_distributed._process_group import ProcessGroup
from plait_distributed._work import Work


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
    member = member_for("all_to_all", group)
    if member is None:
        return None
    n = member.size()
    inputs = [
        readable("all_to_all", "input_tensor_list", each)
        for each in tensor_list("all_to_all", "input_tensor_list", input_tensor_list, n)
    ]
    tensors = tensor_list("all_to_all", "output_tensor_list", output_tensor_list, n)
    out = Written("all_to_all", "output_tensor_list", tensors)
    return _all_to_all("all_to_all", member, out.dense, inputs, async_op, out.finish, out.given)


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
    caller = "all_to_all_single"
    member = member_for(caller, group)
    if member is None:
        return None
    source = readable(caller, "input", input)
    target = check_tensor(caller, "output", output)
    if not target.is_contiguous():
        raise ValueError(f"{caller}: `output` must be contiguous, got strides {target.stride()}")
    inputs = _rows(caller, "input", source, input_split_sizes, member.size())
    outputs = _rows(caller, "output", target, output_split_sizes, member.size())
    if output_split_sizes or input_split_sizes:
        return _all_to_all(caller, member, outputs, inputs, async_op, None, [output])
    if inputs[0].numel() != outputs[0].numel():
        raise ValueError(
            f"{caller}: `output` and `input` must have one size without split sizes, got shapes "
            f"{tuple(target.shape)} and {tuple(source.shape)}"
        )
    call = member.begin_call(caller, "", (source,))
    return member.run(call, "all_to_all", inputs, outputs, asynchronous=async_op, result=[output])


def _rows(caller: str, name: str, x: Any, sizes: Sequence[int] | None, ranks: int) -> list[Any]:
    length = x.shape[0] if x.ndim else 0
    if not sizes:
        if x.ndim == 0 or length % ranks:
            raise ValueError(
                f"{caller}: `{name}` must have a first dimension that the {ranks} ranks divide, or "
                f"`{name}_split_sizes`; got shape {tuple(x.shape)}"
            )
        sizes = [length // ranks] * ranks
    if len(sizes) != ranks or sum(sizes) != length or min(sizes) < 0:
        raise ValueError(
            f"{caller}: `{name}_split_sizes` must be {ranks} lengths with the sum {length}, got "
            f"{list(sizes)}"
        )
    parts, first = [], 0
    for size in sizes:
        parts.append(x[first : first + size])
        first += size
    return parts


def _all_to_all(
    caller: str,
    own: ProcessGroup,
    outputs: Sequence[Any],
    inputs: Sequence[Any],
    async_op: bool,
    finish: Callable[[], None] | None,
    result: Any,
) -> Work | None:
    """Parts of any sizes: the largest one's room for each, if they differ."""
    most = _agree_on_sizes(
        caller, own, [x.numel() for x in inputs], [x.numel() for x in outputs], inputs[0].dtype
    )
    call = own.begin_call(caller, f"at most {most} elements", ())
    if most == 0:
        return own.run(call, "barrier", (), (), asynchronous=async_op, finish=finish)
    if all(x.numel() == most for x in (*inputs, *outputs)):
        sent, received, back = list(inputs), list(outputs), finish
    else:
        new = core()
        like = {"dtype": inputs[0].dtype, "device": inputs[0].device}
        sent = [new.zeros(most, **like) for _ in inputs]
        received = [new.empty(most, **like) for _ in outputs]
        for room, x in zip(sent, inputs, strict=True):
            room[: x.numel()].copy_(x.view(-1))

        def back() -> None:
            for x, room in zip(outputs, received, strict=True):
                x.view(-1).copy_(room[: x.numel()])
            if finish is not None:
                finish()

    return own.run(
        call, "all_to_all", sent, received, asynchronous=async_op, finish=back, result=result
    )


def _agree_on_sizes(
    caller: str, own: ProcessGroup, sent: list[int], received: list[int], dtype: Any
) -> int:
    """Return the size of the largest part of all ranks; an error on all if any do not fit."""
    new, n = core(), own.size()
    call = own.begin_call(caller, str(dtype), ())
    messages = [new.empty(2 * n, dtype=new.int64) for _ in range(n)]
    own.run(call, "all_gather", [new.tensor([*sent, *received], dtype=new.int64)], messages)
    table = [x.tolist() for x in messages]
    for a in range(n):
        for b in range(n):
            if table[a][b] != table[b][n + a]:
                raise MismatchError(
                    f"{call}: rank {own.ranks[a]} sends {table[a][b]} elements to rank "
                    f"{own.ranks[b]}, which receives {table[b][n + a]}"
                )
    most: int = max(max(row) for row in table)
    return most
