"""Batches as messages: a pickle, and buffers in slots of the worker's arena.

A message is a header (kind, epoch, number, how many slots and buffers), the slots (number, offset,
size), the buffers (slot of the message, start, size) and the inline bytes. The first buffer is the
pickle itself.
"""

from __future__ import annotations

import importlib
import io
import pickle
import struct
import sys
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from plait_data._arrays import tensor_library
from plait_data._workers._arena import Arena, Slot, Window

LEAST_SHARED = 16 << 10  # bytes; below it a copy through the socket is cheaper than a slot
_HEADER = struct.Struct("<IIQII")
_THREE = struct.Struct("<qqq")
_INLINE = -1
_CLASSES, _BY_IDENTITY = "_DYNAMIC_CLASS_TRACKER_BY_CLASS", "_DYNAMIC_CLASS_TRACKER_BY_ID"

_local = threading.local()  # the converter for the message that this thread decodes


class _Marked:
    """An array of a batch that the parent passes to its converter."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __reduce__(self) -> Any:
        return _converted, (self.array,)


def mark(array: Any) -> Any:
    """The worker's converter, which marks arrays for the parent's converter."""
    return _Marked(array)


def _converted(array: Any) -> Any:
    convert = getattr(_local, "convert", None)
    return array if convert is None else convert(array)


def as_array(value: Any) -> tuple[str, Any] | None:
    """The module of a tensor and an array over its memory; None if it is not a plain tensor."""
    library = tensor_library(value)
    if library is None or getattr(value, "requires_grad", False):
        return None
    try:
        array = value.numpy()
    except (TypeError, ValueError, RuntimeError):  # a dtype or device that NumPy does not support
        return None
    return library.__name__, array


def rebuild(library: str, array: Any) -> Any:
    """The tensor over the memory of an array."""
    if not array.flags.writeable:
        array = array.copy()
    return importlib.import_module(library).from_numpy(array)


def of_main(name: str) -> Any:
    """The object called ``name`` in the program's main module."""
    thing: Any = sys.modules["__main__"]
    for part in name.split("."):
        thing = getattr(thing, part)
    return thing


class _Pickler(pickle.Pickler):
    """A pickler that sends tensors as arrays, and objects of the main module by name."""

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        if kind is np.ndarray:
            if value.nbytes < LEAST_SHARED or value.dtype.hasobject or value.flags.forc:
                return NotImplemented
            return np.ascontiguousarray(value).__reduce_ex__(5)
        if isinstance(value, (type, FunctionType)):
            return _named(value)
        tensor = as_array(value)
        return NotImplemented if tensor is None else (rebuild, tensor)


def _named(value: Any) -> Any:
    tracked = _tracked(value)
    if tracked is not None:
        return of_parent, (tracked, value.__qualname__)
    name = value.__qualname__
    if "<" not in name:  # neither local nor a lambda
        of_program = value.__module__ in ("__main__", "__mp_main__")
        return (of_main, (name,)) if of_program else NotImplemented
    import cloudpickle  # the value came from there

    # A class comes back as the parent's own: cloudpickle tracks which one it sent.
    return pickle.loads, (cloudpickle.dumps(value),)


def _tracked(value: Any) -> str | None:
    """cloudpickle's id of a class that came by value."""
    if not isinstance(value, type) or "cloudpickle" not in sys.modules:
        return None
    classes = getattr(sys.modules.get("cloudpickle.cloudpickle"), _CLASSES, {})
    tracked: str | None = classes.get(value)
    return tracked


def of_parent(tracked: str, name: str) -> Any:
    """The program's class for a class that it had sent by value."""
    classes = getattr(sys.modules.get("cloudpickle.cloudpickle"), _BY_IDENTITY, {})
    cls = classes.get(tracked)
    return of_main(name) if cls is None else cls


def dumps(value: Any, keep: Callable[[pickle.PickleBuffer], Any] | None = None) -> bytes:
    """A pickle for the parent."""
    file = io.BytesIO()
    _Pickler(file, 5, buffer_callback=keep).dump(value)
    return file.getvalue()


