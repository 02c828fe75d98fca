"""Functions that exist by name only and raise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn


def refusing(name: str, error: Callable[[], Exception], doc: str) -> Any:
    """Return a function with a name and docstring that raises the result of `error`."""

    def refused(*args: Any, **kwargs: Any) -> NoReturn:
        raise error()

    refused.__name__ = refused.__qualname__ = name
    refused.__doc__ = doc
    return refused
