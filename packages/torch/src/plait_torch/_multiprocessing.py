"""Additions to plait's `multiprocessing`: PyTorch's names of sharing strategies."""

from __future__ import annotations

import sys
import threading

import plait_multiprocessing

__all__ = ["_get_thread_name", "_set_thread_name", "set_sharing_strategy"]


def _set_thread_name(name: str) -> None:
    """Give the thread a name that tools of the system show: its first 15 bytes, on Linux."""
    if sys.platform.startswith("linux"):
        with open(f"/proc/self/task/{threading.get_native_id()}/comm", "wb") as file:
            file.write(name.encode()[:15])


def _get_thread_name() -> str:
    """Return the thread's name in the system.

    Example:
        >>> from plait_torch._multiprocessing import _get_thread_name
        >>> isinstance(_get_thread_name(), str)
        True
    """
    if not sys.platform.startswith("linux"):
        return threading.current_thread().name
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", encoding="utf-8") as file:
        return file.read().rstrip("\n")


def set_sharing_strategy(new_strategy: str) -> None:
    """Accept PyTorch's strategies, of which plait has one.

    Programs choose ``"file_system"`` to save file descriptors, of which plait's strategy needs only
    a few.

    Raises:
        ValueError: for a name that PyTorch does not have either.

    Example:
        >>> from plait_torch._multiprocessing import set_sharing_strategy
        >>> set_sharing_strategy("file_system")
    """
    if new_strategy != "file_system":
        plait_multiprocessing.set_sharing_strategy(new_strategy)
