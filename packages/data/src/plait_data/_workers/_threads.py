"""Worker threads: no processes, no copies, one memory; for code that releases the GIL."""

from __future__ import annotations

import queue
import sys
import threading
import traceback
from functools import partial
from typing import Any

from plait_data._fetch import END, stopped_iteration
from plait_data._sample_seeds import Cursor, enter, leave
from plait_data._worker_info import WorkerInfo, WorkerTimeout, set_worker_info
from plait_data._workers import _task
from plait_data._workers._held import held
from plait_data._workers._maker import Maker
from plait_data._workers._task import WORKING, Job, where


class _Result:
    """A thread's result, with a message's kind, epoch and number."""

    def __init__(self, kind: int, epoch: int, number: int, value: Any) -> None:
        self.kind = kind
        self.epoch = epoch
        self.number = number
        self.value = value

    def discard(self) -> None:
        """Do nothing, as a result has no slots."""


class _Stopped(BaseException):
    """Raised when the loader needs no more batches."""


class ThreadPool:
    """Threads with the interface of `ProcessPool`."""

    def __init__(self, workers: int, job: Job, seed: int, convert: Any) -> None:
        self.current = -1
        self._job = job
        self._results: queue.SimpleQueue[tuple[int, _Result]] = queue.SimpleQueue()
        self._threads = [
            _Thread(number, workers, job, seed, convert, self._results) for number in range(workers)
        ]
        try:
            with held():
                for thread in self._threads:
                    thread.start()
        except BaseException:
            self.close(0)
            raise

    @property
    def size(self) -> int:
        """The number of workers."""
        return len(self._threads)

    @property
    def is_closed(self) -> bool:
        """Whether the program has ended the workers."""
        return not self._threads

    def begin(self, epoch: int, seed: int, skips: list[int], convert: bool) -> None:
        """Start an epoch."""
        self.current = epoch
        for thread, skip in zip(self._threads, skips, strict=True):
            thread.epoch = epoch
            thread.work.put(("epoch", epoch, seed, skip))

    def submit(self, worker: int, epoch: int, number: int, indices: Any) -> None:
        """Give a thread a task."""
        self._threads[worker].work.put(("task", epoch, number, indices))

    def receive(self, epoch: int, timeout: float, owing: int) -> tuple[int, _Result]:
        """The next result of this epoch."""
        while True:
            try:
                worker, result = self._results.get(timeout=timeout or None)
            except queue.Empty:
                raise self._no_answer(timeout, owing) from None
            if result.epoch == epoch or result.number < 0:
                return worker, result

    def value(self, worker: int, result: _Result, convert: Any) -> Any:
        """The batch of a result; raises what the thread raised."""
        if result.kind == _task.ERROR:
            raise result.value
        return result.value

    def _no_answer(self, timeout: float, owing: int) -> WorkerTimeout:
        thread = self._threads[owing]
        frame = sys._current_frames().get(thread.ident or 0)
        stack = "".join(traceback.format_stack(frame)) if frame else "it ended"
        self.close(0)
        return WorkerTimeout(
            f"DataLoader: no batch came within timeout={timeout:g} s; worker thread {owing} is at"
            f"\n\n{stack}"
        )

    def close(self, grace: float = 0.5) -> None:
        """End the threads; one in the middle of a sample ends after it."""
        with held():
            threads, self._threads = self._threads, []
            for thread in threads:
                thread.stop = True
                thread.work.put(None)
        for thread in threads:
            if thread.is_alive() and thread is not threading.current_thread():
                thread.join(grace)


class _Thread(threading.Thread):
    def __init__(
        self, number: int, workers: int, job: Job, seed: int, convert: Any, results: Any
    ) -> None:
        super().__init__(name=f"plait-data-{number}", daemon=True)
        self.work: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.stop = False
        self.epoch = -1  # the current epoch of the loader
        self._number, self._workers = number, workers
        self._job, self._seed, self._convert = job, seed, convert
        self._results = results
        self._maker: Maker | None = None
        self._position = -1

    def run(self) -> None:
        try:
            if not self._guarded(self._initialise, -1, -1, None):
                return
            while (task := self.work.get()) is not None:
                kind, epoch, *rest = task
                if self.stop or epoch != self.epoch:
                    continue
                if kind == "epoch":
                    self._begin(*rest)
                else:
                    number, indices = rest
                    self._guarded(
                        partial(self._make, epoch, number, indices), epoch, number, indices
                    )
        except _Stopped:
            pass

    def _guarded(self, action: Any, epoch: int, number: int, indices: Any) -> bool:
        try:
            action()
            return True
        except _Stopped:
            raise
        except BaseException as error:
            if isinstance(error, StopIteration):
                error = stopped_iteration(error)
            if hasattr(error, "add_note"):
                phase = where(WORKING, number, self._position, indices)
                error.add_note(f"raised in worker thread {self._number} of the DataLoader, {phase}")
            self._put(_task.ERROR, epoch, number, error)
            return False

    def _initialise(self) -> None:
        job = self._job
        seed = self._seed + self._number
        set_worker_info(WorkerInfo(self._number, self._workers, seed, job.dataset))
        if job.worker_init_fn is not None:
            before = enter(Cursor(self._seed, (self._number,)))
            try:
                job.worker_init_fn(self._number)
            finally:
                leave(before)

    def _begin(self, seed: int, skip: int) -> None:
        job, number = self._job, self._number
        set_worker_info(WorkerInfo(number, self._workers, seed + number, job.dataset))
        self._maker = Maker(job, number, seed, skip, convert=self._convert, note=self._note)

    def _make(self, epoch: int, number: int, indices: Any) -> None:
        assert self._maker is not None
        batch = self._maker.batch(indices)
        self._put(_task.END if batch is END else _task.BATCH, epoch, number, batch)

    def _note(self, position: int) -> None:
        self._position = position
        if self.stop:
            raise _Stopped

    def _put(self, kind: int, epoch: int, number: int, value: Any) -> None:
        self._results.put((self._number, _Result(kind, epoch, number, value)))
