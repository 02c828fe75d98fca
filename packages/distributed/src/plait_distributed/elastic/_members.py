"""Members of an elastic job, their introductions, and the decisions that they receive."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from plait_distributed._fields import read_fields
from plait_distributed._peers import Peer
from plait_multiprocessing.authentication import Channel


@dataclasses.dataclass
class Member:
    """The introduction of a rank.

    place: the launcher's RANK, which a rank that is started again keeps.
    process: host, pid and start time, as `describe_self` has them.
    address: host and port where ranks can meet at it, if they are on several hosts.
    generation: the number of the last group that it received, or the process before it in its
        place; -1: none that is known.
    group: the members of that group, by rank: place, process, and the address of its host, '' on
        one host.
    is_new: whether the process itself has been in no group.
    lost: processes that it knows as lost.
    snapshots: generation and commit of each state that it has in memory.
    shards: generation, commit, rank and number of ranks of each shard that it has in memory.
    finished: whether its training has come to its end.
    """

    place: int
    process: str
    address: tuple[str, int] | None = None
    generation: int = -1
    group: list[tuple[int, str, str]] = dataclasses.field(default_factory=list)
    is_new: bool = True
    lost: list[str] = dataclasses.field(default_factory=list)
    snapshots: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    shards: list[tuple[int, int, int, int]] = dataclasses.field(default_factory=list)
    finished: bool = False

    @classmethod
    def of(cls, message: Any) -> Member:
        """Return what a message says.

        Raises:
            ValueError: it does not describe a member.
        """
        member = read_fields(cls, message)
        for text in [member.process, *(process for _, process, _ in member.group)]:
            Peer.of(text)
        return member


@dataclasses.dataclass
class Decision:
    """The members of the next group, by rank, and its number; or why there is none.

    is_elsewhere: it may be made on another host.
    """

    generation: int
    members: list[Member]
    error: str = ""
    is_elsewhere: bool = False

    @classmethod
    def of(cls, message: dict[str, Any]) -> Decision:
        """Return what a message says."""
        members = [Member.of(each) for each in message["members"]]
        return cls(message["generation"], members, message["error"], message["is_elsewhere"])


def send(channel: Channel, message: Any) -> None:
    """Send a `Member` or a `Decision`."""
    channel.send(json.dumps(dataclasses.asdict(message)).encode())


def receive(channel: Channel) -> dict[str, Any]:
    """Return the next message."""
    message = json.loads(channel.receive())
    if not isinstance(message, dict):
        raise EOFError
    return message
