"""Snapshots: a rank's copies of the state at one commit, and copies of other ranks' shards."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from plait_distributed._arguments import core
from plait_distributed._errors import DistBackendError
from plait_distributed._peers import Peer
from plait_distributed._process_group import ProcessGroup
from plait_distributed._work import Part
from plait_distributed.elastic._copies import Copy
from plait_distributed.elastic._members import Member

_TAG = 0x70656572  # of the messages between neighbours


class Snapshot:
    """The state at one commit.

    Attributes:
        name: generation and commit.
        replicated: the copy of the values that are the same on all ranks.
        own: the copies of this rank's shards, by the names of their objects.
        other: those of the rank before it, complete or on their way.
    """

    def __init__(self) -> None:
        self.name = (-1, -1)
        self.replicated = Copy()
        self.own: dict[str, Copy] = {}
        self.other: dict[str, Copy] = {}
        self._rank, self._size, self._before = 0, 1, 0
        self._pending: list[Part] = []
        self._complete = True

    def take(
        self, name: tuple[int, int], replicated: Any, shards: Mapping[str, Any], group: ProcessGroup
    ) -> None:
        """Become the snapshot of a commit, and begin to send the shards to the next rank."""
        self.name = name
        self.replicated.take(replicated)
        self._rank, self._size = group.rank(), group.size()
        for key, shard in shards.items():
            self.own.setdefault(key, Copy()).take(shard)
        if shards and self._size > 1:
            self._complete = False
            self._before, behind = neighbours(group.peers, self._rank)
            begun: list[Part] = []
            for key in shards:
                other = self.other.setdefault(key, Copy())
                begun += self._exchange(group, behind, self.own[key], other)
            self._pending = begun  # not before all have begun: the copies are complete together

    def _exchange(self, group: ProcessGroup, behind: int, own: Copy, other: Copy) -> list[Part]:
        new = core()
        header = new.frombuffer(bytearray(own.header()), dtype=new.uint8)
        size = new.tensor([0])
        sends = [
            _start(group, "send", new.tensor([header.numel()]), behind),
            _start(group, "send", header, behind),
        ]
        _start(group, "recv", size, self._before).wait()
        message = new.empty(int(size.item()), dtype=new.uint8)
        _start(group, "recv", message, self._before).wait()
        other.expect(message.numpy().tobytes())
        sends.append(_start(group, "send", own.block, behind))
        return [*sends, _start(group, "recv", other.block, self._before)]

    def wait(self) -> None:
        """Wait until the copies of the other rank's shards have come."""
        pending, self._pending = self._pending, []
        for part in pending:
            part.wait()
        self._complete = self._complete or bool(pending)

    def give_up(self) -> None:
        """After a loss: keep what has come."""
        try:
            done = all(part.query() for part in self._pending)
        except DistBackendError:
            done = False
        self._complete = self._complete or (done and bool(self._pending))
        self._pending = []
        if not self._complete:
            self.other = {}  # later messages are written to unused memory

    def shards(self) -> list[tuple[int, int, int, int]]:
        """Return generation, commit, rank and number of ranks of each shard that is here."""
        if not self.own:
            return []
        ranks = [self._rank]
        if self._complete and self._size > 1:
            ranks.append(self._before)
        return [(*self.name, rank, self._size) for rank in ranks]

    def shard_of(self, rank: int, key: str) -> Copy:
        """Return the copy of a rank's shard, which must be here."""
        return self.own[key] if rank == self._rank else self.other[key]


def _start(group: ProcessGroup, kind: str, tensor: Any, peer: int) -> Part:
    call = group.begin_message("elastic copy", f"rank {peer}", tensor)
    inputs, outputs = ([tensor], ()) if kind == "send" else ((), [tensor])
    part = group.start(call, kind, inputs, outputs, peer=peer, tag=_TAG, asynchronous=True)
    assert part is not None
    return part


def neighbours(peers: Sequence[Peer], rank: int) -> tuple[int, int]:
    """Return the ranks before and behind one, in a ring that changes hosts as often as it can."""
    seen: dict[str, int] = {}
    keys = []
    for r, peer in enumerate(peers):
        keys.append((seen.get(peer.host, 0), peer.host, r))
        seen[peer.host] = seen.get(peer.host, 0) + 1
    ring = [r for _, _, r in sorted(keys)]
    at = ring.index(rank)
    return ring[at - 1], ring[(at + 1) % len(ring)]


@dataclasses.dataclass
class Source:
    """Which snapshot the members of a new group go on from.

    name: generation and commit.
    holders: ranks of the new group that have it.
    owners: for each shard of it, by the rank at that time, a rank of the new group that has it.
    size: the number of ranks at that time; 0 without shards.
    """

    name: tuple[int, int]
    holders: list[int]
    owners: list[int]
    size: int


def choose(members: Sequence[Member]) -> Source | None:
    """Return the newest snapshot that is whole; None if there is none.

    Those of ranks that are alone, before the first meeting, serve if nobody has trained yet.
    """
    names = sorted({tuple(each) for member in members for each in member.snapshots}, reverse=True)
    sharded = any(member.shards for member in members)
    trained = any(commit > 0 for _, commit in names)
    for generation, commit in names:
        if generation < 0 and trained:
            break
        name = (generation, commit)
        holders = [i for i, m in enumerate(members) if name in map(tuple, m.snapshots)]
        if not sharded:
            return Source(name, holders, [], 0)
        owners: dict[int, dict[int, int]] = {}
        for i, member in enumerate(members):
            for g, c, rank, size in member.shards:
                if (g, c) == name:
                    owners.setdefault(size, {}).setdefault(rank, i)
        for size, result in owners.items():
            if len(result) == size:
                return Source(name, holders, [result[r] for r in range(size)], size)
    return None
