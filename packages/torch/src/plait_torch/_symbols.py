"""Sizes that PyTorch's compiler represents as symbols; in plait they are ints."""

from __future__ import annotations

import math
from typing import Any

__all__ = [
    "SymBool",
    "SymFloat",
    "SymInt",
    "sym_float",
    "sym_int",
    "sym_ite",
    "sym_max",
    "sym_min",
    "sym_not",
    "sym_sqrt",
    "sym_sum",
]


class SymInt:
    """A class without instances: sizes are ints."""


class SymFloat:
    """A class without instances."""


class SymBool:
    """A class without instances."""


def sym_int(a: Any) -> int:
    """Return the number truncated to an int.

    Example:
        >>> from plait_torch._symbols import sym_int
        >>> sym_int(2.7)
        2
    """
    return int(a)


def sym_float(a: Any) -> float:
    """Return the number as a float."""
    return float(a)


def sym_max(a: Any, b: Any) -> Any:
    """Return the larger number; a float if either is one."""
    return _of_common_type(max(a, b), a, b)


def sym_min(a: Any, b: Any) -> Any:
    """Return the smaller number; a float if either is one."""
    return _of_common_type(min(a, b), a, b)


def _of_common_type(result: Any, *arguments: Any) -> Any:
    return float(result) if any(isinstance(each, float) for each in arguments) else result


def sym_not(a: Any) -> bool:
    """Return the negation."""
    return not a


def sym_sum(*args: Any) -> Any:
    """Return the sum of numbers, which may be in a list."""
    return sum(args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args)


def sym_sqrt(a: Any) -> float:
    """Return the root."""
    return math.sqrt(a)


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """Return `t` if `b` holds, else `f`."""
    return t if b else f
