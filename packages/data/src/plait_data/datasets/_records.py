"""Records of a text file by number, read by their offsets in the file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_CHUNK = 1 << 22
_NEWLINE = 10


class RecordFile:
    """A file of records that end at line ends, except for those between quotes.

    It stores one array of offsets. Reading needs no lock, as each read has its own offset. A copy
    in another process opens the file again.

    Args:
        path: the file.
        quote: the byte between two of which a line end belongs to the record; None: there is none.
        skip: the number of records to skip at the beginning.
        kind: the name of the caller, for errors.
    """

    def __init__(
        self, path: str | os.PathLike[str], quote: int | None = None, skip: int = 0, kind: str = ""
    ) -> None:
        self.path = Path(path)
        self.kind = kind
        self._descriptor: int | None = None
        descriptor = self._opened()
        self._identity = _identity(os.fstat(descriptor))
        self.starts = _starts(descriptor, quote)[skip:]

    def __len__(self) -> int:
        return max(0, len(self.starts) - 1)

    def __getitem__(self, index: int) -> bytes:
        """The bytes of a record, without its line end."""
        n = len(self)
        at = int(index)
        if not -n <= at < n:
            raise IndexError(f"{self.kind}: index must be in [{-n}, {n - 1}]; got {index}")
        at %= n
        start, end = int(self.starts[at]), int(self.starts[at + 1])
        content = os.pread(self._opened(), end - start, start)
        if len(content) != end - start:
            raise OSError(f"{self.kind}: {self.path} was cut short since it was opened")
        return content[
            : -2 if content.endswith(b"\r\n") else -1 if content.endswith(b"\n") else None
        ]

    def drop_blank_end(self) -> None:
        """Drop empty records at the end."""
        while len(self) and not self[-1]:
            self.starts = self.starts[:-1]

    def _opened(self) -> int:
        if self._descriptor is None:
            descriptor = os.open(self.path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
            identity = getattr(self, "_identity", None)
            if identity is not None and identity != _identity(os.fstat(descriptor)):
                os.close(descriptor)
                raise OSError(f"{self.kind}: {self.path} was changed since its records were found")
            self._descriptor = descriptor
        return self._descriptor

    def close(self) -> None:
        """Close the file; the next reading opens it again."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __del__(self) -> None:
        if getattr(self, "_descriptor", None) is not None:
            self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_descriptor": None}


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


def _starts(descriptor: int, quote: int | None) -> npt.NDArray[np.int64]:
    """The offset of each record, and of the end."""
    offsets = [np.zeros(1, np.int64)]
    at, within = 0, False
    while chunk := os.pread(descriptor, _CHUNK, at):
        data = np.frombuffer(chunk, np.uint8)
        ends = data == _NEWLINE
        if quote is not None:
            odd = np.logical_xor.accumulate(data == quote) ^ within
            ends &= ~odd
            within = bool(odd[-1])
        offsets.append(np.flatnonzero(ends) + (at + 1))
        at += len(chunk)
    starts = np.concatenate(offsets)
    if starts[-1] != at:  # the last line has no end
        starts = np.append(starts, at)
    return starts.astype(np.int64)
