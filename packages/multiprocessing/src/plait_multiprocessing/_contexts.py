"""The contexts of multiprocessing with this package's classes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable
from multiprocessing import context
from typing import Any

from plait_multiprocessing import _connections, _processes


class _Sharing:
    """The base of all contexts. Locks and values are those of the standard module."""

    def Pipe(self, duplex: bool = True) -> Any:  # noqa: N802
        """Return two connected `Connection` objects."""
        return _connections.Pipe(duplex)

    def Queue(self, maxsize: int = 0) -> Any:  # noqa: N802
        """Return a queue for any number of processes; tensors in it are shared, not copied.

        Args:
            maxsize: The largest number of elements; 0: no limit.

        Example:
            >>> import plait_core as pc, plait_multiprocessing as mp
            >>> queue = mp.Queue()
            >>> queue.put({"x": pc.ones(2)})
            >>> queue.get()["x"].is_shared()
            True
        """
        from plait_multiprocessing._queues import Queue

        return Queue(maxsize, ctx=self.get_context())

    def JoinableQueue(self, maxsize: int = 0) -> Any:  # noqa: N802
        """Return a queue with ``task_done`` and ``join``.

        Args:
            maxsize: The largest number of elements; 0: no limit.

        Example:
            >>> import plait_multiprocessing as mp
            >>> queue = mp.JoinableQueue()
            >>> queue.put("work")
            >>> queue.get()
            'work'
            >>> queue.task_done()
            >>> queue.join()
        """
        from plait_multiprocessing._queues import JoinableQueue

        return JoinableQueue(maxsize, ctx=self.get_context())

    def SimpleQueue(self) -> Any:  # noqa: N802
        """Return a locked pipe: a queue without a thread, whose ``put`` may wait for the reader.

        Example:
            >>> import plait_core as pc, plait_multiprocessing as mp
            >>> queue = mp.SimpleQueue()
            >>> queue.put(pc.ones(2))
            >>> queue.get()
            tensor([1., 1.])
        """
        from plait_multiprocessing._queues import SimpleQueue

        return SimpleQueue(ctx=self.get_context())

    def Manager(self) -> Any:  # noqa: N802
        """Return a started manager, a process that keeps objects for others.

        Example:
            >>> import plait_core as pc, plait_multiprocessing as mp
            >>> with mp.Manager() as manager:
            ...     things = manager.dict()
            ...     things["x"] = pc.ones(2)
            ...     print(things["x"])
            tensor([1., 1.])
        """
        from plait_multiprocessing._managers import SyncManager

        manager = SyncManager(ctx=self.get_context())
        manager.start()
        return manager

    def Pool(  # noqa: N802
        self,
        processes: int | None = None,
        initializer: Callable[..., Any] | None = None,
        initargs: Iterable[Any] = (),
        maxtasksperchild: int | None = None,
    ) -> Any:
        """Return a pool of processes, in which each task has a result or an error.

        Args:
            processes: Number of processes; None: the number of cores.
            initializer: Called first in each process; or None.
            initargs: Its arguments.
            maxtasksperchild: After how many tasks a process is replaced; None: never.

        Example:
            >>> import plait_core as pc, plait_multiprocessing as mp
            >>> with mp.get_context("fork").Pool(2) as pool:
            ...     print(pool.map(pc.neg, [pc.ones(1), pc.zeros(1)]))
            [tensor([-1.]), tensor([-0.])]
        """
        from plait_multiprocessing._pool import Pool

        return Pool(processes, initializer, initargs, maxtasksperchild, self.get_context())

    def get_context(self, method: str | None = None) -> Any:
        """Return the context of a start method; None: this context."""
        if method is None:
            return self
        if method not in _CONCRETE:
            raise ValueError(f"cannot find context for {method!r}")
        return _CONCRETE[method]


class ForkContext(_Sharing, context.ForkContext):
    """The context whose processes are forks of this one."""

    Process = _processes.ForkProcess


class SpawnContext(_Sharing, context.SpawnContext):
    """The context whose processes are new interpreters."""

    Process = _processes.SpawnProcess


class ForkServerContext(_Sharing, context.ForkServerContext):
    """The context whose processes are forked from a server."""

    Process = _processes.ForkServerProcess


_CONCRETE: dict[str, Any] = {
    "fork": ForkContext(),
    "spawn": SpawnContext(),
    "forkserver": ForkServerContext(),
}


class DefaultContext(_Sharing, context.BaseContext):
    """The default context, which has the start method of the standard module."""

    Process = _processes.Process

    def get_context(self, method: str | None = None) -> Any:
        """Return the context of a start method; None: of the current one.

        Args:
            method: "fork", "spawn" or "forkserver"; None: the default.

        Example:
            >>> import plait_multiprocessing as mp
            >>> mp.get_context("spawn").get_start_method()
            'spawn'
        """
        return super().get_context(method or multiprocessing.get_start_method())

    def get_start_method(self, allow_none: bool = False) -> Any:
        """Return the current start method; without `allow_none` this call fixes it.

        Example:
            >>> import plait_multiprocessing as mp
            >>> mp.get_start_method() in mp.get_all_start_methods()
            True
        """
        return multiprocessing.get_start_method(allow_none)

    def set_start_method(self, method: str | None, force: bool = False) -> None:
        """Set the start method, once, also of the standard module.

        Args:
            method: "fork", "spawn" or "forkserver"; None: the default.
            force: Whether it may be changed when it was set.

        Example:
            >>> import plait_multiprocessing as mp
            >>> mp.set_start_method(mp.get_start_method(), force=True)
        """
        multiprocessing.set_start_method(method, force)

    def get_all_start_methods(self) -> list[str]:
        """Return the start methods of this system.

        Example:
            >>> import plait_multiprocessing as mp
            >>> sorted(mp.get_all_start_methods())
            ['fork', 'forkserver', 'spawn']
        """
        return multiprocessing.get_all_start_methods()


DEFAULT = DefaultContext()
