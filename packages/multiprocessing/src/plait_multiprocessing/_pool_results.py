"""Results of a pool's workers, and the errors of tasks without a result."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import select
import signal
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from multiprocessing import pool as standard
from typing import Any

from plait_multiprocessing._connections import Connection
from plait_multiprocessing._pool_tasks import BUSY, STARTING, Tasks
from plait_multiprocessing._pool_worker import HEAD, NO_JOB
from plait_multiprocessing._process_errors import (
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
)
from plait_multiprocessing._reductions import loads

_MOST_FAILED_STARTS = 10
_EXIT_SECONDS = 5.0  # seconds that another thread has to take the exit status of a process
_all: weakref.WeakSet[Results] = weakref.WeakSet()
_pool: Any = standard


class Worker:
    """A process of a pool, with the pool's descriptors for it."""

    def __init__(self, number: int, slot: int, receiver: Connection) -> None:
        self.number, self.slot, self.receiver = number, slot, receiver
        self.process: Any = None
        self._watch: io.FileIO | None = None

    def watch_process(self, process: Any) -> None:
        """Open the descriptor `watch`, which becomes readable when the process ends."""
        self.process = process
        with contextlib.suppress(ProcessLookupError):  # the fork server has a descriptor for it
            self._watch = io.FileIO(os.pidfd_open(process.pid))

    @property
    def watch(self) -> int:
        """A descriptor that is readable when the process has ended, or -1."""
        return -1 if self._watch is None else self._watch.fileno()

    def close(self) -> None:
        """Close the pipe of results and the descriptor of the process."""
        self.receiver.close()
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()


