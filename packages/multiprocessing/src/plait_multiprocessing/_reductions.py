"""Pickling of messages in which tensors are references to shared memory."""

from __future__ import annotations

import io
import os
import pickle
import threading
from collections.abc import Callable, Sequence
from multiprocessing import context, reduction
from typing import Any

from plait_abi import binding
from plait_abi.components import load_device
from plait_multiprocessing import _library as _library, _shared

# the results of _shared.kind
SOLE, USED, SHARED, META, DEVICE = range(5)
# smaller NumPy arrays are sent by value
_SMALLEST_ARRAY = 4096

_numpy_shared = False
_opening = threading.local()


class Message(bytes):
    """A pickle with its tickets (one for each block of shared memory). If it is dropped unsent, the
    tickets are released.
    """

    tickets: tuple[_shared.Ticket, ...] = ()

    def settle(self) -> None:
        """Mark the message as sent."""
        for ticket in self.tickets:
            ticket.settle()


class InMessage:
    """A block as a part of a message; it cannot be pickled in another way."""

    __slots__ = ("block",)

    def __init__(self, block: _shared.Block) -> None:
        self.block = block

    def __reduce__(self) -> Any:
        raise TypeError(
            "pickle: shared memory can only be sent to another process, as an argument or through "
            "a channel of plait_multiprocessing; it cannot be pickled in another way"
        )


