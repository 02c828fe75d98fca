"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import secrets
from collections.abc import Callable
from typing import Any

from plait_core._checkpoints._errors import CheckpointError

__all__ = ["Writer", "write_file", "write_stream"]

_STEP = 1 << 24  # bytes a write


class Writer:
    """Writes all of what it is given, in as many steps as the file takes."""

    def __init__(self, write: Callable[[memoryview], int | None]) -> None:
        self._write = write
        self.written = 0

    def write(self, data: Any) -> int:
        """Write bytes or a contiguous buffer; returns their number."""
        rest = memoryview(data)
        if rest.nbytes:
            rest = rest.cast("B")
        count = rest.nbytes
        while rest:
            done = self._write(rest[:_STEP])
            if done is None:  # a file that writes all and doesn't say so
                done = min(len(rest), _STEP)
            if done <= 0:
                raise OSError(f"{len(rest)} bytes could not be written")
            rest = rest[done:]
            self.written += done
        return count

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self.written

    def flush(self) -> None:
        """Do nothing: nothing is held back."""


def write_file(path: str, write: Callable[[Writer], object]) -> None:
    """Replace the file at `path` by what `write` writes, durably, or leave it as it was."""
    path = os.path.realpath(path)
    if os.path.isdir(path):
        raise IsADirectoryError(f"save: a file is required, {path!r} is a folder")
    folder, name = os.path.split(path)
    _remove_leftovers(folder, name)
    temporary, file = _open_temporary(folder, name)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.fchmod(file, os.stat(path).st_mode & 0o7777)
        write(Writer(lambda data: os.write(file, data)))
        os.fsync(file)
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise CheckpointError(
                f"save: {path} could not be written ({error}); what was there is unchanged"
            ) from error
        raise
    finally:
        os.close(file)
    _sync_folder(folder)


def _open_temporary(folder: str, name: str) -> tuple[str, int]:
    """A new file that is locked as long as this process lives, so that no other removes it."""
    while True:
        path = os.path.join(folder, f".{name}.{secrets.token_hex(4)}.partial")
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file).st_nlink:
            return path, file
        os.close(file)  # somebody took it for a leftover before it was locked


def _remove_leftovers(folder: str, name: str) -> None:
    """Remove what killed saves to this name left: temporary files that nobody locks."""
    pattern = os.path.join(glob.escape(folder), f".{glob.escape(name)}.????????.partial")
    for path in glob.glob(pattern):
        with contextlib.suppress(OSError):
            file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(path)
            finally:
                os.close(file)


def _sync_folder(folder: str) -> None:
    """Make the new name durable; where folders cannot be synchronised, the system does it later."""
    with contextlib.suppress(OSError):
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def write_stream(stream: Any, write: Callable[[Writer], object]) -> None:
    """Write to an open file; nothing can be taken back where that fails."""
    try:
        write(Writer(stream.write))
        if hasattr(stream, "flush"):
            stream.flush()
    except OSError as error:
        raise CheckpointError(
            f"save: the file object could not be written ({error}); what it holds is incomplete"
        ) from error
