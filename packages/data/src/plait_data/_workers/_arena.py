"""Shared memory of one worker: control words, a region for stack dumps, and recycled slots.

The file is a memfd, mapped once on each side at a large sparse size. The worker reserves slots and
marks them as taken. The parent, whose arrays are views of them, marks them as free. A mark is one
byte, so neither side waits for the other.
"""

from __future__ import annotations

import errno
import mmap
import os
import resource
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from plait_data._workers._slot_holders import Hold, collect

PAGE = mmap.PAGESIZE
_DUMP = PAGE  # offset of the region for stack dumps
_DUMP_SIZE = 1 << 20
_FLAGS = _DUMP + _DUMP_SIZE
_MOST_SLOTS = 1 << 20
_SLOTS = _FLAGS + _MOST_SLOTS
_LEAST = _SLOTS + (16 << 20)

# Indices of the control words (int64), in the first page.
BATCH, POSITION, STOP, PHASE, EPOCH, WANTED = range(6)
_LOCK_WORDS = 8


def create() -> tuple[int, mmap.mmap]:
    """A new arena: its descriptor, to be sent to the worker and closed, and the mapping.

    Raises:
        OSError: no descriptor is left, or the limits of this process leave no room.
    """
    descriptor = os.memfd_create("plait-data-arena", os.MFD_CLOEXEC)
    try:
        return descriptor, _map_largest(descriptor)
    except BaseException:
        os.close(descriptor)
        raise


