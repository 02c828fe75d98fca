"""The queue of tasks from a pool to its workers, which may be killed at any instruction."""

from __future__ import annotations

import array
import contextlib
import errno
import fcntl
import os
import socket
import struct
import termios
import time
from collections.abc import Iterator
from multiprocessing import reduction
from typing import Any

from plait_multiprocessing import _shared
from plait_multiprocessing._reductions import InMessage, Message, descriptors_of, dumps, loads

STARTING, IDLE, BUSY = range(3)  # states of workers
# job, index of the task in it, number of bytes that follow; a job of -1 is the end
_HEAD = struct.Struct("<qqq")
# an entry of the board for each worker: state, job, index of the task
_ENTRY = struct.Struct("<qqq")
_MOST_INLINE = 64 << 10  # limit of a packet; longer pickles are in a block of shared memory
_MOST_DESCRIPTORS = 250
_UNREAD_BEFORE_LONG = 8 << 10  # limit of unread bytes as the kernel counts them: about ten packets
_VERY_LONG = 1 << 20  # limit for long pickles: one waits at a time


class Task:
    """A task as a worker gets it: its numbers and its pickle, with the shared memory of its
    tensors.
    """

    def __init__(self, job: int, index: int, pickled: bytes, pins: list[_shared.Pin]) -> None:
        self.job, self.index = job, index
        self._pickled, self._pins = pickled, pins

    def load(self) -> Any:
        """Return function, arguments and keywords."""
        call = loads(self._pickled, self._pins)
        if isinstance(call, _Long):
            call = loads(bytes(memoryview(call.block)[: call.size]), self._pins)
        return call


class _Long:
    """A reference to a pickle in a block of shared memory."""

    def __init__(self, storage: Any, size: int) -> None:
        self.block, self.size = storage[0], size


class _LongMessage:
    def __init__(self, block: _shared.Block, size: int) -> None:
        self._arguments = InMessage(block), size

    def __reduce__(self) -> tuple[Any, ...]:
        return _Long, self._arguments


class _Busy(Exception):
    """Raised while another process reads the queue."""


