"""Named parts of a program, under PyTorch's names: they are ranges of plait's profiler.

>>> import plait_core as pc
>>> with pc.cuda.nvtx.range("forward"):
...     y = pc.ones(2) + 1
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from plait_abi import binding

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]

_pushed = threading.local()
_started: dict[int, Any] = {}
_lock = threading.Lock()


def range_push(msg: str) -> int:
    """Begin a part that `range_pop` ends; returns how many there are around it in this thread.

    Args:
        msg: The text.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.nvtx.range_push("step")
        0
        >>> pc.cuda.nvtx.range_pop()
        0
    """
    if not hasattr(_pushed, "stack"):
        _pushed.stack = []
    part = binding.Range(msg)
    part.__enter__()
    _pushed.stack.append(part)
    return len(_pushed.stack) - 1


def range_pop() -> int:
    """End the part that the last `range_push` of this thread began; returns how many are around it.

    Example:
        >>> import plait_core as pc
        >>> _ = pc.cuda.nvtx.range_push("step")
        >>> pc.cuda.nvtx.range_pop()
        0
    """
    stack = getattr(_pushed, "stack", [])
    if not stack:
        return -1
    stack.pop().__exit__(None, None, None)
    return len(stack)


def range_start(msg: str) -> int:
    """Begin a part that `range_end` ends, from any place of the same thread; returns its number.

    Args:
        msg: The text.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.nvtx.range_end(pc.cuda.nvtx.range_start("step"))
    """
    part = binding.Range(msg)
    part.__enter__()
    with _lock:
        number = max(_started, default=0) + 1
        _started[number] = part
    return number


def range_end(range_id: int) -> None:
    """End a part that `range_start` began.

    Args:
        range_id: What `range_start` returned.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.nvtx.range_end(pc.cuda.nvtx.range_start("step"))
    """
    with _lock:
        part = _started.pop(range_id, None)
    if part is not None:
        part.__exit__(None, None, None)


def mark(msg: str) -> None:
    """Note a moment: a part without length.

    Args:
        msg: The text.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.nvtx.mark("here")
    """
    with binding.Range(msg):
        pass


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Name a part of the program; arguments fill the text as `str.format` does.

    Args:
        msg: The text.

    Example:
        >>> import plait_core as pc
        >>> with pc.cuda.nvtx.range("batch {}", 3):
        ...     pass
    """
    with binding.Range(msg.format(*args, **kwargs)):
        yield
