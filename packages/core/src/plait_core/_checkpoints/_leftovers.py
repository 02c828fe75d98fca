"""Temporary files and parts that saves leave in a folder, and which of them are out of use."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import time
from collections.abc import Callable, Iterable
from typing import Any

from plait_core._checkpoints._atomic import (
    TOKEN,
    Replacement,
    Writer,
    is_free,
    names_in,
    sweep,
    sync_folder,
)
from plait_core._checkpoints._layout import INDEX_START, LARGEST_HEADER

SUFFIX = ".safetensors"
_KEY = b'"weight_map"'  # the key that every index has
_OBJECT = re.compile(rb'\{[ \t\r\n]*(?:"|\Z)')  # the beginning of a JSON object with keys
_BLOCK = 1 << 20  # bytes of a file that are in memory at a time
_SETTLED = 2_000_000_000  # nanoseconds after which another change of a file gets a different time
_MOST_KNOWN = 10_000

# Paths of files that are no index, with size, times and inode when they were read.
_no_indexes: dict[str, tuple[int, ...]] = {}


def stem_of(name: str) -> str:
    """Return the beginning of the names of the parts of an index."""
    return name.removesuffix(".json").removesuffix(".index").removesuffix(".safetensors")


class Save:
    """A save that replaces the file at `path` by its `file`, durably, or leaves it as it was.

    It begins at `__enter__`: leftovers of earlier saves are removed, and the temporary file is made
    and locked, so the parts with its token are in use until `__exit__`. There the parts of the old
    index are removed, or those of the new one if the save failed. `stem` is the beginning of the
    names of the parts; `follow` is that of `Replacement`.
    """

    def __init__(self, path: str, stem: str | None = None, follow: bool = True) -> None:
        self.file = Replacement(path, follow=follow)
        self._stem = stem_of(self.file.name) if stem is None else stem

    def part(self, number: int, count: int) -> str:
        """Return the name of a part."""
        return f"{self._stem}-{self.file.token}-{number:05d}-of-{count:05d}{SUFFIX}"

    def __enter__(self) -> Save:
        self._remove_leftovers()
        self.file.__enter__()
        return self

    def commit(self, is_new: bool = False) -> None:
        """Put the file in its place, durably; `is_new`: a file that is there is an error."""
        if is_new:
            self.file.take_new_name()
        else:
            self.file.take_name()
        sync_folder(self.file.folder)

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        try:
            self.file.__exit__(kind, error, traceback)
        finally:
            self._remove_leftovers()

    def _remove_leftovers(self) -> None:
        remove_leftovers(self.file.folder, self.file.name, self._stem)


def replace(path: str, fill: Callable[[Replacement], object]) -> None:
    """Replace the file at `path` by the output of `fill`, durably, or leave it as it was."""
    with Save(path) as save:
        fill(save.file)
        save.commit()


def write_part(index: str, name: str, write: Callable[[Writer], object]) -> int:
    """Write a part beside its index, which it does not change; return the number of bytes.

    The name is durable when the folder is synchronised.
    """
    with Replacement(os.path.join(os.path.dirname(index), name), index) as file:
        writer = Writer(file.write)
        write(writer)
        file.take_name()
    return writer.written


def remove_leftovers(folder: str, target: str, stem: str) -> None:
    """Remove the leftovers of saves to this name: unlocked temporary files, and parts out of use.

    A part is in use while the temporary file with its token is locked, and while an index names
    it; any file of the folder that may be an index and mentions the token counts as one, so that
    copies of an index keep their parts. The text of an index is never a reason to remove a file.
    The temporary file of a part in use stays, locked or not: another host may write it, whose lock
    is not seen here.

    The order makes concurrent saves safe: the parts are listed, then the locks are tried, then the
    indexes are read. The temporary file of the index is made before the part that is listed. So at
    the second step it is locked, or it has become the index that is read at the third step (or a
    newer index has replaced that), or its process has ended. The folder is synchronised before
    parts are removed: after a power failure an older index could be there again, which names them.
    """
    beginning, form = re.escape(stem), rf"-({TOKEN})-[0-9]{{5}}-of-[0-9]{{5}}{re.escape(SUFFIX)}"
    names = names_in(folder)
    with contextlib.suppress(OSError):  # an index that cannot be read may name any part
        used = _locked_tokens(folder)
        others = (name for name in names if not any(f"-{token}-" in name for token in used))
        sweep(folder, others, rf"{re.escape(target)}|{beginning}{form}")
        matches = [re.fullmatch(beginning + form, name) for name in names]
        parts = {match[0]: match[1] for match in matches if match}
        tokens = set(parts.values()) - used
        for name in [target, *os.listdir(folder)]:
            if not tokens:
                return
            if name not in parts:
                is_index = name == target or name.endswith(".json")
                tokens -= _mentioned(os.path.join(folder, name), tokens, is_index)
        if tokens:
            sync_folder(folder)
        for name, token in parts.items():
            if token in tokens:
                with contextlib.suppress(FileNotFoundError):  # another save has removed it
                    os.unlink(os.path.join(folder, name))


def _locked_tokens(folder: str) -> set[str]:
    """Return the tokens of temporary files that are in use."""
    matches = [re.search(rf"\.({TOKEN})\.partial$", name) for name in os.listdir(folder)]
    result = [(match[1], os.path.join(folder, match.string)) for match in matches if match]
    return {token for token, path in result if not is_free(path)}


def _mentioned(path: str, tokens: set[str], known: bool) -> set[str]:
    """Return the tokens that occur in a file, if it may be an index; `known`: its name says that it
    is one.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENXIO, errno.ELOOP):
            return set()  # no file
        if error.errno in (errno.EACCES, errno.EPERM) and not known:
            return set()
        raise
    try:
        result = os.fstat(file)
        if not stat.S_ISREG(result.st_mode) or result.st_size > LARGEST_HEADER:
            return set()
        start = os.pread(file, len(INDEX_START), 0)
        if not (start.startswith(b"{") if known else start == INDEX_START):
            return set()
        state = _state(result)
        if _no_indexes.get(path) == state:
            return set()
        if _words_in(file, [_KEY]):
            words = {f"-{token}-".encode(): token for token in tokens}
            return {words[word] for word in _words_in(file, words)}
        if _state(os.fstat(file)) == state and _is_settled(result):
            if len(_no_indexes) >= _MOST_KNOWN:
                _no_indexes.clear()
            _no_indexes[path] = state
        return set()
    finally:
        os.close(file)


def _words_in(file: int, words: Iterable[bytes]) -> set[bytes]:
    """Return the words, none longer than the key, that occur in a file that may be an index.

    The file is read in blocks into the same memory, each after the end of the one before.
    """
    result: set[bytes] = set()
    rest, tail, offset = set(words), 0, 0
    memory = bytearray(len(_KEY) + _BLOCK)
    while rest:
        count = os.preadv(file, [memoryview(memory)[tail:]], offset)
        end = tail + count
        if not count or (not offset and not _OBJECT.match(memory, 0, end)):
            break
        result |= {word for word in rest if memory.find(word, 0, end) >= 0}
        rest -= result
        offset += count
        tail = min(end, len(_KEY))
        memory[:tail] = memory[end - tail : end]
    return result


def _state(status: os.stat_result) -> tuple[int, ...]:
    """Return size, times and inode of a file, which change when the file changes."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _is_settled(status: os.stat_result) -> bool:
    """Return whether a later change of the file would change its times: a clock ticks in steps."""
    return time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > _SETTLED
