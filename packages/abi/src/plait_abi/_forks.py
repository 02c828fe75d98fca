"""A fork waits for imports of other threads.

A child of `os.fork` has only the thread that forked. A module that another thread was importing is
never complete in the child, and its lock is never released there. plait's packages import one
another, and NumPy, at their first use, so this may happen in the middle of a program. So `os.fork`
waits until no other thread imports one of them.
"""

from __future__ import annotations

import _imp
import functools
import importlib
import os
import threading
import time
import warnings
from typing import Any

_MOST_SECONDS = 10.0  # the longest time that a fork waits
# what plait's packages import at first use, beside packages whose names begin with "plait"
_AT_USE = frozenset({"numpy", "ml_dtypes", "cloudpickle", "scipy_openblas32"})
# The import system's own table: for each module that is being imported, a weak reference to the
# lock that the importing thread holds.
_module_locks: dict[str, Any] = getattr(importlib._bootstrap, "_module_locks", {})


def _wait_for_imports(_: str) -> int:
    """Wait before a fork until no other thread imports one of our packages.

    Called with the import system's lock held, without which no thread begins an import. It is held
    on return.
    """
    thread, end = threading.get_ident(), time.monotonic() + _MOST_SECONDS
    while name := _import_of_another(thread):
        if time.monotonic() > end:
            warnings.warn(
                f"plait: a process is forked while another thread has imported {name} for "
                f"{_MOST_SECONDS:g} s; the child cannot import it",
                RuntimeWarning,
                stacklevel=2,
            )
            break
        _imp.release_lock()
        try:
            time.sleep(0.0005)
        finally:
            _imp.acquire_lock()
    return 0


def _import_of_another(thread: int) -> str:
    """Return a name that another thread imports; "" if that thread may wait for this one."""
    result = ""
    for name, reference in list(_module_locks.items()):
        package = name.partition(".")[0]
        if package not in _AT_USE and package != "plait" and not package.startswith("plait_"):
            continue
        lock = reference()
        if lock is None:
            continue
        if lock.owner == thread:
            return ""
        result = name
    return result


# The handler of a signal that comes during a fork runs in the first Python function that is called
# then. If that were a hook of the fork, an exception of the handler would be printed and lost. So
# the hooks are C functions: `sorted` calls `_wait_for_imports` for each name in a copy of the
# table, which is nearly always empty. Hooks before a fork run in reverse order: `_imp.acquire_lock`
# is the first.
os.register_at_fork(before=functools.partial(sorted, _module_locks, key=_wait_for_imports))
os.register_at_fork(
    before=_imp.acquire_lock, after_in_parent=_imp.release_lock, after_in_child=_imp.release_lock
)
