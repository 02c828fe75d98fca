"""A fork waits for imports of other threads.

A child of `os.fork` has only the thread that forked. A module that another thread was importing is
never complete in the child, and its lock is never released there. plait's packages import one
another, and NumPy, at their first use, so this may happen in the middle of a program. So `os.fork`
waits until no other thread imports one of them.

Hooks of other packages may run between that and the fork, and may wait for a thread that imports.
So no lock is held meanwhile, and an import may begin. The child forgets it and imports the module
anew, which compiled modules may refuse.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
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
    """Wait before a fork until no other thread imports one of our packages."""
    thread, end = threading.get_ident(), time.monotonic() + _MOST_SECONDS
    while name := _import_of_another(thread):
        if time.monotonic() > end:
            warnings.warn(
                f"plait: a process is forked while another thread has imported {name} for "
                f"{_MOST_SECONDS:g} s; the child imports it anew, which may fail",
                RuntimeWarning,
                stacklevel=2,
            )
            break
        time.sleep(0.0005)
    return 0


def _is_ours(name: str) -> bool:
    package = name.partition(".")[0]
    return package in _AT_USE or package == "plait" or package.startswith("plait_")


def _import_of_another(thread: int) -> str:
    """Return a name that another thread imports; "" if that thread may wait for this one."""
    result = ""
    for name, reference in list(_module_locks.items()):
        lock = reference() if _is_ours(name) else None
        if lock is None:
            continue
        if lock.owner == thread:
            return ""
        result = name
    return result


def _forget_import(name: str) -> int:
    """Let a forked child import a module anew that a thread of its parent was importing."""
    reference = _module_locks.get(name)
    lock = None if reference is None else reference()
    if lock is not None and _is_ours(name) and lock.owner != threading.get_ident():
        _module_locks.pop(name, None)
        spec = getattr(sys.modules.get(name), "__spec__", None)
        if getattr(spec, "_initializing", False):  # else that thread had all but ended the import
            sys.modules.pop(name, None)
    return 0


# The handler of a signal that comes during a fork runs in the first Python function that is called
# then. If that were a hook of the fork, an exception of the handler would be printed and lost. So
# the hooks are C functions: `sorted` calls a function for each name in a copy of the table, which
# is nearly always empty.
os.register_at_fork(
    before=functools.partial(sorted, _module_locks, key=_wait_for_imports),
    after_in_child=functools.partial(sorted, _module_locks, key=_forget_import),
)