class _Packing:
    """The buffers of one message."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self.slots: list[tuple[int, int, int]] = []
        self.buffers: list[tuple[int, int, int]] = []
        self.inline: list[bytes] = []
        self._which: dict[int, int] = {}
        self._loose: list[tuple[int, memoryview]] = []

    def add(self, buffer: memoryview) -> None:
        slot = self._arena.find(buffer) if buffer.nbytes >= LEAST_SHARED else None
        if slot is None:
            self._loose.append((len(self.buffers), buffer))
            self.buffers.append((_INLINE, 0, buffer.nbytes))
        else:
            start = self._arena.offset_in(slot, buffer)
            self.buffers.append((self._ordinal(slot), start, buffer.nbytes))

    def finish(self) -> None:
        """Copy buffers that are not in the arena to one more slot, or inline if they are small."""
        size = sum(-(-buffer.nbytes // 64) * 64 for _, buffer in self._loose)
        if size < LEAST_SHARED:
            self.inline = [bytes(buffer) for _, buffer in self._loose]
            return
        slot = self._arena.reserve(size)
        memory, at, ordinal = self._arena.memory(slot, size), 0, self._ordinal(slot)
        target = np.frombuffer(memory, np.uint8)
        for position, buffer in self._loose:
            if buffer.nbytes:
                target[at : at + buffer.nbytes] = np.frombuffer(buffer, np.uint8)
            self.buffers[position] = (ordinal, at, buffer.nbytes)
            at += -(-buffer.nbytes // 64) * 64

    def undo(self) -> None:
        """Free the slots of a message that is not sent."""
        for number, _, _ in self.slots:
            self._arena.mark_free(number)

    def _ordinal(self, slot: Slot) -> int:
        if slot.number not in self._which:
            self._arena.mark_taken(slot)
            self._which[slot.number] = len(self.slots)
            self.slots.append((slot.number, slot.offset, slot.capacity))
        return self._which[slot.number]


def encode(arena: Arena, kind: int, epoch: int, number: int, value: Any) -> bytes:
    """The message with ``value``."""
    raw: list[memoryview] = []

    def keep(buffer: pickle.PickleBuffer) -> None:
        raw.append(buffer.raw())

    content = dumps(value, keep)
    packing = _Packing(arena)
    for buffer in (memoryview(content), *raw):
        packing.add(buffer)
    try:
        packing.finish()
    except MemoryError:
        packing.undo()
        raise
    parts = [_HEADER.pack(kind, epoch + 1, number + 1, len(packing.slots), len(packing.buffers))]
    parts += [_THREE.pack(*slot) for slot in packing.slots]
    parts += [_THREE.pack(*buffer) for buffer in packing.buffers]
    return b"".join([*parts, *packing.inline])


class Message:
    """A message that came, not yet unpickled.

    Attributes:
        kind: `BATCH`, `END` (of a stream), `ERROR` or `READY`.
        epoch: of the task, -1 before the first.
        number: the number of the task; -1 before the worker's first task.
    """

    def __init__(self, content: bytes, window: Window) -> None:
        self.kind, epoch, number, slots, buffers = _HEADER.unpack_from(content)
        self.epoch, self.number = epoch - 1, number - 1
        at = _HEADER.size
        triples = list(_THREE.iter_unpack(content[at : at + (slots + buffers) * _THREE.size]))
        self.slots, self.buffers = triples[:slots], triples[slots:]
        self.inline = memoryview(content)[at + (slots + buffers) * _THREE.size :]
        self.window = window

    def discard(self) -> None:
        """Free the slots of a message that is not read."""
        for number, _, _ in self.slots:
            self.window.free(number)


def decode(message: Message, convert: Callable[[Any], Any] | None) -> Any:
    """The value of a message: arrays are views of the arena; ``convert`` gets marked ones."""
    views = [message.window.view(*slot) for slot in message.slots]
    parts: list[Any] = []
    at = 0
    for slot, start, size in message.buffers:
        if slot != _INLINE:
            parts.append(views[slot][start : start + size])
        else:
            # A copy that can be written to, like the views.
            parts.append(bytearray(message.inline[at : at + size]))
            at += size
    _local.convert = convert
    return pickle.loads(parts[0], buffers=parts[1:])
