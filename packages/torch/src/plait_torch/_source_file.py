"""A source of a checkpoint as a file object, for Python's readers of archives."""

from __future__ import annotations

import io

from plait_core._checkpoints._format import Source

__all__ = ["SourceFile"]


class SourceFile(io.RawIOBase):
    """A source as a file object.

    Args:
        source: what is read.

    Example:
        >>> import io
        >>> from plait_core._checkpoints._source import open_source
        >>> from plait_torch._source_file import SourceFile
        >>> SourceFile(open_source(io.BytesIO(b"abc"))).read(2)
        b'ab'
    """

    def __init__(self, source: Source) -> None:
        self._source, self._position = source, 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def seek(self, offset: int, whence: int = 0) -> int:
        """Set the position and return it."""
        self._position = max(offset + (0, self._position, self._source.size)[whence], 0)
        return self._position

    def read(self, count: int | None = -1) -> bytes:
        """Return the next bytes, at most `count`."""
        rest = max(self._source.size - self._position, 0)
        length = rest if count is None or count < 0 else min(count, rest)
        result = self._source.read(self._position, length)
        self._position += len(result)
        return result
