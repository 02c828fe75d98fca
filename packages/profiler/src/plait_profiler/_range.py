"""Named ranges in a profile."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from plait_profiler._recorder import library

__all__ = ["record_function"]

P = ParamSpec("P")
R = TypeVar("R")


class record_function:  # noqa: N801
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
        self.name = name
        self._encoded = name.encode()
        self._open: list[Any] = []

    def __enter__(self) -> record_function:
        self._open.append(library().range_begin(self._encoded))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        token = self._open.pop()
        if token:
            library().range_end(token, kind is not None)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
            # each call has its own range, as calls may overlap on several threads
            with record_function(self.name):
                return function(*args, **kwargs)

        return wrapped
