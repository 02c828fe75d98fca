"""`spawn`: run a function in several processes and get the first error with its traceback."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from multiprocessing import connection
from typing import Any

from plait_multiprocessing._communicators import GroupError
from plait_multiprocessing._contexts import DEFAULT
from plait_multiprocessing._process_errors import (
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
)

# seconds that the other processes have to end between SIGTERM and SIGKILL
_GRACE = 10.0
# seconds to wait for the error of a lost member after other members' errors
_CAUSE = 1.0


def _run(fn: Callable[..., Any], index: int, args: tuple[Any, ...], errors: Any) -> None:
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # the parent was interrupted too and raises
    except Exception as error:
        errors.send((isinstance(error, GroupError), traceback.format_exc()))
        sys.exit(1)


class ProcessContext:
    """The processes that `spawn` started.

    Args:
        errors: A place for the error of each.

    Attributes:
        processes: by index.

    Example:
        >>> import plait_core as pc, plait_multiprocessing as mp
        >>> x = pc.zeros(2).share_memory_()
        >>> started = mp.spawn(x.__setitem__, (4.0,), 2, join=False, start_method="fork")
        >>> while not started.join():
        ...     pass
        >>> x
        tensor([4., 4.])
    """

    def __init__(self, processes: list[Any], errors: list[Any]) -> None:
        self.processes = processes
        self._errors = errors
        self._texts: dict[int, tuple[bool, str] | None] = {}
        self._running = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Return the process ids."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait for processes to end; return True when all have ended successfully.

        Like PyTorch's method it returns after one of them has ended: call it until it returns True.

        Args:
            timeout: seconds to wait; None: until one ends.
            grace_period: seconds that the other processes have to end after a failure, before
                SIGKILL.

        Raises:
            ProcessRaisedException: the function raised in one of them.
            ProcessExitedException: one of them was killed, or exited with another code than 0.
        """
        if not self._running:
            return True
        ready = connection.wait(list(self._running), timeout)
        failed = self._ended(ready)
        if not failed:
            if not self._running:
                self._close()
            return not self._running
        cause = self._cause(failed)
        self._end_others(_GRACE if grace_period is None else grace_period)
        error = self._error(cause)
        self._close()
        raise error

    def _end_others(self, grace: float) -> None:
        others = [self.processes[i] for i in self._running.values()]
        for process in others:
            process.terminate()
            with contextlib.suppress(OSError):  # a stopped process does not react otherwise
                os.kill(process.pid, signal.SIGCONT)
        deadline = time.monotonic() + grace
        for process in others:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
        self._running.clear()

    def _text(self, index: int) -> tuple[bool, str] | None:
        """Return the error of a process that has ended: whether it is about another member, and its
        text.
        """
        if index not in self._texts:
            end = self._errors[index]
            try:
                self._texts[index] = end.recv() if end.poll() else None
            except (EOFError, OSError):
                self._texts[index] = None
        return self._texts[index]

    def _ended(self, sentinels: Any) -> list[int]:
        """Take the exit codes of processes that have ended; return those that failed."""
        ended = [self._running.pop(sentinel) for sentinel in sentinels]
        for index in ended:
            self.processes[index].join()
        return [index for index in ended if self.processes[index].exitcode != 0]

    def _cause(self, failed: list[int]) -> int:
        """Return the process that failed first; errors of other members may be seen earlier."""
        deadline = time.monotonic() + _CAUSE
        indices = failed
        while True:
            for index in indices:
                text = self._text(index)
                if text is None or not text[0]:
                    return index
            rest = max(0.0, deadline - time.monotonic())
            ready = connection.wait(list(self._running), rest) if self._running else []
            if not ready:
                return failed[0]
            indices = self._ended(ready)

    def _error(self, index: int) -> ProcessException:
        process = self.processes[index]
        pid, code = int(process.pid), int(process.exitcode)
        text = self._text(index)
        if text is not None:
            return ProcessRaisedException(
                f"\n\n-- Process {index} terminated with the following error:\n{text[1]}",
                index,
                pid,
            )
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"SIG{-code}"  # most real-time signals have no name
            return ProcessExitedException(
                f"process {index} (pid {pid}) was ended by the signal {name}",
                index,
                pid,
                code,
                name,
            )
        return ProcessExitedException(
            f"process {index} (pid {pid}) ended with exit code {code}", index, pid, code
        )

    def _close(self) -> None:
        for end in self._errors:
            end.close()


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run ``fn(i, *args)`` in `nprocs` processes, i = 0 ... nprocs - 1; see `spawn`.

    Args:
        fn: Called as ``fn(rank, *args)``.
        args: The further arguments of `fn`.
        nprocs: Number of processes.
        join: Whether to wait until all have ended.
        daemon: Whether they end with this process.
        start_method: "spawn", "fork" or "forkserver".

    Example:
        >>> import plait_multiprocessing as mp
        >>> mp.start_processes(print, ("hello",), nprocs=0)
    """
    if nprocs < 0:
        raise ValueError(f"spawn: `nprocs` must not be negative, got {nprocs}")
    context = DEFAULT.get_context(start_method)
    processes: list[Any] = []
    errors: list[Any] = []
    try:
        for index in range(nprocs):
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=_run, args=(fn, index, args, sender), daemon=daemon)
            processes.append(process)
            process.start()
            sender.close()
            errors.append(receiver)
    except BaseException:  # those that run would wait for the others
        running = [process for process in processes if process.pid is not None]
        ProcessContext(running, errors)._end_others(_GRACE)
        raise
    started = ProcessContext(processes, errors)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run ``fn(i, *args)`` in `nprocs` processes, i = 0 ... nprocs - 1.

    Tensors among `args` are shared by all of them and the caller. When one process fails, the
    others are ended and its error is raised here.

    Args:
        fn: a function that the processes can import.
        args: the further arguments of `fn`.
        nprocs: the number of processes.
        join: wait for them; else a `ProcessContext` is returned.
        daemon: whether they end with this process.
        start_method: spawn, fork or forkserver.

    Raises:
        ProcessRaisedException: with the traceback of the first process whose function raised.
        ProcessExitedException: a process was killed, or exited with another code than 0.

    Example:
        >>> import plait_core as pc, plait_multiprocessing as mp
        >>> counts = pc.zeros(3).share_memory_()
        >>> mp.spawn(counts.__setitem__, (5.0,), nprocs=3, start_method="fork")
        >>> counts
        tensor([5., 5., 5.])
    """
    return start_processes(fn, args, nprocs, join, daemon, start_method)
