"""`torch.distributed.rpc.functions`: functions that answer a call later."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["async_execution"]


def async_execution(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that returns a future, marked so that a call's result is the future's.

    Args:
        fn: A function that returns a future.

    Example:
        >>> from plait_ray.rpc import functions
        >>> @functions.async_execution
        ... def add_later(to, x):
        ...     return rpc.rpc_async(to, add, args=(x, 1)).then(lambda done: done.wait() * 2)
    """

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    run._plait_async = True  # type: ignore[attr-defined]
    return run
