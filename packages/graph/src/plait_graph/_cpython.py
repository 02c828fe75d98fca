"""What the instructions of CPython say of a function."""

from __future__ import annotations

import dis
import types

_READS = ("LOAD_GLOBAL", "LOAD_NAME")


def globals_in(code: types.CodeType) -> set[str]:
    """Return the names of its module that a function reads, without names of attributes."""
    result = {each.argval for each in dis.get_instructions(code) if each.opname in _READS}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            result |= globals_in(constant)
    return result
