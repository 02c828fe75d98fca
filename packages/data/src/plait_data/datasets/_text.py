"""Text files with a sample for each line."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from plait_data._dataset import Dataset
from plait_data.datasets._records import RecordFile


class TextLines(Dataset[Any]):
    """The lines of a text file, read at access.

    The file is scanned once for the beginnings of lines; each takes 8 bytes of memory. A line
    ends with ``\\n`` or ``\\r\\n``, which are not part of it.

    Args:
        path: the file.
        transform: a function of a line, applied at each access.
        encoding: the encoding of the file.
        errors: the handling of invalid bytes, as in ``bytes.decode``.

    Raises:
        OSError: the file can't be read, or was changed since.
        UnicodeDecodeError: at an access, if a line is not valid in that encoding.

    Example:
        >>> import tempfile, pathlib
        >>> from plait_data.datasets import TextLines
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "words.txt")
        ...     _ = path.write_text("one\\ntwo\\nthree\\n")
        ...     lines = TextLines(path, transform=str.upper)
        ...     len(lines), lines[2], lines[-2]
        (3, 'THREE', 'TWO')
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        transform: Callable[[str], Any] | None = None,
        encoding: str = "utf-8",
        errors: str = "strict",
    ) -> None:
        self.records = RecordFile(path, kind="TextLines")
        self.transform = transform
        self.encoding = encoding
        self.errors = errors
        if "\n".encode(encoding) not in (b"\n", b"\xef\xbb\xbf\n"):
            raise ValueError(
                f"TextLines: `encoding` must write a line end as one byte; got {encoding!r}"
            )

    def __getitem__(self, index: int) -> Any:
        line = self.records[index].decode(self.encoding, self.errors)
        return line if self.transform is None else self.transform(line)

    def __len__(self) -> int:
        return len(self.records)
