"""Members of an elastic job, what they say when they meet, and what they are told."""

from __future__ import annotations

import dataclasses
import json
import socket
import struct
from typing import Any

__all__ = ["Decision", "Member", "receive", "send"]

_LENGTH = struct.Struct("<I")
_MOST_BYTES = 16 << 20


@dataclasses.dataclass
class Member:
    """What a rank says of itself.

    place: the launcher's RANK, which a rank that is started again keeps.
    process: host, pid and start time, as `describe_self` has them.
    generation: the number of its last group; -1: it comes for the first time.
    tried: the highest number under which it tried to meet.
    group: the members of its last group, as pairs of place and process, by rank.
    lost: processes that it knows as lost.
    snapshots: generation and commit of each state that it has in memory.
    shards: generation, commit, rank and number of ranks of each shard that it has in memory.
    finished: whether its training has come to its end.
    """

    place: int
    process: str
    generation: int = -1
    tried: int = -1
    group: list[tuple[int, str]] = dataclasses.field(default_factory=list)
    lost: list[str] = dataclasses.field(default_factory=list)
    snapshots: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    shards: list[tuple[int, int, int, int]] = dataclasses.field(default_factory=list)
    finished: bool = False


@dataclasses.dataclass
class Decision:
    """The members of the next group, by rank, and its number."""

    generation: int
    members: list[Member]
    error: str = ""

    @classmethod
    def of(cls, message: dict[str, Any]) -> Decision:
        """Return what a message says."""
        members = [Member(**each) for each in message["members"]]
        return cls(message["generation"], members, message["error"])


def send(end: socket.socket, message: Any) -> None:
    """Send a `Member` or a `Decision`."""
    data = json.dumps(dataclasses.asdict(message)).encode()
    end.sendall(_LENGTH.pack(len(data)) + data)


def receive(received: bytearray) -> dict[str, Any] | None:
    """Take a message from the bytes that have come; None if it is not whole."""
    if len(received) < _LENGTH.size:
        return None
    (size,) = _LENGTH.unpack_from(received)
    if size > _MOST_BYTES:
        raise EOFError
    if len(received) < _LENGTH.size + size:
        return None
    data = bytes(received[_LENGTH.size : _LENGTH.size + size])
    del received[: _LENGTH.size + size]
    message: dict[str, Any] = json.loads(data)
    return message
