"""`torch.distributed.elastic.multiprocessing.errors`: marks for its launcher."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["ChildFailedError", "record"]

Main = TypeVar("Main", bound=Callable[..., Any])


class ChildFailedError(Exception):
    """What torchrun raises when a process fails; plait's launcher exits with its code instead."""


def record(fn: Main, error_handler: Any = None) -> Main:
    """Return the function: plait's launcher reads tracebacks from the output of processes.

    Example:
        >>> from plait_torch._distributed_errors import record
        >>> @record
        ... def main():
        ...     return 0
        >>> main()
        0
    """
    return fn
