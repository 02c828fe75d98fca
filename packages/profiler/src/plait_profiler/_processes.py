"""What child processes record: each writes rows and texts into files, which their parent joins.

A forked child goes on with its parent's recorder; another one finds in its environment that it is
to load the recorder.
"""

from __future__ import annotations

import atexit
import os
import pathlib
import shutil
import tempfile
from typing import NamedTuple

import plait_abi
from plait_profiler._library import observer

__all__ = ["Journal", "forget_journals", "journals", "open_journals"]


class Journal(NamedTuple):
    """What one process wrote.

    Attributes:
        rows: bytes of rows; those whose kind is 0 are not there yet.
        texts: its own texts, by table and number; the others are those of its parent.
    """

    rows: bytes
    texts: dict[str, dict[int, str]]


_folder: pathlib.Path | None = None
_unwanted: set[pathlib.Path] = set()
_owner = 0  # the process that made it; its children, and theirs, write there

_JOURNAL, _PLUGINS = "PLAIT_PROFILE_JOURNAL", "PLAIT_PLUGINS"


def open_journals(kinds: int) -> None:
    """Let child processes that begin from now on record events of these kinds."""
    global _folder, _owner
    if _folder is not None or _JOURNAL in os.environ:
        return
    atexit.unregister(forget_journals)
    atexit.register(forget_journals)  # of a profile that is never stopped
    try:
        _folder = pathlib.Path(tempfile.mkdtemp(prefix="plait-profile-"))
    except OSError:  # children then record nothing
        return
    _owner = os.getpid()
    observer().journal_to(str(_folder))  # of children by fork
    os.environ[_JOURNAL] = f"{kinds}:{_folder}"  # of others
    # a child of another installation of plait may not be able to load it
    plugins = [*filter(None, os.environ.get(_PLUGINS, "").split(os.pathsep)), _library()]
    os.environ[_PLUGINS] = os.pathsep.join(plugins)


def _library() -> str:
    return "?" + str(plait_abi.paths("plait_profiler")["libplait_profiler.so"])


def journals() -> list[Journal]:
    """Return what the children, and their children, have written by now."""
    if _folder is None or _owner != os.getpid():
        return []
    return [_read(path) for path in sorted(_folder.glob("*.rows"))]


def forget_journals() -> None:
    """Remove the files; children that still run record no more."""
    global _folder
    if _folder is not None and _owner == os.getpid():
        observer().journal_to("")
        os.environ.pop(_JOURNAL, None)
        plugins = os.environ.get(_PLUGINS, "").split(os.pathsep)
        os.environ[_PLUGINS] = os.pathsep.join(each for each in plugins if each != _library())
        if not os.environ[_PLUGINS]:
            del os.environ[_PLUGINS]
        _unwanted.add(_folder)
        _folder = None
    for folder in [*_unwanted]:  # one that cannot be removed now is tried again later
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            _unwanted.discard(folder)


def _read(path: pathlib.Path) -> Journal:
    rows = path.read_bytes()  # first, as the texts of a row are written before it
    texts: dict[str, dict[int, str]] = {}
    lines = path.with_suffix(".texts").read_text(encoding="utf-8", errors="replace")
    for line in lines.splitlines(keepends=True):
        head, _, text = line.partition(" ")
        if text.endswith("\n") and head[1:].isdecimal():  # else a line that is just being written
            texts.setdefault(head[0], {})[int(head[1:])] = text[:-1]
    return Journal(rows, texts)
