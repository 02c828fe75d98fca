"""The allocator under test: blocks, and what is written to them."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from plait_conformance._device import HOST_MEMORY, Device, Stream
from plait_conformance._tables import OK, AllocatorTable, Statistics, table_in_force

CHILD_SECONDS = 30.0


class Pool:
    """The allocator in force of a type of device; ``device`` is None for the CPU's."""

    def __init__(self, device: Device | None) -> None:
        self.device = device
        self.handle = device.handle if device else HOST_MEMORY
        table = table_in_force(AllocatorTable, "allocator", self.handle.device_type)
        assert table is not None, f"the role `allocator` is not filled for {device or 'cpu'}"
        self.table = table

    def __str__(self) -> str:
        return f"{self.table.name.decode()}-{self.device or 'cpu'}"

    def ask(self, nbytes: int, stream: Stream | None = None) -> tuple[int, Block]:
        """Return the status, and a block that is there if it is 0."""
        data, block = ctypes.c_void_p(), ctypes.c_void_p()
        status = self.table.alloc(
            *(self.table.ctx, self.handle, nbytes, stream.pointer if stream else None),
            *(ctypes.byref(data), ctypes.byref(block)),
        )
        return status, Block(self, nbytes, data.value or 0, block)

    def take(self, nbytes: int, stream: Stream | None = None) -> Block:
        """Return a block that must be there."""
        status, block = self.ask(nbytes, stream)
        assert status == OK, f"{self}: {nbytes} bytes: alloc gave status {status}"
        return block

    def statistics(self) -> Statistics | None:
        """Return what the allocator counts, if it does."""
        if not self.table.stats:
            return None
        result = Statistics(ctypes.sizeof(Statistics))
        self.table.stats(self.table.ctx, self.handle, ctypes.byref(result))
        return result

    def reset_peak(self) -> None:
        """Set the peak to the bytes in use."""
        self.table.reset_peak(self.table.ctx, self.handle)

    def trim(self) -> None:
        """Free cached memory."""
        if self.table.trim:
            self.table.trim(self.table.ctx)


class Block:
    """A block of an allocator's memory."""

    def __init__(self, pool: Pool, nbytes: int, address: int, context: Any) -> None:
        self.pool, self.nbytes, self.address, self.context = pool, nbytes, address, context

    def write(self, data: bytes, stream: Stream | None = None) -> None:
        """Write bytes to the block, through the copy function of its device."""
        assert len(data) == self.nbytes
        if self.pool.device is None:
            ctypes.memmove(self.address, data, self.nbytes)
        else:
            source = ctypes.create_string_buffer(data, self.nbytes)
            self.pool.device.copy_bytes(self.address, ctypes.addressof(source), self.nbytes, stream)

    def read(self, stream: Stream | None = None) -> bytes:
        """Return what is in it."""
        if self.pool.device is None:
            return ctypes.string_at(self.address, self.nbytes)
        target = ctypes.create_string_buffer(self.nbytes)
        self.pool.device.copy_bytes(
            *(ctypes.addressof(target), self.address, self.nbytes, stream),
            *(HOST_MEMORY, self.pool.device.handle),
        )
        return target.raw

    def used_in(self, stream: Stream) -> None:
        """Record that another stream uses the block."""
        if self.pool.table.record_use:
            self.pool.table.record_use(
                self.pool.table.ctx, self.address, self.context, stream.pointer
            )

    def free(self) -> None:
        """Free the block."""
        self.pool.table.free(self.pool.table.ctx, self.address, self.nbytes, self.context)


@contextmanager
def repeated(work: Callable[[], object]) -> Iterator[None]:
    """Do the work again and again in two other threads: a fork may find it holding a lock."""
    stop = threading.Event()

    def repeat() -> None:
        while not stop.is_set():
            work()

    others = [threading.Thread(target=repeat) for _ in range(2)]
    for thread in others:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in others:
            thread.join()


def in_child(work: Callable[[], object]) -> None:
    """Run `work` in a forked process; what it raises there, or that it hangs, fails here.

    A child may hang before it comes to `work`, in a handler of forks.
    """
    reading, writing = os.pipe()
    process, code = os.getpid(), 1
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # about threads: they are the point
            pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(int(CHILD_SECONDS) + 5)  # where this process is ended before it looks
            work()
            code = 0
    except BaseException as error:
        if os.getpid() == process:
            raise
        os.write(writing, f"{type(error).__name__}: {error}".encode()[:4000])
    finally:
        if os.getpid() != process:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        end = select.poll()
        end.register(pipe)
        hangs = not end.poll(1000 * CHILD_SECONDS)
        if hangs:
            os.kill(pid, signal.SIGKILL)
        text = pipe.read().decode()
    status = os.waitpid(pid, 0)[1]
    if hangs:
        text = f"it did not end in {CHILD_SECONDS:g} s"
    assert status == 0, f"in the child of a fork: {text or f'it ended with wait status {status}'}"