def _map_largest(descriptor: int) -> mmap.mmap:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    # sparse: only written pages take memory
    size = max(1 << 36, 1 << (2 * memory - 1).bit_length())
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limit != resource.RLIM_INFINITY:
        size = min(size, limit // PAGE * PAGE)
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:  # the program and other workers need address space too
        size = min(size, max(_LEAST, limit // 16 // PAGE * PAGE))
    while size >= _SLOTS + PAGE:
        try:
            os.ftruncate(descriptor, size)
            mapping = map_file(descriptor, size)
            os.posix_fallocate(descriptor, 0, PAGE)
            return mapping
        except OSError as error:
            if error.errno not in (errno.ENOMEM, errno.EINVAL, errno.EFBIG):
                raise
            if size <= _LEAST:
                break
            size = max(_LEAST, size // 4 // PAGE * PAGE)
    raise OSError(
        errno.ENOMEM,
        f"DataLoader: a worker's shared memory needs {_LEAST >> 20} MB of address space and file "
        "size; the limits of this process (ulimit -v, ulimit -f) leave less. Raise them, or use "
        'num_workers=0 or multiprocessing_context="thread"',
    )


def map_file(descriptor: int, size: int, access: int = mmap.ACCESS_WRITE) -> mmap.mmap:
    """A mapping of the file, without a descriptor of its own if Python supports that."""
    try:
        return mmap.mmap(descriptor, size, access=access, trackfd=False)  # type: ignore[call-arg]
    except TypeError:  # before Python 3.13
        return mmap.mmap(descriptor, size, access=access)


class Slot:
    """A part of the arena: its number, its beginning and its size."""

    __slots__ = ("capacity", "held", "number", "offset", "resident")

    def __init__(self, number: int, offset: int, capacity: int) -> None:
        self.number = number
        self.offset = offset
        self.capacity = capacity
        self.resident = True
        self.held: weakref.ref[Any] | None = None  # the worker's array over the slot


class Arena:
    """The worker's side: reserves slots and recycles those that the parent marked free.

    Args:
        descriptor: of the file.
        worker: the worker's number, for errors.
    """

    def __init__(self, descriptor: int, worker: int) -> None:
        self._descriptor = descriptor
        self._worker = worker
        self._size = os.fstat(descriptor).st_size
        self._mapping = map_file(descriptor, self._size)
        self.control = memoryview(self._mapping)[: _LOCK_WORDS * 8].cast("q")
        self._bytes: npt.NDArray[np.uint8] = np.frombuffer(self._mapping, np.uint8)
        self._start = int(self._bytes.__array_interface__["data"][0])
        self._flags = self._bytes[_FLAGS:_SLOTS]
        self._slots: list[Slot] = []
        self._at: dict[int, Slot] = {}
        self._end = _SLOTS

    def dump_file(self) -> int:
        """A descriptor that writes to the dump region from its beginning."""
        # Opened again: a duplicate would share the position of the file's other descriptors.
        descriptor = os.open(f"/proc/self/fd/{self._descriptor}", os.O_RDWR | os.O_CLOEXEC)
        os.lseek(descriptor, _DUMP, os.SEEK_SET)
        return descriptor

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any], least: int) -> Any:
        """An array in a slot of its own; None for one of fewer than ``least`` bytes."""
        size = dtype.itemsize
        for length in shape:
            size *= length
        if size < least:
            return None
        slot = self.reserve(size)
        owner = np.frombuffer(self._mapping, np.uint8, size, slot.offset)
        slot.held = weakref.ref(owner)
        return owner.view(dtype).reshape(shape)

    def memory(self, slot: Slot, size: int) -> memoryview:
        """The first ``size`` bytes of a slot, to write to."""
        return memoryview(self._mapping)[slot.offset : slot.offset + size]

    def mark_taken(self, slot: Slot) -> None:
        """Mark a slot as taken; the parent will free it."""
        self._flags[slot.number] = 1

    def mark_free(self, number: int) -> None:
        """Free a slot that was not sent."""
        self._flags[number] = 0

    def find(self, buffer: memoryview) -> Slot | None:
        """The slot that a buffer lies in, if it lies in one."""
        address = int(np.frombuffer(buffer, np.uint8).__array_interface__["data"][0])
        offset = address - self._start
        if not _SLOTS <= offset < self._end:
            return None
        slot = self._at.get(offset)
        if slot is None:  # a view that begins inside of a slot
            slot = next(s for s in reversed(self._slots) if s.offset <= offset)
        return slot if offset + buffer.nbytes <= slot.offset + slot.capacity else None

    def offset_in(self, slot: Slot, buffer: memoryview) -> int:
        """The offset in the slot of a buffer that `find` found."""
        address = int(np.frombuffer(buffer, np.uint8).__array_interface__["data"][0])
        return address - self._start - slot.offset

    def reserve(self, size: int) -> Slot:
        """A slot with room for ``size`` bytes that neither side uses, its pages reserved.

        Raises:
            MemoryError: a limit is reached; the text names it.
        """
        capacity = _capacity(size)
        free = self._free()
        fitting = [slot for slot in free if capacity <= slot.capacity <= 2 * capacity]
        if fitting:
            slot = min(fitting, key=lambda slot: (not slot.resident, slot.capacity))
            if not slot.resident:
                self._allocate(slot.offset, slot.capacity)
                slot.resident = True
            return slot
        self._give_back(free, 4 * capacity + (16 << 20))
        number = len(self._slots)
        if number >= _MOST_SLOTS:
            raise self._full(f"the program keeps {_MOST_SLOTS} batches or parts of batches")
        if self._end + capacity > self._size:
            raise self._full("its limit is the file size (ulimit -f) or the address space")
        if number % PAGE == 0:
            self._allocate(_FLAGS + number, PAGE)
        self._allocate(self._end, capacity)
        slot = Slot(number, self._end, capacity)
        self._slots.append(slot)
        self._at[slot.offset] = slot
        self._end += capacity
        return slot

    def _free(self) -> list[Slot]:
        numbers = np.flatnonzero(self._flags[: len(self._slots)] == 0).tolist()
        slots = [self._slots[number] for number in numbers]
        return [slot for slot in slots if slot.held is None or slot.held() is None]

    def _give_back(self, free: list[Slot], most: int) -> None:
        """Return the pages of free slots beyond ``most`` bytes to the system."""
        idle = [slot for slot in free if slot.resident]
        total = sum(slot.capacity for slot in idle)
        for slot in idle:
            if total <= most:
                return
            self._mapping.madvise(mmap.MADV_REMOVE, slot.offset, slot.capacity)
            slot.resident = False
            total -= slot.capacity

    def _allocate(self, offset: int, size: int) -> None:
        # done before anything is written, as a write without memory would be a SIGBUS
        try:
            os.posix_fallocate(self._descriptor, offset, size)
        except OSError as error:
            raise self._full(f"{size} more bytes cannot be allocated ({error.strerror})") from None

    def _full(self, reason: str) -> MemoryError:
        resident = sum(slot.capacity for slot in self._slots if slot.resident)
        return MemoryError(
            f"DataLoader: the shared memory of worker {self._worker} is full at {resident} bytes: "
            f"{reason}. Keep fewer batches at a time, make them smaller, lower num_workers or "
            "prefetch_factor, or raise the limit of memory (ulimit -f, the container's)"
        )


def _capacity(size: int) -> int:
    """``size`` rounded up to one of eight steps an octave, in pages, so that there are few sizes,
    which are reused often.
    """
    step = max(PAGE, (1 << max(size - 1, 0).bit_length()) // 16)
    return max(PAGE, -(-size // step) * step)


class Window:
    """The parent's side: views of slots, each marked as free when its last view is dropped."""

    def __init__(self, mapping: mmap.mmap) -> None:
        self._mapping = mapping
        whole = memoryview(mapping)
        self.control = whole[: _LOCK_WORDS * 8].cast("q")
        self._flags = whole[_FLAGS:_SLOTS]

    def view(self, number: int, offset: int, size: int) -> memoryview:
        """The bytes of a taken slot; the slot is free again when no view of them is left."""
        owner = np.frombuffer(self._mapping, np.uint8, size, offset)
        flags = self._flags
        collect()

        def free() -> None:
            flags[number] = 0

        hold = Hold(free)  # not freed while a forked child may see it

        def release(reference: weakref.ref[Any]) -> None:
            del _owners[id(reference)]
            hold.drop()

        reference = weakref.ref(owner, release)
        _owners[id(reference)] = reference
        return owner.data

    def free(self, number: int) -> None:
        """Mark a slot as free without making a view of it."""
        self._flags[number] = 0

    def dump(self) -> str:
        """The text in the dump region."""
        text = bytes(memoryview(self._mapping)[_DUMP:_FLAGS])
        return text.partition(b"\0")[0].decode(errors="replace")


_owners: dict[int, weakref.ref[Any]] = {}  # the weak reference must be alive to be called
