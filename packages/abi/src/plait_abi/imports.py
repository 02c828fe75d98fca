"""Imports at first use that are safe from signal handlers and forks.

Packages import one another, and NumPy, at their first use. NumPy cannot be
imported twice in a process: an exception from a signal handler (``KeyboardInterrupt``) in the
middle of its import breaks it for good. And a child of `os.fork` has only the thread that forked: a
module that another thread was importing stays half made there, and its lock is never released. So

- `import_module` and `uninterrupted` make signals wait until the import is complete;
- `os.fork` waits until no other thread imports one of our packages or what they import at use.

    >>> from plait_abi.imports import import_module
    >>> import_module("json").loads("[1]")
    [1]
"""

from __future__ import annotations

import _imp
import _signal  # type: ignore[import-not-found]
import _thread
import functools
import importlib
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from types import FrameType, ModuleType
from typing import Any

__all__ = ["import_module", "uninterrupted"]

_Handler = Callable[[int, FrameType | None], Any]


def import_module(name: str) -> ModuleType:
    """Return a module as `importlib.import_module` does; handlers of signals wait for the import.

    A signal that arrives during the import is handled when the import is done: in its own handler,
    once. For a module that is imported already this is a look-up in `sys.modules`.

    Args:
        name: the absolute name of the module.

    Raises:
        ImportError: if it cannot be imported.
        BaseException: what the handler of a signal raises, if the signal came during the import.

    Example:
        >>> from plait_abi.imports import import_module
        >>> import_module("math").sqrt(4.0)
        2.0
    """
    module = sys.modules.get(name)
    if module is not None and not _is_being_imported(module):
        return module
    with uninterrupted():
        return importlib.import_module(name)


def _is_being_imported(module: ModuleType) -> bool:
    return getattr(getattr(module, "__spec__", None), "_initializing", False)


# ---- signals ------------------------------------------------------------------------------------
# Only the main thread runs Python's handlers of signals, so these need no lock.
_Noted = tuple[int, _Handler]
# _signal makes no enums, so it is faster than signal
_SIGNALS = tuple(map(int, sorted(signal.valid_signals())))
_get_handler, _set_handler = _signal.getsignal, _signal.signal
_noted: list[_Noted] = []  # in the order of arrival
_depth = 0
_main = threading.main_thread().ident


class _Note:
    """A handler that notes a signal while signals wait, in the place of the program's own handler.

    A module that is imported meanwhile may keep this object, to call it from a handler of its own.
    So, once signals do not wait, it calls the program's handler.
    """

    __slots__ = ("handler",)

    def __init__(self, handler: _Handler) -> None:
        self.handler = handler

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if _depth:
            _noted.append((number, self.handler))
        else:
            self.handler(number, frame)


class uninterrupted:  # noqa: N801
    """Delay the Python handlers of all signals until the block ends, on the main thread.

    Blocks may be nested: the outermost one counts. Python runs handlers on the main thread only; on
    other threads this does nothing. A signal without a Python handler is not delayed. In a child
    that is forked within the block no signal is delayed.

    The value of the block is true once a signal waits. Code that waits for something in the block
    tests it, so that it can stop early.

    Example:
        >>> from plait_abi.imports import uninterrupted
        >>> with uninterrupted():
        ...     import decimal
    """

    __slots__ = ("_is_main",)

    def __enter__(self) -> Sequence[object]:
        global _depth
        self._is_main = _thread.get_ident() == _main
        if not self._is_main:
            return ()
        try:
            _depth += 1
            if _depth == 1:
                _hold_back()
                return _noted
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
                _put_back()
        finally:
            if _noted and not _depth:
                self._hand_over()

    def _hand_over(self) -> None:
        _call_handlers(sys._getframe(2))


_seen: list[Any] = []  # the handlers of all signals when they were last read
_notes: dict[int, _Note] = {}  # the replacement of each of these handlers that is a function
_held: list[tuple[int, _Note]] = []  # the replacements that are installed


def _hold_back() -> None:
    global _seen, _notes
    # Programs change handlers at any time, so all of them are read; most often they are as before.
    handlers = list(map(_get_handler, _SIGNALS))
    if handlers != _seen:
        _notes = {
            number: handler if isinstance(handler, _Note) else _Note(handler)
            for number, handler in zip(_SIGNALS, handlers, strict=True)
            if callable(handler)
        }
        _seen = handlers
    try:
        for number, note in _notes.items():
            _held.append((number, note))
            _set_handler(number, note)
    except ValueError:  # the main thread of a subinterpreter, which runs no handlers
        _held.clear()


