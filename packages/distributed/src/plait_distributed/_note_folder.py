"""The folder in which the ranks of a launcher leave notes for those that are started again.

A launcher that is killed cannot remove it; the next one of the same user does. A file in it is
locked for as long as the launcher lives, so that the folder of one that works is left alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator

__all__ = ["note_folder"]

_PREFIX = "plait-elastic-"
_LOCK = "launcher"


@contextlib.contextmanager
def note_folder() -> Iterator[str]:
    """Make a folder, which is removed at the end, as are those of launchers that are gone."""
    _remove_abandoned()
    folder = tempfile.mkdtemp(prefix=_PREFIX)
    try:
        new = os.path.join(folder, f"{_LOCK}.new")
        with open(new, "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.rename(new, os.path.join(folder, _LOCK))  # it is never there without its lock
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned() -> None:
    with os.scandir(tempfile.gettempdir()) as entries:
        found = [entry.path for entry in entries if entry.name.startswith(_PREFIX)]
    for folder in found:
        with contextlib.suppress(OSError):  # another launcher removes it, or it is another user's
            status = os.lstat(folder)
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
                continue
            with open(os.path.join(folder, _LOCK), "rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
