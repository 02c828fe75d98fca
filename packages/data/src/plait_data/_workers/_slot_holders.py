"""Holders of slots: this process, and children that it forked.

A forked child sees the batches of its parent in the same shared memory. A slot must not be used
again while one of these children runs, even if the parent has dropped its arrays long ago: its
arrays would change. At a fork each slot in use gets one more holder, and a pipe whose write end
only the child (and its children) holds tells when they have ended or run another program.
"""

from __future__ import annotations

import functools
import os
import select
import threading
from collections.abc import Callable


class Hold:
    """A slot in use; ``free`` is called once, when the last holder is freed."""

    __slots__ = ("_count", "_free", "_process")

    def __init__(self, free: Callable[[], None]) -> None:
        self._process = os.getpid()
        # Lists, because `pop` is atomic: holders go in any thread.
        self._free = [free]
        self._count: list[None] = [None]
        _holds[id(self)] = self

    def add(self) -> None:
        """Add a holder."""
        self._count.append(None)

    def drop(self) -> None:
        """Remove a holder. In a forked child this does nothing: the slot is the parent's."""
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
_new: list[int] = []  # of the fork that is under way: its write end, once there is one; else -1


def collect() -> None:
    """Remove the holders of children that have ended."""
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
    ended = {reader for reader, _ in poll.poll(0)}
    for child in [child for child in _children if child[0] in ended]:
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


def _before_fork(key: int) -> int:
    """Add the child as a holder of a slot before a fork."""
    if not _new:
        collect()
        _close_writers()
        _new.append(_pipe())
    hold = _holds.get(key)
    if hold is not None:
        hold.add()
        if _new[0] >= 0:
            _children[-1][1].append(hold)
    return 0


def _pipe() -> int:
    try:
        reader, writer = os.pipe()
    except OSError:  # without a descriptor these slots are never reused
        return -1
    _writers.append(writer)
    _children.append((reader, []))
    return writer


def _after_fork_in_child() -> None:
    for reader, _ in _children:
        os.close(reader)
    _children.clear()
    _holds.clear()
    for writer in _writers:
        if writer in _new:
            _kept.append(writer)
        else:  # of an earlier fork, when no slot is in use
            os.close(writer)
    _writers.clear()


# A hook in Python in the parent would handle the signals that came before or during the fork, and
# what their handlers raise in a hook is lost. So these are functions in C; the one that calls
# `_before_fork` does so for each slot in use, of which there are mostly none; and the parent closes
# its write end when it next looks. Hooks before a fork run in reverse order: the lock is the first.
os.register_at_fork(before=functools.partial(sorted, _holds, key=_before_fork))
os.register_at_fork(before=_new.clear)
os.register_at_fork(
    before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
)
os.register_at_fork(after_in_child=_after_fork_in_child)
