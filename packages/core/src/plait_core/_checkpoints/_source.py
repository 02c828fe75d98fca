"""The sources from which checkpoints are read: files, and bytes in memory."""

from __future__ import annotations

import contextlib
import errno
import io
import mmap
import os
import stat
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from plait_core import _core
from plait_core._checkpoints._atomic import kind_of, path_of
from plait_core._checkpoints._digest import sum_of
from plait_core._checkpoints._errors import CheckpointError, system_error


class Source:
    """Bytes with a size, of which any part can be read."""

    def __init__(self, name: str, size: int) -> None:
        self.name, self.size = name, size

    def read_into(self, begin: int, target: np.ndarray[Any, Any]) -> None:
        """Fill a one-dimensional uint8 array with the bytes from `begin`."""
        raise NotImplementedError

    def read_checked(self, begin: int, target: np.ndarray[Any, Any], kind: str) -> str | int:
        """Do what `read_into` does, and return the "digest" or the "crc" of the bytes."""
        self.read_into(begin, target)
        return sum_of(target, kind)

    def read(self, begin: int, count: int) -> bytes:
        """Return `count` bytes from `begin`."""
        if begin < 0 or count < 0 or begin + count > self.size:
            raise CheckpointError(
                f"load: {self.name} is cut off: bytes up to {begin + count} are required, it has "
                f"{self.size}"
            )
        target = np.empty(count, np.uint8)
        self.read_into(begin, target)
        return target.tobytes()

    def view(self) -> Any:
        """Return all bytes, as bytes or as a mapped file."""
        return self.read(0, self.size)

    def mapped(self) -> np.ndarray[Any, Any]:
        """Return all bytes as memory that is read at its first use and copied when it is written
        to.
        """
        raise CheckpointError(f"load: mmap=True requires a path, got {self.name}")

    def close(self) -> None:
        """Close the file."""


class _File(Source):
    def __init__(self, name: str, file: int, base: int, owned: bool) -> None:
        super().__init__(name, max(os.fstat(file).st_size - base, 0))
        self._file, self._base, self._owned = file, base, owned

    def read_into(self, begin: int, target: np.ndarray[Any, Any]) -> None:
        self._read(begin, target, "")

    def read_checked(self, begin: int, target: np.ndarray[Any, Any], kind: str) -> str | int:
        result = self._read(begin, target, kind)
        assert result is not None
        return result

    def _read(self, begin: int, target: np.ndarray[Any, Any], kind: str) -> str | int | None:
        position = self._base + begin
        with self._opened() as file:
            count, sums = _core._read_into(file, position, target, kind)
        if count < target.size:
            raise CheckpointError(f"load: {self.name} ends before byte {position + target.size}")
        return sums

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        yield self._file

    def view(self) -> Any:
        if not self._owned or not self.size:
            return super().view()
        return mmap.mmap(self._file, 0, access=mmap.ACCESS_READ)

    def mapped(self) -> np.ndarray[Any, Any]:
        if not self._owned:
            return super().mapped()
        # before Python 3.13 a mapping keeps the file open
        more: dict[str, Any] = {"trackfd": False} if sys.version_info >= (3, 13) else {}
        memory = mmap.mmap(self._file, 0, access=mmap.ACCESS_COPY, **more)
        return np.frombuffer(memory, np.uint8)

    def close(self) -> None:
        if self._owned:
            file, self._file, self._owned = self._file, -1, False
            os.close(file)


class Part(_File):
    """A file of a sharded checkpoint; it may be closed and opened again between two reads."""

    def __init__(self, path: str) -> None:
        file = _open_path(path)
        try:
            super().__init__(path, file, 0, True)
            self._identity = os.fstat(file)
        except BaseException:
            os.close(file)
            raise

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        if self._owned:
            yield self._file
            return
        file = _open_path(self.name)
        try:
            if not os.path.samestat(os.fstat(file), self._identity):
                raise CheckpointError(f"load: {self.name} was replaced while it was read")
            yield file
        finally:
            os.close(file)


class _Bytes(Source):
    def __init__(self, name: str, data: bytes) -> None:
        super().__init__(name, len(data))
        self._data = np.frombuffer(data, np.uint8)

    def read_into(self, begin: int, target: np.ndarray[Any, Any]) -> None:
        if begin + target.size > self.size:
            raise CheckpointError(f"load: {self.name} ends before byte {begin + target.size}")
        target[:] = self._data[begin : begin + target.size]


def _open_path(path: str) -> int:
    """Open a regular file; others raise, as opening a pipe would wait for a writer."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        mode = os.fstat(file).st_mode
    except OSError as error:
        raise system_error(f"load: {path} cannot be opened ({error})", error) from error
    if stat.S_ISREG(mode):
        return file
    os.close(file)
    if stat.S_ISDIR(mode):
        folder = IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        raise system_error(f"load: a file is required, {path!r} is a folder", folder)
    raise CheckpointError(
        f"load: a file is required, {path!r} is {kind_of(mode)}; "
        "load(io.BytesIO(data)) takes what was read from it"
    )


def open_source(f: Any) -> Source:
    """Return the source for a path, or for an open file from its position on."""
    if isinstance(f, (str, os.PathLike)):
        path = path_of(f, "load")
        return _File(path, _open_path(path), 0, True)
    if not hasattr(f, "read"):
        raise TypeError(f"load: `f` must be a path or an open file, got {type(f).__name__}")
    name = f"<{type(f).__name__}>"
    raw = f.raw if type(f) in (io.BufferedReader, io.BufferedRandom) else f
    # other files may decode the bytes below them, as gzip's do
    if type(raw) is io.FileIO and raw.seekable():
        return _File(str(raw.name), raw.fileno(), f.tell(), False)
    data = f.read()
    if not isinstance(data, bytes):
        raise TypeError(
            f"load: `f` must be open in binary mode; read() returned {type(data).__name__}"
        )
    return _Bytes(name, data)
