"""Pools in which every task ends with a result or an error, also if a worker dies."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import time
from collections.abc import Callable, Iterable
from multiprocessing import pool as standard, util
from typing import Any, ClassVar

from plait_multiprocessing._connections import Pipe
from plait_multiprocessing._pool_results import Results, Wakeup
from plait_multiprocessing._pool_tasks import Tasks
from plait_multiprocessing._pool_worker import serve
from plait_multiprocessing.interrupts import uninterrupted

_standard: Any = standard.Pool
# seconds that all workers have to end between SIGTERM and SIGKILL
_GRACE = 10.0


class _NoThread:
    """The placeholder of a thread that could not be started."""

    _state = ""

    def is_alive(self) -> bool:
        return False

    def join(self) -> None:
        pass


class Pool(_standard):  # type: ignore[misc]
    """`multiprocessing.Pool` that sends tensors as shared memory and loses no task.

    A task without a result raises an error when its result is requested: its worker was killed or
    exited (`ProcessExitedException` with pid and signal or status), its exception or result cannot
    be unpickled, or the workers cannot start because the initializer or the main module fails
    (`ProcessRaisedException` with the traceback). Other tasks continue in other workers.

    Example:
        >>> import os, plait_multiprocessing as mp
        >>> with mp.get_context("fork").Pool(2) as pool:
        ...     killed = pool.apply_async(os._exit, (3,))
        ...     good = pool.map(abs, [-1, -2])
        ...     try:
        ...         killed.get()
        ...     except mp.ProcessExitedException as error:
        ...         print(good, error.exit_code)
        [1, 2] 3
    """

    # The default context. `plait_multiprocessing.pool` sets it, as this module cannot import
    # contexts, which import it.
    default_context: ClassVar[staticmethod[[], Any]]

    def __init__(
        self,
        processes: int | None = None,
        initializer: Callable[..., Any] | None = None,
        initargs: Iterable[Any] = (),
        maxtasksperchild: int | None = None,
        context: Any = None,
    ) -> None:
        context = context or self.default_context()
        # an interrupt in it would leave threads that replace workers for ever
        with uninterrupted():
            try:
                super().__init__(processes, initializer, initargs, maxtasksperchild, context)
            except BaseException:
                self._undo_start()
                raise
        self._outqueue.is_replacing = self._worker_handler.is_alive

    def _undo_start(self) -> None:
        """End workers and threads after a failed start."""
        names = ("_worker_handler", "_task_handler", "_result_handler")
        threads = [getattr(self, name, None) for name in names]
        if threads[0] is not None:  # otherwise the standard class has ended the workers
            started = [_NoThread() if t is None or t.ident is None else t for t in threads]
            queues = self._taskqueue, self._inqueue, self._outqueue
            self._terminate_pool(*queues, self._pool, self._change_notifier, *started, self._cache)
        elif hasattr(self, "_outqueue"):
            self._outqueue.close()

    @staticmethod
    def Process(ctx: Any, *_: Any, args: tuple[Any, ...], **options: Any) -> Any:  # noqa: N802
        """Make the process of a worker."""
        tasks, results, *more = args
        if results.broken is not None:
            more[0] = None  # the pool's arguments for workers
        receiver, sender = Pipe(duplex=False)
        worker = results.expect(receiver)
        options["target"] = serve
        process = ctx.Process(args=(tasks, sender, worker.slot, *more), **options)

        def start() -> None:
            del process.start
            try:
                process.start()
                results.started(worker, process)
            except BaseException as error:
                if process.pid is not None:  # it runs but cannot be watched
                    process.kill()
                    process.join()
                    process.close()
                results.not_started(worker, error)
                raise
            finally:
                sender.close()

        process.start = start
        return process

    def _setup_queues(self) -> None:
        # the pool's threads get these objects, which must not refer to the pool, so that it ends
        # when it is dropped
        self._inqueue = Tasks()
        self._outqueue = Results(self._inqueue)
        self._quick_put = self._outqueue.send
        self._quick_get = self._outqueue.get

    @property
    def _change_notifier(self) -> Wakeup:
        changes: Wakeup = self._outqueue.changes
        return changes

    @_change_notifier.setter
    def _change_notifier(self, queue: Any) -> None:
        """Accept the queue that the standard class sets; it is not used."""

    def _get_sentinels(self) -> list[Any]:
        return [self._change_notifier]

    def _map_async(
        self, func: Any, iterable: Any, mapper: Any, chunksize: int | None = None, *more: Any
    ) -> Any:
        if chunksize is None:
            # the standard method divides by the number of live processes, which may be 0
            if not hasattr(iterable, "__len__"):
                self._check_running()
                iterable = list(iterable)
            chunksize = -(-len(iterable) // (4 * self._processes))
        return super()._map_async(func, iterable, mapper, chunksize, *more)

    @staticmethod
    def _help_stuff_finish(tasks: Tasks, task_handler: Any, size: int) -> None:
        while task_handler.is_alive() and tasks.drop():
            pass

    @classmethod
    def _terminate_pool(cls, *args: Any, **keywords: Any) -> None:
        unsent, tasks, results, pool, notifier, worker_handler = args[:6]
        for process in pool:
            # a stopped process does not react to SIGTERM
            with contextlib.suppress(OSError, TypeError):
                os.kill(process.pid, signal.SIGCONT)
        worker_handler._state = standard.TERMINATE
        try:
            notifier.put(None)
            _join_worker_handler(worker_handler, unsent)
            deadline: list[float] = []
            for process in pool:  # the standard method waits for them without a limit
                process.join = functools.partial(_join_or_kill, process, deadline)
            super()._terminate_pool(*args, **keywords)
            for process in pool:  # a process that refers to itself is freed late
                vars(process).pop("join", None)
        except BaseException:  # after an interrupt this is repeated at exit
            util.Finalize(None, cls._terminate_pool, args, keywords, exitpriority=15)
            raise
        while tasks.drop():  # the memory of their tensors is released
            pass
        results.close()

    def join(self) -> None:
        """Wait for the workers' end, after `close` or `terminate`."""
        if self._state != standard.RUN:  # otherwise it raises
            _join_worker_handler(self._worker_handler, self._taskqueue)
        super().join()
        self._outqueue.close()


def _join_or_kill(process: Any, deadline: list[float], timeout: float | None = None) -> None:
    """Wait for the end of a worker that got SIGTERM; its program may ignore this signal.

    The first call notes the deadline, which is that of all workers. A program that holds the worker
    may wait for it at the same time, with a limit of its own.
    """
    if timeout is not None:
        type(process).join(process, timeout)
        return
    vars(process).pop("join", None)
    if not deadline:
        deadline.append(time.monotonic() + _GRACE)
    with contextlib.suppress(OSError):  # no memory for a wait with a limit
        process.join(max(0.0, deadline[0] - time.monotonic()))
    if process.is_alive():
        process.kill()
        process.join()


def _join_worker_handler(thread: Any, unsent: Any) -> None:
    """Wait for the thread that replaces workers.

    At its end it stops the thread that sends tasks, but not if a system call failed and ended it.
    """
    thread.join()
    unsent.put(None)