class _Reference:
    """A reference to a storage in a pickle, which pickle's memo writes once."""

    __slots__ = ("arguments", "rebuild")

    def __init__(self, rebuild: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.rebuild, self.arguments = rebuild, arguments


class _Region:
    """The bytes that tensors of one message use in a storage that is not moved."""

    __slots__ = ("high", "low", "reference", "tensor")

    def __init__(self, tensor: Any, reference: _Reference) -> None:
        self.tensor, self.reference = tensor, reference
        self.low, self.high = 1 << 62, 0

    def include(self, low: int, high: int) -> None:
        if low < high:
            self.low, self.high = min(self.low, low), max(self.high, high)

    def copy(self) -> tuple[_shared.Block, int]:
        # whole units of 64 bytes, so that elements stay aligned
        low = self.low // 64 * 64 if self.low < self.high else 0
        return _shared.copy(self.tensor, low, max(low, self.high)), low


class Pickler(reduction.ForkingPickler):
    """A pickler that writes tensors as references to blocks and collects the tickets."""

    def __init__(self, file: Any, protocol: int | None = None) -> None:
        super().__init__(file, protocol)
        self.tickets: list[_shared.Ticket] = []
        self.descriptors: dict[int, int] = {}  # of the tickets, and their positions in the message
        self.regions: dict[int, _Region] = {}
        self._references: dict[int, tuple[_Reference, Any]] = {}

    def reducer_override(self, value: Any) -> Any:
        """Return the reduction of tensors and arrays."""
        if type(value) is _Reference:
            return value.rebuild, value.arguments
        if isinstance(value, binding.Event):
            return _event(value)
        if type(value) is InMessage:
            reference = self._block(value.block)
            return reference.rebuild, reference.arguments
        kind = _shared.kind(value)
        if kind >= 0:
            return self._tensor(value, kind)
        cls = type(value)
        if cls.__name__ == "ndarray" and cls.__module__ == "numpy":
            return self._array(value) if _numpy_shared else NotImplemented
        if getattr(cls, "__plait_storage__", None) is not None:
            return cls, (value.__plait_storage__,)
        return NotImplemented

    def _tensor(self, value: Any, kind: int) -> Any:
        grad = bool(getattr(value, "requires_grad", False))
        if grad and not value.is_leaf:
            raise RuntimeError(
                "send: a tensor with a history cannot go to another process, where its graph is "
                "not; detach() it first"
            )
        if kind == DEVICE:
            raise TypeError(
                f"send: a tensor on the CPU is required, got one on {value.device}, whose memory "
                "other processes cannot share; copy it with .cpu()"
            )
        if kind == SOLE:  # another thread may make a view of it during the move
            kind = SHARED if _shared.move(value) else USED
        cls = type(value)
        base = next(c for c in reversed(cls.__mro__) if "__plait_tensor__" in vars(c))
        if cls.__reduce_ex__ is not base.__reduce_ex__:
            return NotImplemented  # a class with its own reduction, which contains a plain tensor
        code, bits, offset, shape, strides = _shared.layout(value)
        state = getattr(value, "__dict__", None) or None
        header = (cls if cls is not base else None, base, grad, code, bits, shape)
        if kind == META:
            return rebuild_meta, header, state
        storage = self._by_name(value) if kind == SHARED else self._region(value)
        return rebuild, (*header, storage, offset, strides), state

    def _by_name(self, tensor: Any) -> _Reference:
        return self._block(_shared.block(tensor))

    def _block(self, block: _shared.Block) -> _Reference:
        entry = self._references.get(block.key)
        if entry is None:
            ticket = self._ticket(block)
            if block.kind:
                _, *other = ticket.descriptors
                position = self.descriptors[other[0]] if other else None
                reference = _Reference(borrow, (ticket.name, position, block.kind))
            else:
                reference = _Reference(receive, ticket.name)
            entry = self._references[block.key] = reference, block
        return entry[0]

    def _ticket(self, block: _shared.Block) -> _shared.Ticket:
        ticket = block.ticket()
        self.tickets.append(ticket)
        for descriptor in ticket.descriptors:
            self.descriptors.setdefault(descriptor, len(self.descriptors))
        return ticket

    def _region(self, tensor: Any) -> _Reference:
        key, low, high = _shared.span(tensor)
        region = self.regions.get(key)
        if region is None:
            reference = _Reference(_find_region, (len(self.regions),))
            region = self.regions[key] = _Region(tensor, reference)
        region.include(low, high)
        return region.reference

    def _array(self, array: Any) -> Any:
        if array.dtype.hasobject or array.nbytes < _SMALLEST_ARRAY:
            return NotImplemented
        cls, owner = type(array), array
        while type(owner) is cls:
            owner = owner.base
        if type(owner) is _shared.Block:
            offset = array.__array_interface__["data"][0] - owner.address
            strides, block = array.strides, owner
        else:
            block = _shared.create(array.nbytes)
            order = "F" if array.flags.fnc else "C"  # as in an ordinary pickle
            copy = cls(array.shape, array.dtype, block, order=order)
            copy[...] = array
            offset, strides = 0, copy.strides
        reference = self._block(block)
        return rebuild_array, (cls, array.shape, array.dtype, reference, offset, strides)

    def finish(self, pickled: bytes) -> bytes:
        """Copy the regions of private storages and write references to the copies first."""
        if not self.regions:
            return pickled
        table = []
        for region in self.regions.values():
            block, low = region.copy()
            table.append((self._ticket(block).name, low))
        return pickle.dumps(_Nested(table, pickled), pickle.HIGHEST_PROTOCOL)


class _Nested:
    """A pickle inside of another one, after the table of its regions."""

    def __init__(self, table: list[Any], pickled: bytes) -> None:
        self._arguments = table, pickled

    def __reduce__(self) -> tuple[Any, ...]:
        return _open, self._arguments


def receive(*name: int) -> tuple[_shared.Block, int]:
    """Return the block of a reference, and the offset of its bytes in the sender's storage."""
    return _shared.receive(name), 0  # type: ignore[arg-type]


def borrow(name: _shared.Name, position: int | None, kind: str) -> tuple[_shared.Block, int]:
    """Return the storage on a device of a reference.

    `position` is the index of its descriptor in the message; None: it has none. `kind` is the type
    of the device, whose package is loaded here if it was not used yet.
    """
    load_device(kind)
    pins = getattr(_opening, "pins", ())
    pin = pins[position] if position is not None and position < len(pins) else None
    return _shared.borrow(name, pin), 0


def _open(table: list[tuple[_shared.Name, int]], pickled: bytes) -> Any:
    outer = getattr(_opening, "regions", None)
    _opening.regions = [(_shared.receive(name), low) for name, low in table]
    try:
        return pickle.loads(pickled)
    finally:
        _opening.regions = outer


def _find_region(index: int) -> tuple[_shared.Block, int]:
    entry: tuple[_shared.Block, int] = _opening.regions[index]
    return entry


def rebuild(
    cls: Any,
    base: type,
    grad: bool,
    code: int,
    bits: int,
    shape: tuple[int, ...],
    storage: tuple[_shared.Block, int],
    offset: int,
    strides: tuple[int, ...],
) -> Any:
    """Make the tensor of a reference."""
    block, low = storage
    at = offset - low if 0 not in shape else 0
    return _with_gradient(cls, block.tensor(base, code, bits, at, shape, strides), grad)


def rebuild_meta(
    cls: Any, base: type, grad: bool, code: int, bits: int, shape: tuple[int, ...]
) -> Any:
    """Make a tensor on the device meta."""
    return _with_gradient(cls, _shared.empty(base, shape, True, code, bits), grad)


def _with_gradient(cls: Any, tensor: Any, grad: bool) -> Any:
    if cls is not None:
        return cls._make_subclass(cls, tensor, grad)
    return tensor.requires_grad_() if grad else tensor


def _event(event: Any) -> tuple[Any, ...]:
    handle, descriptor, offset = binding.share_event(event)
    if descriptor >= 0:
        os.close(descriptor)
        raise TypeError(
            f"send: events of {event.device} are shared by file descriptors, which messages do "
            "not bring; send a tensor behind `event.synchronize()` instead"
        )
    return rebuild_event, (event.device, handle, offset)


def rebuild_event(device: Any, handle: bytes, offset: int) -> Any:
    """Open an event of another process."""
    return binding.open_event(device, handle, -1, offset)


def rebuild_array(
    cls: Any,
    shape: tuple[int, ...],
    dtype: Any,
    storage: tuple[_shared.Block, int],
    offset: int,
    strides: tuple[int, ...],
) -> Any:
    """Make the NumPy array of a reference, on the block itself."""
    return cls(shape, dtype, storage[0], offset, strides)


def dumps(value: Any) -> bytes:
    """Pickle an object for a channel with descriptors; a `Message` if it has tensors."""
    file = io.BytesIO()
    pickler = Pickler(file, pickle.HIGHEST_PROTOCOL)
    pickler.dump(value)
    pickled = pickler.finish(file.getvalue())
    if not pickler.tickets:
        return pickled
    message = Message(pickled)
    message.tickets = tuple(pickler.tickets)
    return message


def loads(pickled: Any, pins: Sequence[_shared.Pin] | None = None) -> Any:
    """Unpickle bytes from a channel; `pins` are the pins of the message, or None: an attribute."""
    if pins is None:
        pins = getattr(pickled, "pins", ())
    outer = getattr(_opening, "pins", ())
    _opening.pins = pins
    try:
        return pickle.loads(pickled)
    finally:
        _opening.pins = outer


def descriptors_of(tickets: Sequence[_shared.Ticket]) -> list[int]:
    """Return the descriptors of a message, in the order in which its references number them."""
    return list(dict.fromkeys(fd for ticket in tickets for fd in ticket.descriptors))


class _Reduction:
    """An object that was reduced already."""

    def __init__(self, parts: Any) -> None:
        self._parts = parts

    def __reduce__(self) -> Any:
        return self._parts


def _new(cls: Any, *args: Any) -> Any:
    return cls.__new__(cls, *args)


def pack(parts: Any) -> tuple[Any, ...]:
    """Reduce an object for a process that is being started; `parts` is its plain reduction."""
    if (
        getattr(parts[0], "__name__", "") == "__newobj__"
    ):  # pickle checks that the reduction is of the object itself
        parts = (_new, *parts[1:])
    message = dumps(_Reduction(parts))
    # The start method passes the descriptors on; they stay open as long as its Popen object.
    popen: Any = context.get_spawning_popen()
    popen._plait_message = message
    if not isinstance(message, Message):
        return unpack, (message, [])
    descriptors = descriptors_of(message.tickets)
    message.settle()
    return unpack, (bytes(message), [reduction.DupFd(fd) for fd in descriptors])


def unpack(pickled: bytes, descriptors: list[Any]) -> Any:
    """Make the object that `pack` reduced."""
    return loads(pickled, [_shared.adopt(descriptor.detach()) for descriptor in descriptors])


def share_numpy(enabled: bool = True) -> bool:
    """Set whether NumPy arrays are sent through shared memory too; return the old setting.

    An array of at least 4096 bytes, without Python objects in it, is copied into shared memory when
    it is sent; the receiver's array is on that memory, is writable, and is sent on without a copy.
    The sender's array is unchanged. By default arrays are sent by value, as in the standard module.

    Args:
        enabled: Whether arrays are sent through shared memory.

    Example:
        >>> import numpy as np, plait_multiprocessing as mp
        >>> before = mp.share_numpy(True)
        >>> receiver, sender = mp.Pipe(duplex=False)
        >>> sender.send(np.zeros(10000))
        >>> x = receiver.recv()
        >>> x.shape, x.flags.owndata
        ((10000,), False)
        >>> mp.share_numpy(before)
        True
    """
    global _numpy_shared
    before, _numpy_shared = _numpy_shared, bool(enabled)
    return before
