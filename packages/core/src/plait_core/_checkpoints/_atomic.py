"""Atomic replacement of files: a new file appears complete or not at all."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterable
from typing import Any

from plait_core._checkpoints._errors import CheckpointError, system_error

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)
_STEP = 1 << 24  # bytes a write
TOKEN = "[0-9a-f]{8}"


class Writer:
    """A writer that repeats partial writes until all bytes are written."""

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
            if done is None:  # a file whose `write` returns None writes all bytes
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
        """Do nothing: bytes are not buffered."""


class Replacement:
    """A temporary file beside `path` that replaces the file at `path`, durably.

    It is locked while it is open, so that other saves do not remove it as a leftover; the lock ends
    with the process. After an exception the disk, not a variable, says whether the rename was done,
    because Ctrl-C may come between a call and an assignment: as long as the temporary name exists
    and is this file, the rename was not done, and the file is removed. A part of a sharded
    checkpoint names the index as its `whole`, which it does not change. Without `follow` a link at
    `path` is replaced, and not the file that it names.
    """

    def __init__(self, path: str, whole: str = "", follow: bool = True) -> None:
        if path and os.path.basename(path) in ("", os.curdir, os.pardir):
            raise _no_folder(path, "names a folder")  # a path like "new/" has an empty name
        parent, name = os.path.split(path)
        self.path = os.path.realpath(path if follow else parent or os.curdir)
        if not follow:
            self.path = os.path.join(self.path, name)
        self._follow = follow
        self._kept = f"what was at {whole} is unchanged" if whole else "what was there is unchanged"
        self._is_part = bool(whole)
        self.folder, self.name = os.path.split(self.path)
        self.token = self._temporary = ""
        self.is_in_place = False  # known at the end
        self._file: io.FileIO | None = None

    def __enter__(self) -> Replacement:
        if self._follow or not os.path.islink(self.path):
            _check_kind(self.path)
        try:
            self._open()
        except OSError as error:
            self._discard()
            raise system_error(
                f"save: cannot make a file in {self.folder} for {self.name} ({error}); "
                f"{self._kept}",
                error,
            ) from error
        except BaseException:
            self._discard()
            raise
        return self

    def _open(self) -> None:
        # The token of an index is in the names of its parts.
        names = "" if self._is_part else " ".join(names_in(self.folder))
        while True:
            self.token = secrets.token_hex(4)
            if self.token in names:
                continue
            self._temporary = os.path.join(self.folder, f".{self.name}.{self.token}.partial")
            try:
                self._file = io.FileIO(self._temporary, "xb")
            except FileExistsError:
                continue
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(self._file, fcntl.LOCK_EX)
            if os.fstat(self._file.fileno()).st_nlink:
                break
            file, self._file = self._file, None
            file.close()  # another save removed it as a leftover before it was locked
        with contextlib.suppress(FileNotFoundError):
            mode = (os.stat if self._follow else os.lstat)(self.path).st_mode
            if stat.S_ISREG(mode):
                os.fchmod(self._file.fileno(), mode & 0o7777)

    def write(self, data: memoryview) -> int:
        """Write some bytes and return how many."""
        assert self._file is not None
        return os.write(self._file.fileno(), data)

    def take_name(self) -> None:
        """Make the bytes durable, then rename the file; `sync_folder` makes the name durable."""
        assert self._file is not None
        os.fsync(self._file.fileno())
        os.replace(self._temporary, self.path)

    def take_new_name(self) -> None:
        """Do the same as `take_name`; raise FileExistsError if there is a file of the name."""
        assert self._file is not None
        os.fsync(self._file.fileno())
        try:
            os.link(self._temporary, self.path)
        except OSError as error:
            if error.errno not in _NO_LINKS or os.path.lexists(self.path):
                raise
            os.replace(self._temporary, self.path)
        else:
            os.unlink(self._temporary)

    def _has_the_name(self) -> bool:
        """Return whether the file at the path is this one, which is open."""
        try:
            assert self._file is not None
            return os.path.samestat(os.lstat(self.path), os.fstat(self._file.fileno()))
        except (OSError, ValueError):
            return False

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        try:
            self.is_in_place = not self._is_part and self._has_the_name()
        finally:
            waiting = self._discard()
        if isinstance(error, OSError) and not isinstance(error, CheckpointError):
            if self.is_in_place:
                text = (
                    f"is written and in its place, but its folder was not synchronised ({error}): "
                    "a power failure may bring back what was there before"
                )
            elif waiting or self._is_part:
                text = f"could not be written ({error}); {self._kept}"
            else:
                text = (
                    f"was not completed ({error}): another save or program replaced or removed "
                    "the new file"
                )
            raise system_error(f"save: {self.path} {text}", error) from error

    def _discard(self) -> bool:
        """Remove the file unless it was renamed, and close it; return whether it was removed.

        The lock is released last, when other saves cannot see the file.
        """
        try:
            waiting = self._is_there()
            if waiting:
                with contextlib.suppress(OSError):
                    os.unlink(self._temporary)
            return waiting
        finally:
            if self._file is not None:
                with contextlib.suppress(OSError):  # the bytes were synchronised before
                    self._file.close()

    def _is_there(self) -> bool:
        """Return whether the temporary name exists and is this file."""
        try:
            status = os.lstat(self._temporary)
            return self._file is None or os.path.samestat(status, os.fstat(self._file.fileno()))
        except (OSError, ValueError):  # no such name, or closed
            return False


def _check_kind(path: str) -> None:
    """Raise unless the file to be replaced is a regular file or does not exist."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return
    if stat.S_ISDIR(mode):
        raise _no_folder(path, "is a folder")
    if not stat.S_ISREG(mode):
        raise CheckpointError(
            f"save: {path!r} is {kind_of(mode)}, which save does not replace; open it, "
            "and call save(value, file) with the open file"
        )


