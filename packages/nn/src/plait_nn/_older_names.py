"""Functions under the names that older programs call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from plait_abi.frames import warn

__all__ = ["older"]

Function = TypeVar("Function", bound=Callable[..., Any])


def older(prefix: str, name: str, function: Function) -> Function:
    """Return `function` under an older name, whose calls warn."""
    text = f"`{prefix}.{name}` is now deprecated in favor of `{prefix}.{function.__name__}`."

    @functools.wraps(function)
    def renamed(*args: Any, **kwargs: Any) -> Any:
        warn(text, FutureWarning)
        return function(*args, **kwargs)

    renamed.__name__ = renamed.__qualname__ = name
    return cast("Function", renamed)
