"""The loop of a worker process: it reads tasks from its socket, makes and sends batches."""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from plait_data import collate
from plait_data._arrays import allocate_with
from plait_data._fetch import END, stopped_iteration
from plait_data._randomness import library_draws
from plait_data._sample_seeds import Cursor, enter, leave
from plait_data._worker_info import WorkerInfo, set_worker_info
from plait_data._workers import _arena, _codec, _task
from plait_data._workers._arena import Arena
from plait_data._workers._channel import receive_descriptors, receive_message, send_message
from plait_data._workers._errors import capture
from plait_data._workers._import_seeds import LateSeeds
from plait_data._workers._job import load
from plait_data._workers._maker import Maker
from plait_data._workers._task import (
    COLLATING,
    IDLE,
    INITIALISING,
    LOADING,
    SENDING,
    WORKING,
    Job,
    where,
)
from plait_data._workers._worker_process import (
    LazyConverter,
    dump_signal,
    end_with_parent,
    use_one_thread,
)


@dataclass(frozen=True)
class Hello:
    """The first message to a worker; the descriptors of arena, life line (a pipe that ends with the
    parent) and segment come before it.

    Attributes:
        worker: its number.
        workers: how many there are.
        seed: of the first epoch.
        table: the offset and the number of entries of the segment's table; None if the job is
            inherited.
        path: the program's ``sys.path``.
        argv: the program's ``sys.argv``.
        devices: a pickled function that loads the program's accelerators; empty for none.
    """

    worker: int
    workers: int
    seed: int
    table: tuple[int, int] | None
    path: list[str]
    argv: list[str]
    devices: bytes


def main(descriptor: int) -> None:
    """The entry point of a process that inherited a socket's descriptor."""
    start(socket.socket(fileno=descriptor), None)


def start(connection: socket.socket, job: Job | None) -> None:
    """Run a worker until its parent closes the connection; it does not return."""
    connection.setblocking(True)
    status = 1
    try:
        worker = Worker(connection, job)
        worker.run()
        status = 0
    except _Stopped:
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        # As multiprocessing ends its children: no atexit functions of the program's modules.
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()
        os._exit(status)


class _Stopped(BaseException):
    """Raised when the parent needs no more batches."""


