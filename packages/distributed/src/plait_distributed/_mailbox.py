"""Messages that are received from any rank.

A provider receives from a rank that is named. To receive from any, a receive is begun from each;
the first that is done is the result, and the others stay begun: they are what the next calls get.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from plait_abi.components import require
from plait_distributed._calls import Call
from plait_distributed._errors import CollectiveTimeout, RankLost
from plait_distributed._work import Part


class Mailbox:
    """The receives of a group that were begun and whose results were not yet read."""

    def __init__(self, group: Any) -> None:  # a ProcessGroup, which has it
        self._group = group
        self.lock = threading.Lock()
        # by tag: from each rank a receive, and the memory that it writes
        self.begun: dict[int, dict[int, tuple[Part, Any]]] = {}

    def receive(self, call: Call, tensor: Any, peer: int, tag: int) -> Part:
        """Begin to receive from one rank."""
        with self.lock:
            if peer in self.begun.get(tag, ()):
                return FirstOfAll(self, call, tensor, tag, [peer], self._group.timeout)
        part = self._group.start(call, "recv", (), [tensor], peer=peer, tag=tag, asynchronous=True)
        return part  # type: ignore[no-any-return]

    def first_of_all(self, call: Call, tensor: Any, tag: int) -> FirstOfAll:
        """Begin to receive from all other ranks."""
        group = self._group
        others = [rank for rank in range(group.size()) if rank != group.rank()]
        if not others:
            raise ValueError(f"{call}: there is no other rank")
        empty_like = require("core").empty_like
        with self.lock:
            for peer in others:
                if peer not in self.begun.setdefault(tag, {}):
                    self.begin(call, empty_like(tensor), peer, tag)
        return FirstOfAll(self, call, tensor, tag, others, group.timeout)

    def begin(self, call: Call, room: Any, peer: int, tag: int) -> None:
        """Begin a receive from one rank, which whoever calls next may get; the lock is held."""
        part = self._group.start(call, "recv", (), [room], peer=peer, tag=tag, asynchronous=True)
        self.begun[tag][peer] = (part, room)


class FirstOfAll(Part):
    """The first of several receives, as a `Part` of work."""

    def __init__(
        self, mailbox: Mailbox, call: Call, tensor: Any, tag: int, peers: list[int], timeout: float
    ) -> None:
        self._mailbox, self._call, self._tensor, self._tag = mailbox, call, tensor, tag
        self._peers, self._timeout = peers, timeout
        self.peer = -1  # which one it was
        self._lost: dict[int, RankLost] = {}  # by peer; the one that was found first is first

    def query(self) -> bool:
        """Return whether a message has come; then it is in the tensor."""
        with self._mailbox.lock:
            if self.peer >= 0:
                return True
            unfinished = self._mailbox.begun.setdefault(self._tag, {})
            for peer in [peer for peer in self._peers if peer in unfinished]:
                part, room = unfinished[peer]
                try:
                    done = part.query()
                except RankLost as error:
                    self._lost.setdefault(peer, error)
                    continue
                except CollectiveTimeout:  # begun for an earlier call, whose time is over
                    self._mailbox.begin(self._call, room, peer, self._tag)
                    continue
                if done:
                    del unfinished[peer]
                    self._take(peer, room)
                    return True
            if len(self._lost) == len(self._peers):
                raise next(iter(self._lost.values()))
            return False

    def _take(self, peer: int, room: Any) -> None:
        if room.numel() != self._tensor.numel() or room.dtype != self._tensor.dtype:
            raise ValueError(
                f"{self._call}: messages of this tag are received from any rank, and have shape "
                f"{tuple(room.shape)} and {room.dtype}; got a tensor of shape "
                f"{tuple(self._tensor.shape)} and {self._tensor.dtype}"
            )
        self._tensor.copy_(room.view(self._tensor.shape))
        self.peer = peer

    def wait(self) -> None:
        """Wait until a message has come."""
        deadline, pause = time.monotonic() + self._timeout, 0.00002
        while not self.query():
            if time.monotonic() > deadline:
                raise CollectiveTimeout(f"{self._call}: no message came in {self._timeout:g} s")
            time.sleep(pause)
            pause = min(pause * 2, 0.005)
