"""The standard `multiprocessing`, with tensors in shared memory, and collectives on one machine.

``import plait_multiprocessing as mp`` in place of ``import multiprocessing as mp``: the whole API
is here. Tensors sent through queues, pipes, pools, managers and as arguments of processes arrive as
shared memory, without a copy; see the guide on multiprocessing.

    >>> import plait_core as pc, plait_multiprocessing as mp
    >>> queue = mp.SimpleQueue()
    >>> x = pc.zeros(2)
    >>> queue.put(x)
    >>> queue.get().add_(1)
    tensor([1., 1.])
    >>> x
    tensor([1., 1.])
"""

import importlib as _importlib
import multiprocessing as _standard
from multiprocessing import (
    AuthenticationError,
    BufferTooShort,
    ProcessError,
    TimeoutError,
    active_children,
    cpu_count,
    current_process,
    freeze_support,
    get_logger,
    log_to_stderr,
    parent_process,
    set_executable,
    set_forkserver_preload,
)
from multiprocessing.context import assert_spawning
from typing import Any as _Any

from plait_multiprocessing import _library as _library  # must come first, as it loads the component
from plait_multiprocessing._communicators import Communicator, GroupError, Work
from plait_multiprocessing._connections import Client, Connection, Listener, Pipe
from plait_multiprocessing._contexts import DEFAULT as _DEFAULT
from plait_multiprocessing._groups import Group, Member
from plait_multiprocessing._modules import install as _install
from plait_multiprocessing._process_errors import (
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
)
from plait_multiprocessing._processes import Process
from plait_multiprocessing._reductions import share_numpy
from plait_multiprocessing._sharing import (
    MemoryStats,
    get_all_sharing_strategies,
    get_sharing_strategy,
    is_shared,
    memory_stats,
    set_sharing_strategy,
    share_memory_,
    trim,
)
from plait_multiprocessing._spawn import ProcessContext, spawn, start_processes

__all__ = [
    "Array",
    "AuthenticationError",
    "Barrier",
    "BoundedSemaphore",
    "BufferTooShort",
    "Client",
    "Communicator",
    "Condition",
    "Connection",
    "Event",
    "Group",
    "GroupError",
    "JoinableQueue",
    "Listener",
    "Lock",
    "Manager",
    "Member",
    "MemoryStats",
    "Pipe",
    "Pool",
    "Process",
    "ProcessContext",
    "ProcessError",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "Queue",
    "RLock",
    "RawArray",
    "RawValue",
    "Semaphore",
    "SimpleQueue",
    "TimeoutError",
    "Value",
    "Work",
    "active_children",
    "allow_connection_pickling",
    "assert_spawning",
    "cpu_count",
    "current_process",
    "freeze_support",
    "get_all_sharing_strategies",
    "get_all_start_methods",
    "get_context",
    "get_logger",
    "get_sharing_strategy",
    "get_start_method",
    "is_shared",
    "log_to_stderr",
    "memory_stats",
    "parent_process",
    "reducer",
    "set_executable",
    "set_forkserver_preload",
    "set_sharing_strategy",
    "set_start_method",
    "share_memory_",
    "share_numpy",
    "spawn",
    "start_processes",
    "trim",
]

__version__ = "0.2.0"

Array = _DEFAULT.Array
Barrier = _DEFAULT.Barrier
BoundedSemaphore = _DEFAULT.BoundedSemaphore
Condition = _DEFAULT.Condition
Event = _DEFAULT.Event
JoinableQueue = _DEFAULT.JoinableQueue
Lock = _DEFAULT.Lock
Manager = _DEFAULT.Manager
Pool = _DEFAULT.Pool
Queue = _DEFAULT.Queue
RLock = _DEFAULT.RLock
RawArray = _DEFAULT.RawArray
RawValue = _DEFAULT.RawValue
Semaphore = _DEFAULT.Semaphore
SimpleQueue = _DEFAULT.SimpleQueue
Value = _DEFAULT.Value
allow_connection_pickling = _DEFAULT.allow_connection_pickling
get_all_start_methods = _DEFAULT.get_all_start_methods
get_context = _DEFAULT.get_context
get_start_method = _DEFAULT.get_start_method
reducer = _DEFAULT.reducer
set_start_method = _DEFAULT.set_start_method
_install()


def __getattr__(name: str) -> _Any:
    """Return other names of multiprocessing: its modules (``mp.pool``), and new names."""
    if not name.startswith("_"):
        if name in ("connection", "managers", "pool"):
            return _importlib.import_module(f"{__name__}.{name}")
        try:
            return getattr(_standard, name)
        except AttributeError:
            pass
    raise AttributeError(f"module 'plait_multiprocessing' has no attribute {name!r}")
