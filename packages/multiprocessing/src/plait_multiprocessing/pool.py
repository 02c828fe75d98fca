"""`multiprocessing.pool`, whose pools of processes send tensors as shared memory.

>>> from plait_multiprocessing.pool import Pool, ThreadPool
>>> import multiprocessing.pool
>>> issubclass(Pool, multiprocessing.pool.Pool), ThreadPool is multiprocessing.pool.ThreadPool
(True, True)
"""

from __future__ import annotations

from multiprocessing import pool as _standard
from multiprocessing.pool import (
    ApplyResult,
    AsyncResult,
    IMapIterator,
    IMapUnorderedIterator,
    MapResult,
    ThreadPool,
)
from typing import Any as _Any

from plait_multiprocessing._contexts import DEFAULT as _DEFAULT
from plait_multiprocessing._pool import Pool

Pool.default_context = staticmethod(_DEFAULT.get_context)

MaybeEncodingError: _Any = _standard.MaybeEncodingError  # type: ignore[attr-defined]
RemoteTraceback: _Any = _standard.RemoteTraceback  # type: ignore[attr-defined]

__all__ = [
    "ApplyResult",
    "AsyncResult",
    "IMapIterator",
    "IMapUnorderedIterator",
    "MapResult",
    "MaybeEncodingError",
    "Pool",
    "RemoteTraceback",
    "ThreadPool",
]


def __getattr__(name: str) -> _Any:
    return getattr(_standard, name)