def _no_folder(path: str, text: str) -> CheckpointError:
    error = IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    return system_error(f"save: a file is required, {path!r} {text}", error)


def path_of(f: str | os.PathLike[Any], function: str) -> str:
    """Return the text of a path; a path with a zero byte is an error."""
    path = os.fsdecode(f)
    if "\0" in path:
        raise ValueError(f"{function}: a path must not hold a null character, got {path!r}")
    return path


def kind_of(mode: int) -> str:
    """Return the kind of a file that is not a regular one, in words."""
    tests: dict[str, Callable[[int], bool]] = {
        "a pipe (FIFO)": stat.S_ISFIFO,
        "a socket": stat.S_ISSOCK,
        "a device": lambda mode: stat.S_ISCHR(mode) or stat.S_ISBLK(mode),
    }
    return next((name for name, test in tests.items() if test(mode)), "no regular file")


def names_in(folder: str) -> list[str]:
    """Return the names in a folder; none if it cannot be read."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def sweep(folder: str, names: Iterable[str], pattern: str) -> None:
    """Remove the leftovers of killed saves: matching temporary files that no process locks."""
    form = re.compile(rf"\.(?:{pattern})\.{TOKEN}\.partial")
    for name in names:
        if form.fullmatch(name):
            with contextlib.suppress(OSError), _locked(os.path.join(folder, name)) as path:
                os.unlink(path)


def is_free(path: str) -> bool:
    """Return whether a temporary file is gone or a leftover, whose process has ended."""
    try:
        with _locked(path):
            return True
    except FileNotFoundError:
        return True
    except OSError:  # locked, or the file system has no locks
        return False


@contextlib.contextmanager
def _locked(path: str) -> Any:
    """Hold the lock of a temporary file; raise OSError if another process has it, or if there are
    no locks.
    """
    flags = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        file = os.open(path, os.O_RDWR | flags)
    except PermissionError:  # the write permissions in a mode
        file = os.open(path, os.O_RDONLY | flags)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(f"{path} is not a file")
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield path
    finally:
        os.close(file)


def sync_folder(folder: str) -> None:
    """Make the new name durable; a folder that cannot be opened or synchronised is skipped."""
    try:
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EROFS):
            raise
    finally:
        with contextlib.suppress(OSError):
            os.close(file)


def write_stream(stream: Any, write: Callable[[Writer], object]) -> None:
    """Write to an open file; a failed write cannot be undone."""
    try:
        write(Writer(stream.write))
        if hasattr(stream, "flush"):
            stream.flush()
    except OSError as error:
        raise system_error(
            f"save: the file object could not be written ({error}); what it holds is incomplete",
            error,
        ) from error
