"""`multiprocessing.managers`, whose managers send tensors as shared memory.

>>> from plait_multiprocessing.managers import SyncManager
>>> import multiprocessing.managers
>>> issubclass(SyncManager, multiprocessing.managers.SyncManager)
True
"""

from __future__ import annotations

from multiprocessing import managers as _standard
from multiprocessing.managers import BaseProxy, DictProxy, ListProxy, SharedMemoryManager, Token
from typing import Any as _Any

from plait_multiprocessing._contexts import DEFAULT as _DEFAULT
from plait_multiprocessing._managers import BaseManager, SyncManager

BaseManager.default_context = staticmethod(_DEFAULT.get_context)

__all__ = [
    "BaseManager",
    "BaseProxy",
    "DictProxy",
    "ListProxy",
    "SharedMemoryManager",
    "SyncManager",
    "Token",
]


def __getattr__(name: str) -> _Any:
    return getattr(_standard, name)
