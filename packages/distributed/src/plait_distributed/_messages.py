"""Messages from one rank to another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from plait_distributed._arguments import Written, member_for, readable, root_rank
from plait_distributed._work import Work
from plait_distributed._world import member_of


def _peer(caller: str, own: Any, rank: int | None, group_rank: int | None, name: str) -> int:
    if rank is None and group_rank is None:
        raise ValueError(f"{caller}: `{name}` must be given")
    peer = root_rank(caller, own, rank, group_rank, name)
    if peer == own.rank():
        raise ValueError(
            f"{caller}: `{name}` must be the rank of another process; got this one's, {rank}"
        )
    return peer


def _send(
    caller: str,
    tensor: Any,
    dst: int | None,
    group: Any,
    tag: int,
    group_dst: int | None,
    wait: bool,
) -> Work | None:
    member = member_for(caller, group)
    if member is None:
        return None
    peer = _peer(caller, member, dst, group_dst, "dst")
    source = readable(caller, "tensor", tensor)
    call = member.begin_message(caller, f"dst={member.ranks[peer]}, tag={tag}", tensor)
    part = member.start(call, "send", [source], (), peer=peer, tag=int(tag), asynchronous=not wait)
    return None if part is None else Work([part], [tensor], source=member.ranks[member.rank()])


def _recv(
    caller: str, tensor: Any, src: int | None, group: Any, tag: int, group_src: int | None
) -> tuple[Work | None, Callable[[], int]]:
    """Begin to receive; return the work, and what says the rank when it is done."""
    member = member_for(caller, group)
    if member is None:
        return None, lambda: -1
    out = Written(caller, "tensor", (tensor,))
    if src is None and group_src is None:
        if str(out.dense[0].device) != "cpu":
            raise NotImplementedError(f"{caller}: `src` must be given for a tensor of a device")
        call = member.begin_message(caller, f"src=any, tag={tag}", tensor)
        first = member.mailbox.first_of_all(call, out.dense[0], int(tag))
        return Work([first], [tensor], out.finish), lambda: member.ranks[first.peer]
    peer = _peer(caller, member, src, group_src, "src")
    call = member.begin_message(caller, f"src={member.ranks[peer]}, tag={tag}", tensor)
    part = member.mailbox.receive(call, out.dense[0], peer, int(tag))
    source = member.ranks[peer]
    return Work([part], [tensor], out.finish, source), lambda: source


def send(
    tensor: Any,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send a tensor to the rank `dst`; returns when that rank has it.

    Messages of one tag arrive in order; those of different tags may be received in any order.

    Args:
        tensor: what is sent.
        dst: a rank among all processes.
        group: None: all processes.
        tag: a number that the receiver gives, too.
        group_dst: in place of `dst`, a rank in the group.

    Raises:
        RankLost: the receiver died or left.
        CollectiveTimeout: it did not receive in time.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:send", rank=0, world_size=1)
        >>> dist.send(pc.ones(2), dst=0)
        Traceback (most recent call last):
            ...
        ValueError: send: `dst` must be the rank of another process; got this one's, 0
        >>> dist.destroy_process_group()
    """
    _send("send", tensor, dst, group, tag, group_dst, True)


def recv(
    tensor: Any,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive a tensor of the rank `src` into `tensor`, of its size and dtype; return the rank.

    Args:
        tensor: written in place.
        src: a rank among all processes; None: any, whose message comes first. All messages of
            the tag must have the size of `tensor` then, also those that come later.
        group: None: all processes.
        tag: the sender's number.
        group_src: in place of `src`, a rank in the group.

    Raises:
        RankLost: the sender died or left.
        CollectiveTimeout: nothing came in time.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> def receive_two(x, y):
        ...     return [dist.recv(each) for each in (x, y)]  # the ranks that sent them
    """
    work, source = _recv("recv", tensor, src, group, tag, group_src)
    if work is not None:
        work.wait()
    return source()


def isend(
    tensor: Any,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Begin to `send`.

    Args:
        tensor: The tensor, of the same shape and dtype on each rank.
        dst: The rank in the whole job that receives.
        group: The ranks that take part; None: all.
        tag: A number that send and receive must share.
        group_dst: The rank inside `group` that receives, instead of `dst`.

    Example:
        >>> import plait_distributed as dist
        >>> def exchange(x, y, other):
        ...     works = [dist.isend(x, other), dist.irecv(y, other)]
        ...     for work in works:
        ...         work.wait()
    """
    return _send("isend", tensor, dst, group, tag, group_dst, False)


def irecv(
    tensor: Any,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Begin to `recv`.

    Args:
        tensor: The tensor, of the same shape and dtype on each rank.
        src: The rank in the whole job that sends; None: any.
        group: The ranks that take part; None: all.
        tag: A number that send and receive must share.
        group_src: The rank inside `group` that sends, instead of `src`.

    Example:
        >>> import plait_distributed as dist
        >>> def receive_two(x, y, source):
        ...     works = [dist.irecv(x, source, tag=1), dist.irecv(y, source, tag=2)]
        ...     for work in works:
        ...         work.wait()
    """
    return _recv("irecv", tensor, src, group, tag, group_src)[0]


class P2POp:
    """One message of `batch_isend_irecv`.

    Args:
        op: `isend` or `irecv`.
        tensor: what is sent or written.
        peer: a rank among all processes.
        group: None: all processes.
        tag: a number that both ranks give.
        group_peer: in place of `peer`, a rank in the group.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> dist.P2POp(dist.isend, pc.ones(2), 1).peer
        1
    """

    def __init__(
        self,
        op: Callable[..., Work | None],
        tensor: Any,
        peer: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(f"P2POp: `op` must be isend or irecv, got {op!r}")
        if (peer is None) == (group_peer is None):
            raise ValueError("P2POp: give `peer` or `group_peer`")
        self.op = op
        self.tensor = tensor
        self.peer = peer
        self.group = group
        self.tag = tag
        self.group_peer = group_peer


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Begin several messages; return their works.

    On devices, ranks that have sent each other nothing yet begin with the same pair of them.

    Args:
        p2p_op_list: The operations, `P2POp` objects.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> def shift(x, y, rank, size):
        ...     ops = [
        ...         dist.P2POp(dist.isend, x, (rank + 1) % size),
        ...         dist.P2POp(dist.irecv, y, (rank - 1) % size),
        ...     ]
        ...     for work in dist.batch_isend_irecv(ops):
        ...         work.wait()
    """
    ops = list(p2p_op_list)
    if not ops or not all(isinstance(op, P2POp) for op in ops):
        raise ValueError("batch_isend_irecv: `p2p_op_list` must be a list of P2POp, not empty")
    works = [
        (i, each.op(each.tensor, each.peer, each.group, each.tag, each.group_peer))
        for i, each in sorted(enumerate(ops), key=_pair)
    ]
    return [work for _, work in sorted(works, key=lambda w: w[0]) if work is not None]


def _pair(numbered: tuple[int, P2POp]) -> tuple[int, int]:
    """Return the ranks of both ends, the lower one first, in an order that all ranks have."""
    op = numbered[1]
    member = member_of("batch_isend_irecv", op.group)
    if member is None:
        return -1, -1
    peer = op.group_peer
    if peer is None and op.peer in member.ranks:
        peer = member.ranks.index(op.peer)
    own = member.rank()
    peer = own if peer is None else int(peer)
    return min(own, peer), max(own, peer)
