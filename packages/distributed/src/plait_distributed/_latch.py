"""An event that threads wait for and that happens once."""

from __future__ import annotations

import threading


class Latch:
    """What `threading.Event` is, but it cannot be cleared, and an interrupt leaves nothing held.

    A thread that waits at a `threading.Event` takes the event's lock first. What a signal's handler
    raises right then (``KeyboardInterrupt``) leaves the lock taken, and `set` in another thread
    waits for ever. Here each thread that waits has a lock of its own.

    Example:
        >>> from plait_distributed._latch import Latch
        >>> latch = Latch()
        >>> latch.wait(0.0)
        False
        >>> latch.set()
        >>> latch.wait()
        True
    """

    def __init__(self) -> None:
        self._is_set = False
        self._waiting: list[threading.Lock] = []

    def is_set(self) -> bool:
        """Return whether it has happened."""
        return self._is_set

    def set(self) -> None:
        """Let all threads go on that wait, and those that will."""
        self._is_set = True  # before the list is read: who joins the list later reads this first
        for lock in tuple(self._waiting):
            if lock.locked():
                lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it happens, or until the timeout; return whether it has happened.

        Args:
            timeout: In seconds; None: for ever.
        """
        if self._is_set:
            return True
        lock = threading.Lock()
        lock.acquire()
        self._waiting.append(lock)
        try:
            if not self._is_set:
                lock.acquire(timeout=-1 if timeout is None else max(timeout, 0.0))
        finally:
            self._waiting.remove(lock)
        return self._is_set
