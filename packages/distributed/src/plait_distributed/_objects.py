"""Collectives of Python objects, which are pickled."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from plait_distributed._arguments import core, member_for, root_rank
from plait_distributed._messages import recv, send
from plait_distributed._process_group import ProcessGroup


def _bytes_of(thing: Any) -> Any:
    """Return the pickle of an object, a tensor of uint8."""
    new = core()
    return new.frombuffer(bytearray(pickle.dumps(thing)), dtype=new.uint8)


def _object_of(data: Any, size: int) -> Any:
    return pickle.loads(data[:size].numpy().tobytes())


def _sizes(caller: str, own: ProcessGroup, size: int) -> list[int]:
    """Return the sizes of all ranks."""
    new = core()
    messages = [new.empty(1, dtype=new.int64) for _ in range(own.size())]
    call = own.begin_call(caller, "", ())
    own.run(call, "all_gather", [new.tensor([size], dtype=new.int64)], messages)
    return [int(x.item()) for x in messages]


def _padded(data: Any, size: int) -> Any:
    new = core()
    room = new.zeros(size, dtype=new.uint8)
    room[: data.numel()].copy_(data)
    return room


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Write the objects of all ranks into the list, by rank.

    The objects are pickled, and unpickled on the other ranks: what they unpickle can run code, so
    all processes of the job must be trusted.

    Args:
        object_list: a list with an entry for each rank, which is replaced.
        obj: this rank's.
        group: None: all processes.

    Example:
        >>> import plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:objects", rank=0, world_size=1)
        >>> found = [None]
        >>> dist.all_gather_object(found, {"loss": 1.5})
        >>> found
        [{'loss': 1.5}]
        >>> dist.destroy_process_group()
    """
    member = member_for("all_gather_object", group)
    if member is None:
        return
    _check_list("all_gather_object", "object_list", object_list, member.size())
    data = _bytes_of(obj)
    sizes = _sizes("all_gather_object", member, data.numel())
    new, most = core(), max(sizes)
    rooms = [new.empty(most, dtype=new.uint8) for _ in sizes]
    call = member.begin_call("all_gather_object", f"at most {most} bytes", ())
    member.run(call, "all_gather", [_padded(data, most)], rooms)
    object_list[:] = [_object_of(room, n) for room, n in zip(rooms, sizes, strict=True)]


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Write the objects of all ranks into the list of the rank `dst`, which unpickles them.

    What is unpickled can run code, so all processes of the job must be trusted.

    Args:
        obj: this rank's.
        object_gather_list: on the rank `dst`, a list with an entry for each rank.
        dst: a rank among all processes; 0 by default.
        group: None: all processes.
        group_dst: in place of `dst`, a rank in the group.

    Example:
        >>> import plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:gathered", rank=0, world_size=1)
        >>> found = [None]
        >>> dist.gather_object("a", found)
        >>> found
        ['a']
        >>> dist.destroy_process_group()
    """
    member = member_for("gather_object", group)
    if member is None:
        return
    root = root_rank("gather_object", member, dst, group_dst, "dst")
    here = member.rank() == root
    if here:
        _check_list("gather_object", "object_gather_list", object_gather_list, member.size())
    data = _bytes_of(obj)
    sizes = _sizes("gather_object", member, data.numel())
    new, most = core(), max(sizes)
    rooms = [new.empty(most, dtype=new.uint8) for _ in sizes] if here else []
    call = member.begin_call("gather_object", f"at most {most} bytes, dst={member.ranks[root]}", ())
    member.run(call, "gather", [_padded(data, most)], rooms, peer=root)
    if here and object_gather_list is not None:
        pairs = zip(rooms, sizes, strict=True)
        object_gather_list[:] = [_object_of(room, n) for room, n in pairs]


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Replace the objects of the list by those of one rank, which the others unpickle.

    What is unpickled can run code, so the rank `src` must be trusted.

    Args:
        object_list: of one length on all ranks.
        src: a rank among all processes; 0 by default.
        group: None: all processes.
        device: unused.
        group_src: in place of `src`, a rank in the group.

    Example:
        >>> import plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:told", rank=0, world_size=1)
        >>> dist.broadcast_object_list([1, "a"], src=0)
        >>> dist.destroy_process_group()
    """
    caller = "broadcast_object_list"
    member = member_for(caller, group)
    if member is None:
        return
    root = root_rank(caller, member, src, group_src, "src")
    new, here = core(), member.rank() == root
    parts = [_bytes_of(each) for each in object_list] if here else []
    lengths = [part.numel() for part in parts] if here else [0] * len(object_list)
    sizes = new.tensor(lengths, dtype=new.int64)
    detail = f"{len(object_list)} objects, src={member.ranks[root]}"
    member.run(member.begin_call(caller, detail, ()), "broadcast", [sizes], [sizes], peer=root)
    n = int(sizes.sum().item())
    data = new.cat(parts) if parts else new.empty(n, dtype=new.uint8)
    member.run(member.begin_call(caller, f"{n} bytes", ()), "broadcast", [data], [data], peer=root)
    if here:
        return
    first = 0
    for i, size in enumerate(sizes.tolist()):
        object_list[i] = _object_of(data[first:], size)
        first += size


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: Sequence[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Write into the output list the object for this rank from the list of the rank `src`.

    It is unpickled, which can run code, so the rank `src` must be trusted.

    Args:
        scatter_object_output_list: its first entry is replaced.
        scatter_object_input_list: on the rank `src`, an object for each rank.
        src: a rank among all processes; 0 by default.
        group: None: all processes.
        group_src: in place of `src`, a rank in the group.

    Example:
        >>> import plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:scattered", rank=0, world_size=1)
        >>> found = [None]
        >>> dist.scatter_object_list(found, ["a"])
        >>> found
        ['a']
        >>> dist.destroy_process_group()
    """
    caller = "scatter_object_list"
    member = member_for(caller, group)
    if member is None:
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError(f"{caller}: `scatter_object_output_list` must be a list with an entry")
    root = root_rank(caller, member, src, group_src, "src")
    new, here = core(), member.rank() == root
    parts = []
    if here:
        _check_list(caller, "scatter_object_input_list", scatter_object_input_list, member.size())
        parts = [_bytes_of(each) for each in scatter_object_input_list or ()]
    sizes = new.tensor(
        [part.numel() for part in parts] if here else [0] * member.size(), dtype=new.int64
    )
    detail = f"src={member.ranks[root]}"
    member.run(member.begin_call(caller, detail, ()), "broadcast", [sizes], [sizes], peer=root)
    lengths = sizes.tolist()
    most = max(lengths)
    room = new.empty(most, dtype=new.uint8)
    call = member.begin_call(caller, f"at most {most} bytes", ())
    member.run(call, "scatter", [_padded(part, most) for part in parts], [room], peer=root)
    scatter_object_output_list[0] = _object_of(room, lengths[member.rank()])


def send_object_list(
    object_list: Sequence[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
) -> None:
    """Send objects to one rank, which unpickles them in `recv_object_list`.

    Args:
        object_list: The objects, which pickle sends; receiving replaces the elements.
        dst: The rank in the whole job that receives.
        group: The ranks that take part; None: all.
        device: Accepted as PyTorch has it.
        group_dst: The rank inside `group` that receives, instead of `dst`.

    Example:
        >>> import plait_distributed as dist
        >>> def tell(rank):
        ...     dist.send_object_list(["a", 1], dst=rank)
    """
    new = core()
    parts = [_bytes_of(each) for each in object_list]
    sizes = new.tensor([part.numel() for part in parts], dtype=new.int64)
    send(sizes, dst, group, group_dst=group_dst)
    send(new.cat(parts), dst, group, group_dst=group_dst)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> int:
    """Replace the objects of the list by those that one rank sends; return the rank.

    They are unpickled, which can run code, so the sender must be trusted.

    Args:
        object_list: The objects, which pickle sends; receiving replaces the elements.
        src: The rank in the whole job that sends; None: any.
        group: The ranks that take part; None: all.
        device: Accepted as PyTorch has it.
        group_src: The rank inside `group` that sends, instead of `src`.

    Example:
        >>> import plait_distributed as dist
        >>> def ask(rank):
        ...     found = [None, None]
        ...     dist.recv_object_list(found, src=rank)
        ...     return found
    """
    new = core()
    sizes = new.empty(len(object_list), dtype=new.int64)
    source = recv(sizes, src, group, group_src=group_src)
    data = new.empty(int(sizes.sum().item()), dtype=new.uint8)
    recv(data, src, group, group_src=group_src)
    first = 0
    for i, size in enumerate(sizes.tolist()):
        object_list[i] = _object_of(data[first:], size)
        first += size
    return source


def _check_list(caller: str, name: str, argument: Any, size: int) -> None:
    if not isinstance(argument, (list, tuple)) or len(argument) != size:
        got = f"{len(argument)}" if isinstance(argument, (list, tuple)) else type(argument).__name__
        raise ValueError(
            f"{caller}: `{name}` must be a list of {size}, one for each rank; got {got}"
        )
