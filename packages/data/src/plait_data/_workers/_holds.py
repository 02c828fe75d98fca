"""Who still looks at a slot: this process, and children that it forked meanwhile.

A forked child sees the batches of its parent in the same shared memory. A slot must not be used
again while one of these children runs, even if the parent has dropped its arrays long ago: its
arrays would change under it. At a fork each slot in use gets one more holder, and a pipe whose
write end only the child (and its children) holds says when they are gone, or run another program.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable

__all__ = ["Hold", "collect"]


class Hold:
    """A slot in use; ``free`` is called once, when the last holder is gone."""

    __slots__ = ("_count", "_free", "_process")

    def __init__(self, free: Callable[[], None]) -> None:
        self._process = os.getpid()
        # Lists, because `pop` is atomic: holders go in any thread.
        self._free = [free]
        self._count: list[None] = [None]
        _holds[id(self)] = self

    def add(self) -> None:
        """One holder more."""
        self._count.append(None)

    def drop(self) -> None:
        """One holder less. In a forked child this does nothing: the slot is the parent's."""
        if os.getpid() != self._process:
            return
        self._count.pop()
        if not self._count:
            try:
                free = self._free.pop()
            except IndexError:
                return  # another thread does it
            _holds.pop(id(self), None)
            free()


_holds: dict[int, Hold] = {}  # of slots that are in use
_children: list[tuple[int, list[Hold]]] = []  # the read end of a child's pipe, what it holds
_kept: list[int] = []  # in a child: the write ends, its ancestors' too, that its own end closes
_forking = threading.local()  # what a thread's fork is about: `found`


def collect() -> None:
    """Drops what children held that are gone."""
    if not _children:
        return
    poll = select.poll()
    for reader, _ in list(_children):
        poll.register(reader, 0)
    gone = {reader for reader, _ in poll.poll(0)}
    for child in [child for child in _children if child[0] in gone]:
        try:
            _children.remove(child)
        except ValueError:
            continue  # another thread took it
        os.close(child[0])
        for hold in child[1]:
            hold.drop()


def _before_fork() -> None:
    _forking.found = None
    collect()
    holds = list(_holds.values())
    if not holds:
        return
    for hold in holds:
        hold.add()
    try:
        reader, writer = os.pipe()
    except OSError:  # no descriptor left: these slots stay taken
        return
    _forking.found = reader, writer, holds


def _after_fork_in_parent() -> None:
    if _forking.found is not None:
        reader, writer, holds = _forking.found
        os.close(writer)
        _children.append((reader, holds))


def _after_fork_in_child() -> None:
    for reader, _ in _children:
        os.close(reader)
    _children.clear()
    _holds.clear()
    if _forking.found is not None:
        reader, writer, _ = _forking.found
        os.close(reader)
        _kept.append(writer)


os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)
