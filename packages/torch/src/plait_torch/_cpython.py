"""The purpose of an attribute access or an iteration, read from the code of the calling frame.

Python has no documented way to know. This is the one file of the package that reads instructions of
CPython, 3.10 to 3.14. Elsewhere the answers are "no": then ``from torch import name`` fails with
Python's own text, without advice, and tracing refuses ``a, b = proxy``.
"""

from __future__ import annotations

import dis
from types import FrameType

_IMPORT_FROM = dis.opmap.get("IMPORT_FROM")
_UNPACK = dis.opmap.get("UNPACK_SEQUENCE")


def _instruction(frame: FrameType) -> tuple[int, int]:
    """Return the number and the argument of the instruction that a frame runs."""
    code, at = frame.f_code.co_code, frame.f_lasti
    return (code[at], code[at + 1]) if 0 <= at < len(code) - 1 else (-1, 0)


def is_import_from(frame: FrameType) -> bool:
    """Return whether a frame reads an attribute by ``from ... import``."""
    return _instruction(frame)[0] == _IMPORT_FROM


def unpacked(frame: FrameType) -> int | None:
    """Return into how many parts a frame unpacks a value (``a, b = value``); None: it does not."""
    number, count = _instruction(frame)
    return count if number == _UNPACK else None
