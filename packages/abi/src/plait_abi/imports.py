"""Imports at first use that neither a signal handler nor a fork can break.

Packages import one another, and NumPy, when something of them is first asked for. NumPy cannot be
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
    once. A module that is there costs a look into `sys.modules`.

    Args:
        name: the absolute name of the module.

    Raises:
        ImportError: if it cannot be imported.
        BaseException: what the handler of a signal raises that came during the import.

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
_SIGNALS = tuple(map(int, sorted(signal.valid_signals())))  # _signal takes no time to make enums
_get_handler, _set_handler = _signal.getsignal, _signal.signal
_noted: list[_Noted] = []  # in the order in which they came
_depth = 0
_main = threading.main_thread().ident


class _Note:
    """Stands in for one handler while signals wait.

    A module that is imported meanwhile may keep it, to call it from a handler of its own: once
    nothing is held back it does what the handler does, for as long as anybody has it.
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
    """Let the Python handlers of all signals wait until the block ends, on the main thread.

    Blocks may be nested: the outermost counts. Handlers never run on other threads, where this
    does nothing. A signal whose action is the system's (no Python handler) is not held back. In a
    child that is forked within the block nothing is held back any more.

    The value of the block is true once a signal waits for its end: code that waits in the block
    looks at it so as to end before it has done what an exception would undo.

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


_seen: list[Any] = []  # the handlers of all signals at the last look
_notes: dict[int, _Note] = {}  # what stands in for those of them that are functions
_held: list[tuple[int, _Note]] = []  # which notes are in place


def _hold_back() -> None:
    global _seen, _notes
    # Programs change handlers at any time: all are looked at, and most often they are as before.
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
    """Restore the handlers. One that is back may raise at once: the others are restored first."""
    try:
        while _held:
            number, note = _held.pop()
            if _get_handler(number) is note:  # the import may have set its own
                _set_handler(number, note.handler)
    except BaseException:
        _put_back()
        raise


def _call_handlers(frame: FrameType | None) -> None:
    """Hand over the signals that came meanwhile, all of them, whatever one handler raises."""
    while _noted:
        number, handler = _noted.pop(0)
        try:
            handler(number, frame)
        except BaseException:
            _call_handlers(frame)
            raise


# ---- fork ---------------------------------------------------------------------------------------
_MOST_SECONDS = 10.0  # that a fork waits; then it goes on as Python does without this module
# what packages import at use, beside packages of our own, whose names begin with "plait"
_AT_USE = frozenset({"numpy", "ml_dtypes", "cloudpickle", "scipy_openblas32"})
# The import system's own: name to a weak reference to the lock that an importing thread holds. A
# name stands here only while somebody imports it.
_module_locks: dict[str, Any] = getattr(importlib._bootstrap, "_module_locks", {})


def _look(name: str) -> int:
    """Before a fork, for a name that is being imported: wait, if it is one of ours.

    Called with the import system's lock, without which no thread begins an import, and which
    CPython, too, takes for a fork. It is held on return.
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
    """Take the import system's lock; return what is still being imported after all that time."""
    end = time.monotonic() + _MOST_SECONDS
    while True:
        time.sleep(0.0005)
        _imp.acquire_lock()
        name = _import_of_another(me)
        if not name or time.monotonic() > end:
            return name
        _imp.release_lock()


def _import_of_another(me: int) -> str:
    """Return a name that another thread imports; "" if it may be waiting for this one's imports."""
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
    """Let signals wait for the end of the fork, too, that comes after the block."""

    __slots__ = ()

    def _hand_over(self) -> None:
        for number, _ in _noted:
            threading.Thread(target=_interrupt_soon, args=(number,), daemon=True).start()
        _noted.clear()


def _interrupt_soon(number: int) -> None:
    time.sleep(0.01)  # the forking thread keeps the interpreter's lock until the fork is over
    interrupt: Any = _thread.interrupt_main
    interrupt(number)


def _after_fork_in_child() -> None:
    """Nothing is held back in a child, which may never come to the end of the parent's block."""
    global _depth, _main
    _noted.clear()  # they were the parent's
    _depth = 0
    _main = _thread.get_ident()
    _put_back()


# A signal that comes during a fork is handled by the first function in Python that runs then. Were
# that a hook, what the handler raises would be printed and lost. So these are functions in C: the
# one before the fork calls `_look` for each name in a copy of the table, which is nearly always
# empty. Hooks before a fork run in reverse order: `_imp.acquire_lock` is the first.
os.register_at_fork(before=functools.partial(sorted, _module_locks, key=_look))
os.register_at_fork(
    before=_imp.acquire_lock,
    after_in_parent=_imp.release_lock,
    after_in_child=_imp.release_lock,
)
os.register_at_fork(after_in_child=_after_fork_in_child)
