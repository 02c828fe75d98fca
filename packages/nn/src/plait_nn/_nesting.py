"""Recursive functions over modules, without Python's limit of recursion."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

DEEPEST = 10_000  # a module that contains itself has no end

Steps = Generator[Any, Any, Any]


def check_depth(depth: int, name: str) -> None:
    """Raise for modules that are nested too deeply.

    Raises:
        RecursionError: for more than 10,000 levels.
    """
    if depth > DEEPEST:
        raise RecursionError(
            f"{name}: modules are nested more than {DEEPEST} deep, or one contains itself"
        )


def run(steps: Steps, name: str) -> Any:
    """Run a function that is written as a generator: it yields a generator where it would call
    itself, and gets what that returns.

    Example:
        >>> def length(values):
        ...     return 1 + (yield length(values[1])) if values else 0
        >>> nested = ()
        >>> for _ in range(5000):
        ...     nested = (0, nested)
        >>> run(length(nested), "length")
        5000
    """
    stack, value = [steps], None
    while True:
        try:
            inner = stack[-1].send(value)
        except StopIteration as end:
            stack.pop()
            value = end.value
            if not stack:
                return value
            continue
        stack.append(inner)
        value = None
        if len(stack) > DEEPEST:
            check_depth(len(stack), name)
