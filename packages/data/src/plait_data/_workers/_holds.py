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
_writers: list[int] = []  # in the parent: the write ends of the last fork, to be closed
_lock = threading.Lock()  # of the write ends; held during a fork
_forking = threading.local()  # what a thread's fork is about: `found`, the write end


def collect() -> None:
    """Drops what children held that are gone."""
    if _lock.acquire(blocking=False):  # else a thread forks
        try:
            _close_writers()
        finally:
            _lock.release()
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


def _close_writers() -> None:
    while _writers:
        os.close(_writers.pop())


def _before_fork() -> None:
    collect()
    _lock.acquire()  # released after the fork
    _forking.found = None
    _close_writers()
    holds = list(_holds.values())
    if not holds:
        return
    for hold in holds:
        hold.add()
    try:
        reader, writer = os.pipe()
    except OSError:  # no descriptor left: these slots stay taken
        return
    _forking.found = writer
    _writers.append(writer)
    _children.append((reader, holds))


def _after_fork_in_child() -> None:
    for reader, _ in _children:
        os.close(reader)
    _children.clear()
    _holds.clear()
    _writers.clear()
    if _forking.found is not None:
        _kept.append(_forking.found)


# A hook in Python in the parent would handle the signals that came during the fork, and what their
# handlers raise in a hook is lost: the parent closes its write end when it next looks.
os.register_at_fork(
    before=_before_fork, after_in_parent=_lock.release, after_in_child=_lock.release
)
os.register_at_fork(after_in_child=_after_fork_in_child)
