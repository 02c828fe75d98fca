"""Descriptions of collectives: what was called, with which tensors, from which line."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import Any

from plait_abi.frames import user_frame

_SIGNATURES: dict[tuple[Any, ...], int] = {}
_MOST_SIGNATURES = 4096


def caller() -> tuple[str, int]:
    """Return the file and line of the nearest frame that is not plait's own."""
    frame = user_frame()
    return frame.f_code.co_filename, frame.f_lineno


class Call:
    """One collective that this process began."""

    __slots__ = ("_file", "_key", "_line", "detail", "name", "number")

    def __init__(self, number: int, name: str, detail: str, tensors: Sequence[Any]) -> None:
        self.number = number
        self.name = name
        self.detail = detail
        self._key = (name, detail, tuple((tuple(t.shape), t.dtype) for t in tensors))
        self._file, self._line = caller()

    def signature(self) -> int:
        """Return a number, at least 1, that depends on the name and on shapes and dtypes alone."""
        known = _SIGNATURES.get(self._key)
        if known is None:
            digest = hashlib.blake2b(self.description().encode(), digest_size=7).digest()
            known = int.from_bytes(digest, "little") + 1
            if len(_SIGNATURES) >= _MOST_SIGNATURES:
                _SIGNATURES.clear()
            _SIGNATURES[self._key] = known
        return known

    def description(self) -> str:
        """Return the name with the tensors: ``all_reduce(float32[2, 3], sum)``."""
        shapes = [f"{str(d).rpartition('.')[2]}{list(s)}" for s, d in self._key[2]]
        if len(shapes) > 4 and len(set(shapes)) == 1:
            shapes = [f"{len(shapes)} x {shapes[0]}"]
        elif len(shapes) > 8:
            rest = hashlib.blake2b(" ".join(shapes).encode(), digest_size=4).hexdigest()
            shapes = [*shapes[:4], f"and {len(shapes) - 4} more ({rest})"]
        return f"{self.name}({', '.join([*shapes, *([self.detail] if self.detail else [])])})"

    def location(self) -> str:
        """Return the number and the line: ``#118 at train.py:40``."""
        return f"#{self.number} at {os.path.basename(self._file)}:{self._line}"

    def __str__(self) -> str:
        return f"{self.description()} {self.location()}"
