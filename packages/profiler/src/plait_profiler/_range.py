"""Named ranges in a profile."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from plait_abi import Range

P = ParamSpec("P")
R = TypeVar("R")


class record_function(Range):  # noqa: N801
    """A context manager and decorator that gives a part of a program a name in profiles.

    Args:
        name: the name of the range.
        args: ignored; accepted for PyTorch's signature.

    Example:
        >>> from plait_profiler import profile, record_function
        >>> @record_function("double")
        ... def double(x):
        ...     return 2 * x
        >>> with profile() as prof, record_function("outer"):
        ...     _ = double(2)
        >>> [event.name for event in prof.events()]
        ['outer', 'double']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        super().__init__(name)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Return a function of which each call is a range of this name."""
        name = self.name

        @functools.wraps(function)
        def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
            # each call has its own range, as calls may overlap on several threads
            with Range(name):
                return function(*args, **kwargs)

        return wrapped
