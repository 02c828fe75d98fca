"""Imports at first use that neither a signal handler nor a fork can break.

Strands import one another, and NumPy, when something of them is first asked for. NumPy cannot be
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
_SIGNALS = tuple(map(int, sorted(signal.valid_signals())))  # _signal takes no time to make enums
_handlers: dict[int, _Handler] = {}  # what `_note` stands in for
_noted: list[int] = []  # in the order in which they came
_depth = 0


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let the Python handlers of all signals wait until the block ends, on the main thread.

    Blocks may be nested: the outermost counts. Handlers never run on other threads, where this
    does nothing. A signal whose action is the system's (no Python handler) is not held back. In a
    child that is forked within the block nothing is held back any more.

    Example:
        >>> from plait_abi.imports import uninterrupted
        >>> with uninterrupted():
        ...     import decimal
    """
    if not _is_main():
        yield
        return
    try:
        _enter()
        yield
    finally:
        try:
            _leave()
        finally:
            if not _depth:
                _hand_over(sys._getframe())


def _is_main() -> bool:
    return threading.get_ident() == threading.main_thread().ident


def _enter() -> None:
    global _depth
    _depth += 1
    if _depth == 1:
        _hold_back()


def _leave() -> None:
    global _depth
    if _depth:  # not in a child that was forked within the block
        _depth -= 1
    if _depth == 0:
        _put_back()


def _note(number: int, frame: FrameType | None) -> None:
    if _depth:
        _noted.append(number)
    elif (handler := _handlers.get(number)) is not None:
        handler(number, frame)  # while handlers are put back


def _hold_back() -> None:
    for number in _SIGNALS:
        handler = _signal.getsignal(number)
        if callable(handler) and handler is not _note:
            _handlers[number] = handler
            try:
                _signal.signal(number, _note)
            except ValueError:  # the main thread of a subinterpreter, which runs no handlers
                return


def _put_back() -> None:
    """Restore the handlers. One that is back may raise at once: the others are restored first."""
    try:
        while _handlers:
            number = next(iter(_handlers))
            if _signal.getsignal(number) is _note:  # the import may have set its own
                _signal.signal(number, _handlers[number])
            del _handlers[number]
    except ValueError:
        _handlers.clear()
    except BaseException:
        _put_back()
        raise


def _hand_over(frame: FrameType | None) -> None:
    """Call the handlers of the signals that came meanwhile, all of them, whatever one raises."""
    while _noted:
        number = _noted.pop(0)
        handler = _signal.getsignal(number)
        if callable(handler):
            try:
                handler(number, frame)
            except BaseException:
                _hand_over(frame)
                raise


# ---- fork ---------------------------------------------------------------------------------------
_MOST_SECONDS = 10.0  # that a fork waits; then it goes on as Python does without this module
# what strands import at use, beside packages of our own, whose names begin with "plait"
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
        with _interrupts_later():
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


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Let signals wait as `uninterrupted` does, and for the end of the fork that comes after."""
    if not _is_main():
        yield
        return
    try:
        _enter()
        yield
    finally:
        try:
            _leave()
        finally:
            if not _depth:
                for number in _noted:
                    threading.Thread(target=_interrupt_soon, args=(number,), daemon=True).start()
                _noted.clear()


def _interrupt_soon(number: int) -> None:
    time.sleep(0.01)  # the forking thread keeps the interpreter's lock until the fork is over
    interrupt: Any = _thread.interrupt_main
    interrupt(number)


def _after_fork_in_child() -> None:
    """Nothing is held back in a child, which may never come to the end of the parent's block."""
    global _depth
    _noted.clear()  # they were the parent's
    _depth = 0
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