class Wakeup:
    """A descriptor to wake a thread that waits for descriptors.

    The standard pool uses a queue for this, for whose pipe there may be no memory.
    """

    def __init__(self) -> None:
        self._file = io.FileIO(os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK), "r+")

    def fileno(self) -> int:
        """The descriptor, which is readable after `put`."""
        return self._file.fileno()

    def put(self, nothing: None = None) -> None:
        """Wake the thread, unless this is closed."""
        if not self._file.closed:
            os.eventfd_write(self._file.fileno(), 1)

    def empty(self) -> bool:
        """Reset it."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._file.fileno())
        return True

    def close(self) -> None:
        """Close the descriptor."""
        self._file.close()


class Results:
    """The replacement of the standard pool's queue of results, which a killed worker can damage.

    Each worker has a pipe of its own. `get` waits for all of them and for the deaths of workers.

    It has no destructor in Python: a signal may be handled in one, and exceptions of handlers are
    lost there. Files and sockets are closed by their own destructors.

    Attributes:
        broken: a function that makes the error for every further task; None while the pool works.
        changes: wakes the thread that replaces workers.
        is_replacing: whether the thread that replaces workers is alive.
    """

    def __init__(self, tasks: Tasks) -> None:
        self.broken: Callable[[], Exception] | None = None
        self.is_replacing: Callable[[], bool] = lambda: True
        self._tasks = tasks
        self._ready: deque[tuple[int, int, Any]] = deque()
        self._ends: deque[None] = deque()
        self._new: deque[Worker] = deque()
        self._workers: set[Worker] = set()
        self._by_descriptor: dict[int, Worker] = {}
        self._free_slots: list[int] = []
        self._made = 0
        self._failed_starts = 0
        self._waiting: set[tuple[int, int]] = set()  # tasks without an answer
        self._lock = threading.Lock()  # guards the two members above and `broken`
        self.changes, self._wake = Wakeup(), Wakeup()
        self._poll = select.poll()
        self._poll.register(self._wake.fileno(), select.POLLIN)
        _all.add(self)

    def put(self, end: None) -> None:
        """Make `get` return None."""
        self._ends.append(end)
        self._wake.put()

    def send(self, task: Any) -> None:
        """Send a task, or None: one worker shall end.

        Raises:
            ProcessException: the workers cannot be started.
        """
        if task is None:
            self._tasks.put(None)
            return
        key = task[0], task[1]
        with self._lock:
            if self.broken is not None:
                raise self.broken()
            self._waiting.add(key)
        try:
            self._tasks.put(task)
        except BaseException:
            with self._lock:
                self._waiting.discard(key)
            raise

    def expect(self, receiver: Connection) -> Worker:
        """Register a worker before its start."""
        slot = self._free_slots.pop() if self._free_slots else self._made
        worker = Worker(self._made, slot, receiver)
        self._made += 1
        self._tasks.note(slot, STARTING)
        self._workers.add(worker)
        return worker

    def started(self, worker: Worker, process: Any) -> None:
        """Watch a worker whose process has been started."""
        worker.watch_process(process)
        self._new.append(worker)
        self._wake.put()

    def not_started(self, worker: Worker, error: BaseException) -> None:
        """Fail all tasks after a worker could not be started, as the standard pool does not try
        again.
        """
        self._workers.discard(worker)
        worker.close()
        text = f"Pool: a worker could not be started: {type(error).__name__}: {error}"
        self._break(lambda: ProcessException(text, worker.number, -1))
        self._wake.put()

    def get(self) -> tuple[int, int, Any] | None:
        """Wait for ``(job, index, (whether it went well, value))``; None: look at the state."""
        wake = self._wake.fileno()
        while True:
            if self._ready:
                return self._ready.popleft()
            if self._ends:
                return self._ends.popleft()
            try:
                for descriptor, _ in self._poll.poll():
                    self._handle(descriptor, wake)
            except Exception as error:  # without that thread tasks would wait for ever
                text = f"Pool: results cannot be received: {type(error).__name__}: {error}"
                self._break(functools.partial(ProcessException, text, -1, -1))
                time.sleep(0.001)

    def _handle(self, descriptor: int, wake: int) -> None:
        if descriptor == wake:
            self._wake.empty()
            while self._new:
                self._register(self._new.popleft())
        elif (worker := self._by_descriptor.get(descriptor)) is not None:
            try:
                if descriptor == worker.watch:
                    self._gone(worker)
                elif not self._take(worker):  # the other end is closed; the worker's death follows
                    self._unregister(descriptor)
            except BaseException:  # later messages in the pipe cannot be separated
                self._unregister(descriptor)
                raise

    def _register(self, worker: Worker) -> None:
        if worker.watch < 0:
            self._gone(worker)
            return
        for descriptor in (worker.receiver.fileno(), worker.watch):
            self._by_descriptor[descriptor] = worker
            self._poll.register(descriptor, select.POLLIN)

    def _unregister(self, descriptor: int) -> None:
        if self._by_descriptor.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)

    def _take(self, worker: Worker) -> bool:
        """Read one answer; return whether there was one."""
        try:
            data = worker.receiver.recv_bytes()
        except EOFError:
            return False
        except OSError as error:
            if error.errno is None:  # the pipe ended within a message: the worker was killed
                return False
            raise
        job, index, good, size = HEAD.unpack_from(data)
        text = data[HEAD.size : HEAD.size + size].decode(errors="replace")
        if job == NO_JOB:
            self._cannot_start(worker, text)
            return True
        try:
            value = loads(data[HEAD.size + size :], getattr(data, "pins", ()))
        except BaseException as error:  # SystemExit too would end the thread and lose all tasks
            value = False, _unreadable(worker, bool(good), text, error)
        self._failed_starts = 0
        self._answer((job, index), value)
        return True

    def _answer(self, key: tuple[int, int], value: Any) -> None:
        with self._lock:
            if key not in self._waiting:
                return  # answered before
            self._waiting.discard(key)
        self._ready.append((*key, value))

    def _gone(self, worker: Worker) -> None:
        """Handle the end of a worker."""
        while worker.receiver.poll() and self._take(worker):
            pass
        state, job, index = self._tasks.read_state(worker.slot)
        if state == BUSY and (job, index) in self._waiting:
            self._answer((job, index), (False, self._exited(worker, "in a task")))
        elif state == STARTING and self.broken is None:
            error = self._exited(worker, "before its first task")
            self._failed_starts += 1
            if error.exit_code > 0 or self._failed_starts > _MOST_FAILED_STARTS:
                self._cannot_start(worker, str(error))
        if not (self._ends or self.is_replacing()):
            text = "Pool: a worker has ended, and the thread that would replace it has failed"
            self._break(lambda: ProcessException(text, worker.number, worker.process.pid))
        for descriptor in (worker.receiver.fileno(), worker.watch):
            self._unregister(descriptor)
        self._workers.discard(worker)
        self._free_slots.append(worker.slot)
        worker.close()

    def _exited(self, worker: Worker, when: str) -> ProcessExitedException:
        popen, end = worker.process._popen, time.monotonic() + _EXIT_SECONDS
        self.changes.put()
        # the thread that replaces workers takes the exit status, but not at the end of the pool
        while popen.returncode is None and not self._ends and time.monotonic() < end:
            if not self.is_replacing():
                popen.poll()
            time.sleep(0.001)
        code, pid, name = popen.returncode, worker.process.pid, None
        how = "ended" if code is None else f"ended with exit code {code}"
        if code is not None and code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"SIG{-code}"
            how = f"was ended by the signal {name}"
        text = f"Pool: worker {worker.number} (pid {pid}) {how} {when}"
        return ProcessExitedException(text, worker.number, pid, code or 0, name)

    def _cannot_start(self, worker: Worker, text: str) -> None:
        pid = worker.process.pid if worker.process is not None else -1
        text = (
            "Pool: the workers cannot start: the initializer, or the import of the main module, "
            f"fails. Worker {worker.number} (pid {pid}):\n{text}"
        )
        self._break(lambda: ProcessRaisedException(text, worker.number, pid))

    def _break(self, error: Callable[[], Exception]) -> None:
        """Fail all tasks."""
        with self._lock:
            self.broken = self.broken or error
            lost, self._waiting = self._waiting, set()
        for job, index in sorted(lost):
            self._ready.append((job, index, (False, error())))

    def close(self) -> None:
        """Close all descriptors after the thread that calls `get` has ended."""
        self._close_own()
        self._tasks.close()

    def _close_own(self) -> None:
        while self._workers:
            self._workers.pop().close()
        self._wake.close()
        self.changes.close()

    def abandon(self) -> None:
        """Close the parent's descriptors in a forked child; a worker keeps its queue of tasks."""
        self._close_own()
        self._tasks.close_writer()


def _unreadable(worker: Worker, good: bool, text: str, error: BaseException) -> Exception:
    """Return the error for an answer that cannot be unpickled."""
    reason = f"{type(error).__name__}: {error}"
    if good:
        substitute: Exception = _pool.MaybeEncodingError(error, text)
        substitute.__cause__ = error
        return substitute
    raised = ProcessRaisedException(
        f"Pool: the exception of a task cannot be unpickled here ({reason}). It was:\n\n{text}",
        worker.number,
        worker.process.pid,
    )
    raised.__cause__ = error
    return raised


def _abandon_all() -> None:
    for results in list(_all):
        results.abandon()


os.register_at_fork(after_in_child=_abandon_all)
