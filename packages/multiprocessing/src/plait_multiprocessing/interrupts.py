"""Blocks that no signal handler interrupts, for code that holds a lock of several processes.

What a handler raises (``KeyboardInterrupt``) between taking such a lock and entering the block that
releases it would leave the lock taken, in all processes.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # makes no enums: ten times faster than signal
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

__all__ = ["uninterrupted"]

_Handler = Callable[[int, FrameType | None], Any]

# Python runs handlers in the main thread only, so these need no lock.
_SIGNALS = tuple(map(int, sorted(signal.valid_signals())))
_waiting: list[tuple[int, _Handler]] = []  # signals in the order of arrival, with their handlers
_replaced: list[tuple[int, _Delay]] = []  # the replacements that are installed
_depth = 0
_main = threading.main_thread().ident


class _Delay:
    """The replacement of a handler within a block."""

    __slots__ = ("handler",)

    def __init__(self, handler: _Handler) -> None:
        self.handler = handler

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if _depth:
            _waiting.append((number, self.handler))
        else:
            self.handler(number, frame)


class uninterrupted:  # noqa: N801
    """Delay the Python handlers of all signals until the block ends, in the main thread.

    Blocks may be nested: the outermost one counts. In a child that is forked within the block no
    signal is delayed. The value of the block is true once a signal waits.

    Example:
        >>> from plait_multiprocessing.interrupts import uninterrupted
        >>> with uninterrupted() as waiting:
        ...     bool(waiting)
        False
    """

    __slots__ = ("_is_main",)

    def __enter__(self) -> Sequence[object]:
        global _depth
        self._is_main = threading.get_ident() == _main
        if not self._is_main:
            return ()
        try:
            _depth += 1
            if _depth == 1:
                _replace_handlers()
                return _waiting
        except BaseException:
            self._leave()
            raise
        return ()

    def __exit__(self, *_: object) -> None:
        if self._is_main:
            self._leave()

    def _leave(self) -> None:
        global _depth
        try:
            if _depth:  # not in a child that was forked within the block
                _depth -= 1
            if _depth == 0:
                _restore_handlers()
        finally:
            if not _depth:
                _call_handlers(sys._getframe(2))


_seen: list[Any] = []  # the handlers of all signals when they were last read
_delays: list[tuple[int, _Delay]] = []  # the replacements of those that are functions


def _replace_handlers() -> None:
    global _seen, _delays
    # programs change handlers at any time, so all are read; most often they are as before
    handlers = list(map(_signal.getsignal, _SIGNALS))
    if handlers != _seen:
        pairs = zip(_SIGNALS, handlers, strict=True)
        _delays = [(number, _Delay(handler)) for number, handler in pairs if callable(handler)]
        _seen = handlers
    for number, delay in _delays:
        _replaced.append((number, delay))
        _signal.signal(number, delay)


def _restore_handlers() -> None:
    """Restore the handlers, all of them even if one that is restored raises at once."""
    try:
        while _replaced:
            number, delay = _replaced.pop()
            if _signal.getsignal(number) is delay:
                _signal.signal(number, delay.handler)
    except BaseException:
        _restore_handlers()
        raise


def _call_handlers(frame: FrameType | None) -> None:
    """Call the handlers of the signals that wait, even if one of them raises."""
    while _waiting:
        number, handler = _waiting.pop(0)
        try:
            handler(number, frame)
        except BaseException:
            _call_handlers(frame)
            raise


def _after_fork_in_child() -> None:
    """Restore the handlers in a child, which may never reach the end of the parent's block."""
    global _depth, _main
    _waiting.clear()  # they were the parent's
    _depth = 0
    _main = threading.get_ident()
    _restore_handlers()


os.register_at_fork(after_in_child=_after_fork_in_child)