class Worker:
    """The loop of one worker process."""

    def __init__(self, connection: socket.socket, job: Job | None) -> None:
        self._connection = connection
        # Ctrl-C goes to the whole group of processes: the parent acts on it. Not SIG_IGN, which
        # programs started from here would inherit.
        signal.signal(signal.SIGINT, lambda *_: None)
        descriptors = receive_descriptors(connection)
        if not descriptors:  # the program was interrupted before it sent them
            raise _Stopped
        arena, lifeline = descriptors
        self._lifeline = end_with_parent(lifeline)
        segment = [] if job is not None else receive_descriptors(connection)
        content = receive_message(connection)
        if content is None:
            raise _Stopped
        self._hello: Hello = pickle.loads(content)
        self._arena = Arena(arena, self._hello.worker)
        self._control = self._arena.control
        faulthandler.enable(self._arena.dump_file())
        faulthandler.register(dump_signal(), self._arena.dump_file(), all_threads=True)
        self._job = job
        self._segment = segment[0] if segment else -1
        self._epoch = -1
        self._maker: Maker | None = None
        self._seed_globals: Callable[[int, Any], None] | None = None

    def run(self) -> None:
        """Load the job, then serve tasks until the end."""
        self._guarded(self._prepare, -1, partial(self._where, None))
        while (content := receive_message(self._connection)) is not None:
            kind, *task = pickle.loads(content)
            if kind == "epoch":
                self._begin(*task)
            else:
                self._serve(*task)

    def _guarded(self, action: Any, number: int, where: Callable[[], str]) -> Any:
        """Run an action; send its exception to the parent and return NotImplemented."""
        try:
            return action()
        except (_Stopped, SystemExit):
            raise
        except BaseException as error:
            if isinstance(error, StopIteration):
                error = stopped_iteration(error)
            self._send(_task.ERROR, number, capture(error, where()))
            return NotImplemented

    def _where(self, indices: Any) -> str:
        position = self._control[_arena.POSITION]
        return where(self._control[_arena.PHASE], self._control[_arena.BATCH], position, indices)

    def _prepare(self) -> None:
        hello, control = self._hello, self._control
        control[_arena.PHASE] = LOADING
        if self._job is None:
            sys.path[:] = hello.path
            sys.argv[:] = hello.argv
            if hello.devices:  # the job may have tensors that lie there
                pickle.loads(hello.devices)()
            assert hello.table is not None
            self._job = load(self._segment, *hello.table)
        if self._segment >= 0:
            os.close(self._segment)
            self._segment = -1
        job = self._job
        info = WorkerInfo(hello.worker, hello.workers, hello.seed + hello.worker, job.dataset)
        set_worker_info(info)
        use_one_thread()
        allocate_with(partial(self._arena.array, least=_codec.LEAST_SHARED))
        if job.collate_fn is not None and job.converter is not None:
            lazy = isinstance(job.converter, bytes)
            collate.set_batch_converter(LazyConverter(job.converter) if lazy else job.converter)
        library = library_draws()
        if library is None:
            seeds = LateSeeds()
            seeds.reseed(hello.seed, -1 - hello.worker)  # no sample
            self._seed_globals = seeds.reseed if job.globals_too else None
        else:
            library.seed_worker(hello.seed, hello.worker)
        if job.worker_init_fn is not None:
            control[_arena.PHASE] = INITIALISING
            before = enter(Cursor(hello.seed, (hello.worker,)))
            try:
                job.worker_init_fn(hello.worker)
            finally:
                leave(before)
        control[_arena.PHASE] = IDLE
        self._send(_task.READY, -1, None)

    def _begin(self, epoch: int, seed: int, skip: int, convert: bool) -> None:
        job, hello = self._job, self._hello
        if job is None:
            return  # the job could not be loaded; the parent has the error
        self._epoch = epoch
        number, count = hello.worker, hello.workers
        set_worker_info(WorkerInfo(number, count, seed + number, job.dataset))
        self._maker = Maker(
            job,
            number,
            seed,
            skip,
            convert=_codec.mark if convert else None,
            note=self._note,
            seed_globals=self._seed_globals,
            enter_phase=partial(self._control.__setitem__, _arena.PHASE),
        )

    def _note(self, position: int) -> None:
        """Store the worker's position in the arena, for the parent's errors."""
        control = self._control
        control[_arena.POSITION] = position
        if position < 0:
            control[_arena.PHASE] = COLLATING
        if control[_arena.STOP]:
            raise _Stopped

    def _serve(self, epoch: int, number: int, indices: Any) -> None:
        control, job = self._control, self._job
        control[_arena.BATCH] = number
        control[_arena.EPOCH] = epoch
        control[_arena.POSITION] = -1
        if control[_arena.STOP]:
            raise _Stopped
        if epoch != self._epoch or epoch != control[_arena.WANTED] or job is None:
            return
        control[_arena.PHASE] = WORKING
        self._guarded(partial(self._make, number, indices), number, partial(self._where, indices))
        control[_arena.PHASE] = IDLE

    def _make(self, number: int, indices: Any) -> None:
        assert self._maker is not None
        batch = self._maker.batch(indices)
        if batch is END:
            self._send(_task.END, number, None)
        else:
            self._send(_task.BATCH, number, batch)

    def _send(self, kind: int, number: int, value: Any) -> None:
        self._control[_arena.PHASE] = SENDING
        message = _codec.encode(self._arena, kind, self._epoch, number, value)
        try:
            send_message(self._connection, message)
        except ConnectionError:
            raise _Stopped from None
