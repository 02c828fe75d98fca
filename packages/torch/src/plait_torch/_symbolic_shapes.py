"""`torch.fx.experimental.symbolic_shapes`: sizes are always numbers here, never symbols.

transformers, torchao and deepspeed use it.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "GuardOnDataDependentSymNode",
    "definitely_false",
    "definitely_true",
    "free_symbols",
    "free_unbacked_symbols",
    "guard_bool",
    "guard_float",
    "guard_int",
    "guard_or_false",
    "guard_or_true",
    "guard_size_oblivious",
    "has_free_symbols",
    "has_free_unbacked_symbols",
    "hint_int",
    "is_concrete_bool",
    "is_concrete_float",
    "is_concrete_int",
    "is_symbolic",
    "statically_known_false",
    "statically_known_true",
]


class GuardOnDataDependentSymNode(RuntimeError):
    """The error of a condition on a symbolic size; plait never raises it."""


def guard_bool(a: Any) -> bool:
    """Return the truth of a condition.

    Example:
        >>> from plait_torch._symbolic_shapes import guard_bool
        >>> guard_bool(3 > 2)
        True
    """
    return bool(a)


guard_or_false = guard_or_true = guard_size_oblivious = guard_bool
statically_known_true = definitely_true = guard_bool


def statically_known_false(a: Any) -> bool:
    """Return whether a condition does not hold."""
    return not a


definitely_false = statically_known_false


def guard_int(a: Any) -> int:
    """Return a size."""
    return int(a)


def guard_float(a: Any) -> float:
    """Return a number."""
    return float(a)


def hint_int(a: Any, fallback: int | None = None) -> int:
    """Return a size."""
    return int(a)


def free_symbols(val: Any) -> set[Any]:
    """Return the free symbols in a value: none."""
    return set()


free_unbacked_symbols = free_symbols


def has_free_symbols(val: Any) -> bool:
    """Return whether a value has free symbols: False."""
    return False


has_free_unbacked_symbols = is_symbolic = has_free_symbols


def is_concrete_int(a: Any) -> bool:
    """Return whether a size is a number: True."""
    return True


is_concrete_bool = is_concrete_float = is_concrete_int