class Tasks:
    """A queue that is not damaged if a reader dies.

    A task is one packet, which is read as a whole or not at all; the lock of the readers is the
    kernel's, which frees it when its holder dies; and a worker writes the task's number to a board
    before it takes the task.
    """

    def __init__(self) -> None:
        self._reader, writer = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._writer: socket.socket | None = writer
        descriptor = os.memfd_create("plait-pool", os.MFD_CLOEXEC)
        self._board = open(descriptor, "r+b", buffering=0)  # noqa: SIM115

    def __reduce__(self) -> tuple[Any, ...]:
        ends = (self._reader.fileno(), self._board.fileno())
        return _rebuild, tuple(reduction.DupFd(end) for end in ends)

    def put(self, task: Any) -> None:
        """Send ``(job, index, function, arguments, keywords)``, or None to end a worker."""
        if task is None:
            # a closed queue has no workers: the thread that sends tasks may have ended the pool
            if self._writer is not None:
                self._send(_HEAD.pack(-1, -1, 0), ())
            return
        job, index, *call = task
        message = dumps(call)
        tickets = message.tickets if isinstance(message, Message) else ()
        if len(message) > _MOST_INLINE:
            self._wait_for_room(len(message))
            block = _shared.create(len(message))
            memoryview(block)[: len(message)] = message
            outer = dumps(_LongMessage(block, len(message)))
            assert isinstance(outer, Message)
            message, tickets = outer, (*tickets, *outer.tickets)
        self._send(_HEAD.pack(job, index, len(message)) + message, tickets)
        for ticket in tickets:
            ticket.settle()

    def _wait_for_room(self, size: int) -> None:
        """Wait until few packets are unread: so that many long tasks do not fill the memory.

        Short ones wait in the kernel, whose buffer for packets is limited.
        """
        most = _UNREAD_BEFORE_LONG if size < _VERY_LONG else 0
        unread = array.array("i", [0])
        while self._writer is not None:
            fcntl.ioctl(self._writer, termios.TIOCOUTQ, unread)
            if unread[0] <= most:
                return
            time.sleep(0.0005)

    def _send(self, packet: bytes, tickets: tuple[_shared.Ticket, ...]) -> None:
        writer = self._writer
        if writer is None:
            raise ValueError("Pool: this pool belongs to the process that made it")
        descriptors = array.array("i", descriptors_of(tickets))
        extra = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)] if descriptors else []
        while True:
            try:
                writer.sendmsg([packet], extra)
                return
            # the kernel limits descriptors in transit: wait until some have arrived
            except OSError as error:
                if error.errno != errno.ETOOMANYREFS:
                    raise
            time.sleep(0.001)

    def get(self, slot: int) -> Task | None:
        """Wait for a task, in a worker; None: there are no more, or the pool has ended."""
        with self._locked():
            head = self._reader.recv(_HEAD.size, socket.MSG_PEEK)
            if len(head) < _HEAD.size:
                return None
            job, index, size = _HEAD.unpack(head)
            if job >= 0:
                self.note(slot, BUSY, job, index)
            return self._receive(size)

    def drop(self) -> bool:
        """Remove a task, in the pool's process; return whether there was one."""
        try:
            self._reader.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
            with self._locked(fcntl.LOCK_NB):
                head = self._reader.recv(_HEAD.size, socket.MSG_PEEK | socket.MSG_DONTWAIT)
                task = self._receive(_HEAD.unpack(head)[2], socket.MSG_DONTWAIT)
        except _Busy:  # a worker is reading it
            time.sleep(0.0005)
            return True
        except (OSError, struct.error):
            return False
        with contextlib.suppress(Exception, SystemExit):  # releases the tickets in it
            if task is not None:
                task.load()
        return True

    def _receive(self, size: int, flags: int = 0) -> Task | None:
        room = socket.CMSG_SPACE(4 * _MOST_DESCRIPTORS)
        flags |= socket.MSG_CMSG_CLOEXEC
        packet, extra, _, _ = self._reader.recvmsg(_HEAD.size + size, room, flags)
        descriptors = array.array("i")
        for _, _, content in extra:
            descriptors.frombytes(content[: len(content) // 4 * 4])
        pins = []
        try:
            while descriptors:
                pins.append(_shared.adopt(descriptors.pop(0)))
        except BaseException:
            for descriptor in descriptors:
                os.close(descriptor)
            raise
        job, index, _ = _HEAD.unpack_from(packet)
        return None if job < 0 else Task(job, index, packet[_HEAD.size :], pins)

    @contextlib.contextmanager
    def _locked(self, flags: int = 0) -> Iterator[None]:
        try:
            fcntl.lockf(self._board, fcntl.LOCK_EX | flags)
        except (BlockingIOError, PermissionError) as error:
            raise _Busy from error
        try:
            yield
        finally:
            fcntl.lockf(self._board, fcntl.LOCK_UN)

    def note(self, slot: int, state: int, job: int = -1, index: int = -1) -> None:
        """Write a worker's state to the board."""
        os.pwrite(self._board.fileno(), _ENTRY.pack(state, job, index), slot * _ENTRY.size)

    def read_state(self, slot: int) -> tuple[int, int, int]:
        """Return a worker's state, the job and the index of the task in it."""
        entry = os.pread(self._board.fileno(), _ENTRY.size, slot * _ENTRY.size)
        state, job, index = _ENTRY.unpack(entry)
        return state, job, index

    def close(self) -> None:
        """Close the queue, in the pool's process."""
        self.close_writer()
        self._reader.close()
        self._board.close()

    def close_writer(self) -> None:
        """Close the writing end in a forked child, as workers detect the pool's end by it."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _rebuild(reader: Any, board: Any) -> Tasks:
    tasks: Tasks = Tasks.__new__(Tasks)
    tasks._reader, tasks._writer = socket.socket(fileno=reader.detach()), None
    tasks._board = open(board.detach(), "r+b", buffering=0)  # noqa: SIM115
    return tasks
