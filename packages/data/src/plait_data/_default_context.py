"""The start method of the workers of a loader that names none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_source: Callable[[], Any] | None = None


def set_default_context(source: Callable[[], Any] | None) -> Callable[[], Any] | None:
    """Set the context of multiprocessing for loaders with ``multiprocessing_context=None``.

    Args:
        source: a function that returns a context of multiprocessing, called for each pool of
            workers; None: workers are new interpreters, which is the default.

    Returns:
        The source that was set before.

    Example:
        >>> import multiprocessing
        >>> from plait_data._default_context import default_context, set_default_context
        >>> before = set_default_context(lambda: multiprocessing.get_context("fork"))
        >>> default_context().get_start_method()
        'fork'
        >>> set_default_context(before) is not None
        True
    """
    global _source
    before, _source = _source, source
    return before


def default_context() -> Any:
    """Return the context for a new pool of workers; None: they are new interpreters."""
    return None if _source is None else _source()
