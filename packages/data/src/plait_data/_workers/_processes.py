"""The program's side of worker processes: start, tasks, messages, deaths, end."""

from __future__ import annotations

import io
import os
import pickle
import select
import signal
import socket
import sys
import time
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

from plait_data._workers import _arena, _codec, _slot_holders, _task
from plait_data._workers._arena import Window
from plait_data._workers._channel import Channel
from plait_data._workers._child import Hello
from plait_data._workers._errors import died, process_state, require_descriptors, restore, timed_out
from plait_data._workers._held import held
from plait_data._workers._job import Segment
from plait_data._workers._member import Member
from plait_data._workers._start import Start, kill
from plait_data._workers._task import Job
from plait_data._workers._worker_process import device_setup, dump_signal

_GRACE = 0.5  # seconds that a worker has to finish a sample before it is killed
_DUMP_SECONDS = 1.0
_pools: weakref.WeakSet[ProcessPool] = weakref.WeakSet()


class ProcessPool:
    """The workers of a loader.

    Args:
        start: how to start one.
        workers: how many.
        job: what they do.
        seed: of the first epoch.
    """

    def __init__(self, start: Start, workers: int, job: Job, seed: int) -> None:
        self.current = -1  # the epoch
        self._members: list[Member] = []
        self._ready: deque[tuple[int, _codec.Message]] = deque()
        self._poll = select.poll()
        self._by_descriptor: dict[int, Member] = {}
        self._process = os.getpid()
        # a function that makes the error, as a stored error would keep its traceback alive
        self._broken: Callable[[], Any] | None = None
        self._lifeline = -1
        # this program's end of a connection while its worker is started: a forked worker must
        # not keep it, or it would never see the end of the connection
        self._opening: socket.socket | None = None
        self._mapping: Any = None  # of the segment: keeps its pages shared
        _pools.add(self)
        try:
            self._begin(start, workers, job, seed)
        except BaseException:
            self.close(0)
            raise

    @property
    def size(self) -> int:
        """The number of workers."""
        return len(self._members)

    @property
    def is_closed(self) -> bool:
        """Whether the program has ended the workers, and no error has."""
        return not self._members and self._broken is None

    @property
    def pids(self) -> list[int]:
        """The processes."""
        return [member.process.pid for member in self._members]

    def _begin(self, start: Start, workers: int, job: Job, seed: int) -> None:
        require_descriptors(workers)
        segment = None
        with held():
            reader, self._lifeline = os.pipe()
            lifeline = io.FileIO(reader)
            for number in range(workers):
                self._start(start, number, job, reader)
        with lifeline:
            # the workers start while this process pickles
            table = None
            if not start.inherits:
                segment = Segment(job)
                self._mapping = segment.mapping
                table = (segment.table_at, segment.entries)
            try:
                for member in self._members:
                    if segment is not None:
                        member.channel.send_descriptors([segment.file.fileno()])
                    devices = b"" if table is None else device_setup()
                    place = member.number, workers, seed, table
                    hello = Hello(*place, sys.path, sys.argv, devices)
                    self._send(member, hello)
            finally:
                if segment is not None:
                    segment.file.close()

    def _start(self, start: Start, number: int, job: Job, lifeline: int) -> None:
        arena, mapping = _arena.create()
        try:
            ours, theirs = socket.socketpair()
        except BaseException:
            os.close(arena)
            raise
        process = None
        try:
            self._opening = ours
            process = start(theirs, job)
            member = Member(number, process, Channel(ours), Window(mapping))
            self._members.append(member)
            member.channel.send_descriptors([arena, lifeline])
        except BaseException:
            ours.close()
            if process is not None:
                kill(process.pid)
                process.reap(5.0)
            raise
        finally:
            self._opening = None
            os.close(arena)
            theirs.close()
        for descriptor in (ours.fileno(), member.watch):
            self._poll.register(descriptor, select.POLLIN)
            self._by_descriptor[descriptor] = member

    def begin(self, epoch: int, seed: int, skips: list[int], convert: bool) -> None:
        """Start an epoch and drop everything of the one before.

        Args:
            epoch: its number.
            seed: of its samples.
            skips: the number of batches that each worker skips.
            convert: whether the arrays of batches go to a converter.
        """
        self.current = epoch
        for member, skip in zip(self._members, skips, strict=True):
            member.window.control[_arena.WANTED] = epoch
            member.tasks.clear()
            self._send(member, ("epoch", epoch, seed, skip, convert))

    def submit(self, worker: int, epoch: int, number: int, indices: Any) -> None:
        """Send a task."""
        if self._broken is not None:
            raise self._broken()
        member = self._members[worker]
        member.tasks.append((epoch, number, indices))
        self._send(member, ("task", epoch, number, indices))

    def _send(self, member: Member, content: Any) -> None:
        message = pickle.dumps(content)
        try:
            member.channel.send(message)
        except OSError as error:
            raise self._unreachable(member, error) from error

    def receive(self, epoch: int, timeout: float, owing: int) -> tuple[int, _codec.Message]:
        """The next message of this epoch: (worker, message).

        Args:
            epoch: older ones' messages are dropped.
            timeout: seconds to wait, 0 for as long as it takes.
            owing: the worker of the awaited batch, for the error.

        Raises:
            WorkerError: a worker died.
            WorkerTimeout: there was no message in time.
        """
        while True:
            while self._ready:
                worker, message = self._ready.popleft()
                if message.kind == _task.READY:
                    continue
                if message.epoch == epoch or message.number < 0:
                    return worker, message
                message.discard()
            if self._broken is not None:
                raise self._broken()
            self._wait(timeout, owing)

    def _wait(self, timeout: float, owing: int) -> None:
        flags = select.POLLIN
        for member in self._members:
            mask = flags | select.POLLOUT if member.channel.waiting else flags
            self._poll.modify(member.channel.fileno(), mask)
        start = time.monotonic()
        events = self._poll.poll(timeout * 1000 if timeout else None)
        if not events:
            stopped_itself = time.monotonic() - start > timeout + 1
            if not stopped_itself and not self._members[owing].starting():
                raise self._no_answer(timeout, owing)
            return
        dead = None
        for descriptor, event in events:
            member = self._by_descriptor[descriptor]
            try:
                if event & select.POLLOUT:
                    member.channel.flush()
                self._take(member)
            except OSError as error:
                raise self._unreachable(member, error) from error
            if member.channel.ended or descriptor == member.watch:
                dead = dead or member
        if dead is not None:
            raise self._death(dead)

    def _take(self, member: Member) -> None:
        for content in member.channel.messages():
            message = _codec.Message(content, member.window)
            if member.tasks and member.tasks[0][:2] == (message.epoch, message.number):
                member.tasks.popleft()
            member.ready = True
            self._ready.append((member.number, message))

    def value(self, worker: int, message: _codec.Message, convert: Any) -> Any:
        """The batch in a message; raises what the worker raised."""
        value = _codec.decode(message, convert)
        if message.kind == _task.ERROR:
            raise restore(value, worker, self._members[worker].process.pid)
        return value

    def _death(self, member: Member) -> Any:
        try:
            member.reap(1.0)
        except ValueError:
            member.reaped = True
        phase, index = member.where()
        stack = member.window.dump()
        pid = member.process.pid
        self._broken = partial(died, member.number, pid, member.status, phase, index, stack)
        self.close(0)
        return self._broken()

    def _unreachable(self, member: Member, error: OSError) -> Any:
        """Close the connection to a worker after a lost message, as later messages depend on it."""
        text = (
            f"DataLoader: messages to and from worker {member.number} (pid {member.process.pid}) "
            f"fail: {error.strerror}"
        )
        self._broken = partial(OSError, error.errno, text)
        self.close(0)
        return self._broken()

    def _no_answer(self, timeout: float, owing: int) -> Any:
        member = self._members[owing]
        pid = member.process.pid
        phase, index = member.where()
        stopped = process_state(pid) in ("T", "t")
        kill(pid, dump_signal())
        if stopped:  # a stopped process does not react to signals
            kill(pid, signal.SIGCONT)
        stack = self._dump_of(member)
        number = member.number
        self._broken = partial(timed_out, number, pid, timeout, phase, index, stopped, stack)
        self.close(0)
        return self._broken()

    def _dump_of(self, member: Member) -> str:
        """The stack dump, once it has stopped growing."""
        text, end = "", time.monotonic() + _DUMP_SECONDS
        while time.monotonic() < end:
            time.sleep(0.02)
            before, text = text, member.window.dump()
            if text and text == before:
                break
        return text

    def close(self, grace: float = _GRACE) -> None:
        """End the workers; kill those that do not finish their sample in ``grace`` seconds."""
        if os.getpid() != self._process:
            return
        with held():
            self._end_all(grace)  # which also frees the members within the block

    def _end_all(self, grace: float) -> None:
        members, self._members = self._members, []
        with ExitStack() as closing:  # an error for one worker must not leave others running
            closing.callback(self._forget_descriptors)
            end = time.monotonic() + grace
            for member in members:
                closing.callback(member.end, end)
            for member in members:
                member.window.control[_arena.STOP] = 1
                member.channel.close()

    def _forget_descriptors(self) -> None:
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1
        self._by_descriptor.clear()
        self._mapping = None
        for _, message in self._ready:
            message.discard()
        self._ready.clear()
        _slot_holders.collect()

    def _abandon(self) -> None:
        """Called in a forked child, as the workers belong to the parent."""
        if self._opening is not None:
            self._opening.close()
        for member in self._members:
            member.channel.close()
            os.close(member.watch)
            member.process.forget()
        self._members = []
        self._ready.clear()
        self._forget_descriptors()
        self._broken = partial(
            RuntimeError,
            "DataLoader: this iterator belongs to the process that made it; a forked child must "
            "make its own",
        )


def _abandon_all() -> None:
    for pool in list(_pools):
        pool._abandon()


os.register_at_fork(after_in_child=_abandon_all)
