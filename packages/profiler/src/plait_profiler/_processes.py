"""The recordings of child processes: each writes rows and texts into files, which their parent
joins.

A forked child continues with its parent's recorder; another one finds in its environment that it is
to load the recorder.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import pathlib
import shutil
import stat
import tempfile
import threading
from typing import NamedTuple

import plait_abi
from plait_profiler._library import observer


class Journal(NamedTuple):
    """The output of one process.

    Attributes:
        rows: bytes of rows; those whose kind is 0 are not there yet.
        texts: its own texts, by table and number; the others are those of its parent.
    """

    rows: bytes
    texts: dict[str, dict[int, str]]


_lock = threading.RLock()  # of the variables below; a profile may be freed, and stop, within it
_sessions = 0  # recordings that run
_folder: pathlib.Path | None = None
_holder = -1  # the open file by which other processes see that the folder is in use
_unwanted: set[pathlib.Path] = set()
_owner = 0  # the process that made it; its children, and theirs, write there

_JOURNAL, _PLUGINS = "PLAIT_PROFILE_JOURNAL", "PLAIT_PLUGINS"
_PREFIX, _HOLD = "plait-profile-", "in-use"


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()  # another thread may have held it


os.register_at_fork(after_in_child=_after_fork_in_child)


def enter(kinds: int, children: bool) -> None:
    """Note that a recording begins; let processes that begin from now on record these kinds."""
    global _sessions
    with _lock:
        _sessions += 1
        if children:
            _open(kinds)


def leave() -> list[Journal]:
    """Note that a recording ends; return what the children, and theirs, have written by now."""
    global _sessions
    with _lock:
        try:
            return journals()
        finally:
            _sessions -= 1
            if not _sessions:
                forget_journals()


def _open(kinds: int) -> None:
    global _folder, _owner, _holder
    if _folder is not None or _JOURNAL in os.environ:
        return
    atexit.unregister(forget_journals)
    atexit.register(forget_journals)  # of a profile that is never stopped
    _remove_abandoned()
    try:
        folder = pathlib.Path(tempfile.mkdtemp(prefix=_PREFIX))
        _unwanted.add(folder)
        new = folder / f"{_HOLD}.new"
        holder = os.open(new, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(holder, fcntl.LOCK_EX)
            new.rename(folder / _HOLD)  # it is never there without its lock
    except OSError:  # children then record nothing
        return
    _unwanted.discard(folder)
    _folder, _holder, _owner = folder, holder, os.getpid()
    observer().journal_to(str(folder))  # of children by fork
    os.environ[_JOURNAL] = f"{kinds}:{folder}"  # of others
    # a child of another installation of plait may not be able to load it
    plugins = [*filter(None, os.environ.get(_PLUGINS, "").split(os.pathsep)), _library()]
    os.environ[_PLUGINS] = os.pathsep.join(plugins)


def _library() -> str:
    return "?" + str(plait_abi.paths("plait_profiler")["libplait_profiler.so"])


def _remove_abandoned() -> None:
    """Remove folders of processes that were killed: of this user, and whose lock is free.

    Children of a fork hold the lock too, so a folder stays while one of them writes there.
    """
    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for path in [entry.path for entry in entries if entry.name.startswith(_PREFIX)]:
            with contextlib.suppress(OSError):  # it is in use, another user's, or gone
                status = os.lstat(path)
                if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid():
                    with open(os.path.join(path, _HOLD), "rb") as holder:
                        fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        shutil.rmtree(path)


def journals() -> list[Journal]:
    """Return what the children, and their children, have written by now."""
    with _lock:
        if _folder is None or _owner != os.getpid():
            return []
        return [_read(path) for path in sorted(_folder.glob("*.rows"))]


def forget_journals() -> None:
    """Remove the files; children that still run record no more."""
    with _lock:
        if _folder is not None and _owner == os.getpid():
            _close()
        for folder in [*_unwanted]:  # one that cannot be removed now is tried again later
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                _unwanted.discard(folder)


def _close() -> None:
    global _folder, _holder
    assert _folder is not None
    observer().journal_to("")
    os.environ.pop(_JOURNAL, None)
    plugins = os.environ.get(_PLUGINS, "").split(os.pathsep)
    rest = os.pathsep.join(each for each in plugins if each and each != _library())
    os.environ.pop(_PLUGINS, None)
    if rest:
        os.environ[_PLUGINS] = rest
    _unwanted.add(_folder)
    holder, _folder, _holder = _holder, None, -1
    os.close(holder)


def _read(path: pathlib.Path) -> Journal:
    rows = path.read_bytes()  # first, as the texts of a row are written before it
    texts: dict[str, dict[int, str]] = {}
    lines = path.with_suffix(".texts").read_text(encoding="utf-8", errors="replace")
    for line in lines.splitlines(keepends=True):
        head, _, text = line.partition(" ")
        if text.endswith("\n") and head[1:].isdecimal():  # else a line that is just being written
            texts.setdefault(head[0], {})[int(head[1:])] = text[:-1]
    return Journal(rows, texts)