def _put_back() -> None:
    """Restore the handlers, all of them even if one that is restored raises at once."""
    try:
        while _held:
            number, note = _held.pop()
            if _get_handler(number) is note:  # the import may have set its own
                _set_handler(number, note.handler)
    except BaseException:
        _put_back()
        raise


def _call_handlers(frame: FrameType | None) -> None:
    """Call the handlers of all signals that came meanwhile, even if one of them raises."""
    while _noted:
        number, handler = _noted.pop(0)
        try:
            handler(number, frame)
        except BaseException:
            _call_handlers(frame)
            raise


# ---- fork ---------------------------------------------------------------------------------------
_MOST_SECONDS = 10.0  # the longest time that a fork waits
# what plait's packages import at first use, beside packages whose names begin with "plait"
_AT_USE = frozenset({"numpy", "ml_dtypes", "cloudpickle", "scipy_openblas32"})
# The import system's own table: for each module that is being imported, a weak reference to the
# lock that the importing thread holds.
_module_locks: dict[str, Any] = getattr(importlib._bootstrap, "_module_locks", {})


def _wait_for_import(name: str) -> int:
    """Wait before a fork until no other thread imports one of our packages.

    Called with the import system's lock held, without which no thread begins an import. It is held
    on return.
    """
    me = threading.get_ident()
    if _import_of_another(me):
        _imp.release_lock()
        with _InterruptsLater():
            name = _wait_for_imports(me)
        if name:
            warnings.warn(
                f"plait: a process is forked while another thread has imported {name} for "
                f"{_MOST_SECONDS:g} s; the child cannot import it",
                RuntimeWarning,
                stacklevel=2,
            )
    return 0


def _wait_for_imports(me: int) -> str:
    """Take the import system's lock; return the name that is still being imported at the time
    limit.
    """
    end = time.monotonic() + _MOST_SECONDS
    while True:
        time.sleep(0.0005)
        _imp.acquire_lock()
        name = _import_of_another(me)
        if not name or time.monotonic() > end:
            return name
        _imp.release_lock()


def _import_of_another(me: int) -> str:
    """Return a name that another thread imports; "" if that thread may wait for this one."""
    found = ""
    for name, reference in list(_module_locks.items()):
        package = name.partition(".")[0]
        if package not in _AT_USE and package != "plait" and not package.startswith("plait_"):
            continue
        lock = reference()
        if lock is None:
            continue
        if lock.owner == me:
            return ""
        found = name
    return found


class _InterruptsLater(uninterrupted):
    """Delay signals until the end of the fork that follows the block."""

    __slots__ = ()

    def _hand_over(self) -> None:
        for number, _ in _noted:
            threading.Thread(target=_interrupt_soon, args=(number,), daemon=True).start()
        _noted.clear()


def _interrupt_soon(number: int) -> None:
    _imp.acquire_lock()  # the forking thread holds it until the fork is over
    _imp.release_lock()
    time.sleep(0.01)  # until hooks of others have run
    interrupt: Any = _thread.interrupt_main
    interrupt(number)


def _after_fork_in_child() -> None:
    """Restore the handlers in a child, which may never reach the end of the parent's block."""
    global _depth, _main
    _noted.clear()  # they were the parent's
    _depth = 0
    _main = _thread.get_ident()
    _put_back()


# The handler of a signal that comes during a fork runs in the first Python function that is called
# then. If that were a hook of the fork, an exception of the handler would be printed and lost. So
# the hooks are C functions: `sorted` calls `_wait_for_import` for each name in a copy of the table,
# which is nearly always empty. Hooks before a fork run in reverse order: `_imp.acquire_lock` is the
# first.
os.register_at_fork(before=functools.partial(sorted, _module_locks, key=_wait_for_import))
os.register_at_fork(
    before=_imp.acquire_lock,
    after_in_parent=_imp.release_lock,
    after_in_child=_imp.release_lock,
)
os.register_at_fork(after_in_child=_after_fork_in_child)
