"""Blocks that a signal's handler does not interrupt.

What a handler raises (``KeyboardInterrupt``) while a process is started would leave a process that
nobody knows. `plait_multiprocessing` has such a block too, which this package, without others of
plait, cannot use.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_Handler = Callable[[int, "FrameType | None"], Any]


class held:  # noqa: N801
    """Delay the Python handlers of all signals until the block ends.

    Python calls handlers in the main thread only; in another thread the block does nothing. In a
    child that is forked within the block no signal is delayed.

    Example:
        >>> before = signal.signal(signal.SIGUSR1, lambda *_: print("the handler"))
        >>> with held():
        ...     signal.raise_signal(signal.SIGUSR1)
        ...     print("the end of the block")
        the end of the block
        the handler
        >>> before = signal.signal(signal.SIGUSR1, before)
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._replaced: dict[int, _Handler] = {}
        self._waiting: list[tuple[_Handler, int, FrameType | None]] = []

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        try:
            for number in signal.valid_signals():
                handler = signal.getsignal(number)
                if callable(handler):
                    self._replaced[number] = handler
                    signal.signal(number, self._note)
        except BaseException:  # of a handler that is not replaced yet
            self._leave()
            raise

    def __exit__(self, *_: object) -> None:
        self._leave()

    def _note(self, number: int, frame: FrameType | None) -> None:
        handler = self._replaced[number]
        if os.getpid() == self._process:
            self._waiting.append((handler, number, frame))
        else:
            handler(number, frame)

    def _leave(self) -> None:
        """Restore all handlers and call those that wait, even if one of them raises."""
        try:
            while self._replaced:
                number, handler = next(iter(self._replaced.items()))
                if signal.getsignal(number) == self._note:
                    signal.signal(number, handler)
                del self._replaced[number]
            while self._waiting:
                handler, number, frame = self._waiting.pop(0)
                handler(number, frame)
        except BaseException:
            self._leave()
            raise
