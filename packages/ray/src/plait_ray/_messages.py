"""Messages: Python objects as bytes, with the memory of tensors and arrays beside them.

The memory goes to Ray's object store by one copy, and is not copied where it is read: tensors of a
message lie in the store's shared memory until they are dropped.
"""

from __future__ import annotations

import ctypes
import functools
import io
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plait_abi.components import require

Remember = Callable[[Any], Any]
_INLINE = 32 << 10  # bytes of a message that is no object of the store of its own


def _core() -> Any:
    return require("core")


class Encoded:
    """A message that is ready to travel, and the tensors in it, in order."""

    def __init__(self, parts: tuple[Any, ...], tensors: list[Any]) -> None:
        self.parts = parts
        self.tensors = tensors

    def size(self) -> int:
        """Return the number of bytes."""
        head, buffers, layouts = self.parts
        return len(head) + sum(int(x.nbytes) for x in [*buffers, *(y[-1] for y in layouts)])

    def is_small(self) -> bool:
        """Return whether it travels within the call."""
        return self.size() < _INLINE


class _Tables:
    """What both picklers do: tensors and references to remote objects go into tables."""

    tensors: list[Any]
    describe: Callable[[Any], Any]
    _seen: dict[int, int]

    def persistent_id(self, thing: Any) -> Any:
        """Return how a thing is named in the stream; None for one that is pickled."""
        if type(thing) is _core().Tensor:
            if id(thing) not in self._seen:
                self._seen[id(thing)] = len(self.tensors)
                self.tensors.append(thing)
            return "tensor", self._seen[id(thing)]
        return self.describe(thing)


def _prepare(pickler: Any, describe: Callable[[Any], Any]) -> Any:
    pickler.tensors, pickler.describe, pickler._seen = [], describe, {}
    return pickler


class _ByReference(_Tables, pickle.Pickler):
    """Functions and classes by the names of their modules."""


@functools.lru_cache(maxsize=1)
def _by_value() -> type:
    """Return a pickler that pickles functions of the main program by their code, as Ray does."""
    from ray import cloudpickle

    return type("_ByValue", (_Tables, cloudpickle.CloudPickler), {})


def encode(thing: Any, describe: Callable[[Any], Any], same_program: bool) -> Encoded:
    """Return an object as a message.

    Args:
        thing: the object.
        describe: returns a tuple for things that the receiver replaces, None for others.
        same_program: both sides run the same main program, so its functions have names there.
    """
    for kind in (_ByReference, _by_value()) if same_program else (_by_value(),):
        file, buffers = io.BytesIO(), list[Any]()
        pickler = _prepare(kind(file, protocol=5, buffer_callback=buffers.append), describe)
        try:
            pickler.dump(thing)
            break
        except (pickle.PicklingError, AttributeError):
            if kind is not _ByReference:  # else: a function without a name, such as a lambda
                raise
    flat = [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers]
    parts = (file.getvalue(), flat, [_layout(tensor) for tensor in pickler.tensors])
    return Encoded(parts, pickler.tensors)


def _layout(tensor: Any) -> tuple[Any, ...]:
    """Return dtype, shape, whether a gradient is required, and the elements' bytes."""
    new = _core()
    if tensor.layout != new.strided or tensor.device.type != "cpu":
        raise TypeError(
            f"remote call: tensors must be dense and on the CPU, got {tensor.layout} on "
            f"{tensor.device}; call .cpu() or .to_dense() first"
        )
    flat = tensor.detach().contiguous().reshape(-1).resolve_conj().resolve_neg()
    data = flat.view(new.uint8).numpy() if flat.numel() else np.empty(0, np.uint8)
    return str(tensor.dtype).rpartition(".")[2], tuple(tensor.shape), tensor.requires_grad, data


def writable(array: Any) -> Any:
    """Return an array over the same memory that may be written to.

    Ray marks its objects as constant. A message is read by one process, once, and the memory is
    mapped to be written to; so the receiver may change its tensors in place, as it may without Ray.
    """
    if array.flags.writeable or not array.size:
        return array
    if array.nbytes < _INLINE or not _is_mapped_writable(array.ctypes.data):
        return array.copy()
    memory = (ctypes.c_char * array.nbytes).from_address(array.ctypes.data)
    memory._owner = array  # the object stays as long as the memory
    return np.frombuffer(memory, np.uint8)


def _is_mapped_writable(address: int) -> bool:
    with open("/proc/self/maps", encoding="utf-8") as file:
        for line in file:
            bounds, rights = line.split()[:2]
            low, high = (int(text, 16) for text in bounds.split("-"))
            if low <= address < high:
                return "w" in rights
    return False


class Decoder:
    """Reads a message."""

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self._head, self._buffers, self._layouts = parts

    def required(self) -> list[int]:
        """Return which tensors require a gradient at the sender."""
        return [i for i, (_, _, grad, _) in enumerate(self._layouts) if grad]

    def tensors(self) -> list[Any]:
        """Return the tensors, which require no gradient."""
        return [_tensor(*layout) for layout in self._layouts]

    def read(self, tensors: Sequence[Any], replace: Callable[[Any], Any]) -> Any:
        """Return the object; `replace` gets what the sender's `describe` returned."""
        buffers = [pickle.PickleBuffer(writable(b)) for b in self._buffers]
        unpickler = _Unpickler(io.BytesIO(self._head), buffers=buffers)
        unpickler.tensors, unpickler.replace = tensors, replace
        return unpickler.load()


def _tensor(name: str, shape: tuple[int, ...], grad: bool, data: Any) -> Any:
    new = _core()
    dtype = getattr(new, name)
    if not data.size:
        return new.empty(shape, dtype=dtype)
    return new.frombuffer(writable(data), dtype=dtype).reshape(shape)


class _Unpickler(pickle.Unpickler):
    tensors: Sequence[Any]
    replace: Callable[[Any], Any]

    def persistent_load(self, name: Any) -> Any:
        """Return what a name of `_Tables` stands for."""
        return self.tensors[name[1]] if name[0] == "tensor" else self.replace(name)
