"""Writes the pickles of data that `torch.load` reads: pickle's opcodes, and PyTorch's names."""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from plait_abi import binding
from plait_core._checkpoints._errors import CheckpointError
from plait_core._checkpoints._tree import DEEPEST, is_parameter, refusal
from plait_core._core import Size, Tensor, is_tensor
from plait_core._sparse._compressed import CompressedTensor
from plait_core._sparse._coordinates import SparseTensor
from plait_core._tensor._memory_formats import layout, memory_format

__all__ = ["CALLS", "Call", "Emitter", "Name", "Reference"]


class Name(tuple[str, str]):
    """A module and a name in it."""

    def opcode(self) -> bytes:
        """Return the opcode that looks the name up."""
        return b"c" + "\n".join(self).encode() + b"\n"


class Call:
    """A call that the reader makes of a named function; BUILD sets `state`."""

    def __init__(self, module: str, name: str, *args: Any, state: Any = None) -> None:
        self.function, self.args, self.state = Name((module, name)), args, state


class Reference(tuple[Any, ...]):
    """A persistent id: a name for a storage outside of the pickle."""


class Emitter:
    """A writer of pickle's opcodes, protocol 2."""

    def __init__(self, tensor: Callable[[Tensor], Any]) -> None:
        self.parts: list[bytes] = []
        self._tensor = tensor
        self._memo: dict[int, tuple[int, Any]] = {}

    def emit(self, value: Any, path: str = "", depth: int = 0) -> None:
        """Write the opcodes that build `value`."""
        if depth > DEEPEST:
            raise CheckpointError(
                f"save: {path[:60]}... is nested more than {DEEPEST} deep, or contains itself"
            )
        emit = self.parts.append
        if value is None or value is True or value is False:
            emit({None: b"N", True: b"\x88", False: b"\x89"}[value])
        elif is_tensor(value):
            self._emit_tensor(value, path, depth)
        elif type(value) in _WRITERS:
            _WRITERS[type(value)](self, value, path, depth + 1)
        elif isinstance(value, np.generic) and not value.dtype.hasobject and not value.dtype.names:
            self.emit(_scalar(value), path, depth + 1)
        else:
            raise CheckpointError(refusal(path or "the object", value))

    def _emit_tensor(self, value: Tensor, path: str, depth: int) -> None:
        entry = self._memo.get(id(value))
        if entry is not None:
            self.parts.append(b"j" + struct.pack("<I", entry[0]))
            return
        try:
            is_parameter(value)
        except TypeError as error:
            raise CheckpointError(f"save: {path}: {error}") from None
        self.emit(self._tensor(value), path, depth + 1)
        self.parts.append(b"r" + struct.pack("<I", len(self._memo)))
        self._memo[id(value)] = (len(self._memo), value)

    def items(self, values: Any, path: str, depth: int) -> None:
        """Write the members of a sequence."""
        for i, value in enumerate(values):
            self.emit(value, f"{path}.{i}", depth)

    def pairs(self, values: Any, path: str, depth: int) -> None:
        """Write keys and values, and put them into the mapping on the stack."""
        self.parts.append(b"(")
        for key, value in values.items():
            self.emit(key, f"{path}.(key)", depth)
            self.emit(value, f"{path}.{key}" if path else str(key), depth)
        self.parts.append(b"u")

    def text(self) -> bytes:
        """Return the pickle."""
        return b"".join([b"\x80\x02", *self.parts, b"."])


def _scalar(value: np.generic) -> Call:
    return Call("numpy.core.multiarray", "scalar", value.dtype, value.tobytes())


def _write_int(e: Emitter, value: int, path: str, depth: int) -> None:
    if -(2**31) <= value < 2**31:
        e.parts.append(b"J" + struct.pack("<i", value))
        return
    size = value.bit_length() // 8 + 1
    data = value.to_bytes(size, "little", signed=True)
    short = size < 256
    e.parts.append((b"\x8a" + bytes([size]) if short else b"\x8b" + struct.pack("<i", size)) + data)


def _write_float(e: Emitter, value: float, path: str, depth: int) -> None:
    e.parts.append(b"G" + struct.pack(">d", value))


def _write_text(e: Emitter, value: str, path: str, depth: int) -> None:
    data = value.encode("utf-8", "surrogatepass")
    e.parts.append(b"X" + struct.pack("<I", len(data)) + data)


def _write_bytes(e: Emitter, value: bytes, path: str, depth: int) -> None:
    e.emit(Call("_codecs", "encode", value.decode("latin-1"), "latin1"), path, depth)


def _write_list(e: Emitter, value: list[Any], path: str, depth: int) -> None:
    e.parts.append(b"](")
    e.items(value, path, depth)
    e.parts.append(b"e")


def _write_tuple(e: Emitter, value: tuple[Any, ...], path: str, depth: int) -> None:
    if not value:
        e.parts.append(b")")
        return
    if len(value) > 3:
        e.parts.append(b"(")
    e.items(value, path, depth)
    e.parts.append({1: b"\x85", 2: b"\x86", 3: b"\x87"}.get(len(value), b"t"))


def _write_dict(e: Emitter, value: dict[Any, Any], path: str, depth: int) -> None:
    e.parts.append(b"}")
    e.pairs(value, path, depth)


def _write_ordered(e: Emitter, value: Any, path: str, depth: int) -> None:
    e.emit(Call("collections", "OrderedDict"), path, depth)
    e.pairs(value, path, depth)
    if "_metadata" in vars(value):
        e.emit({"_metadata": value._metadata}, f"{path}._metadata", depth)
        e.parts.append(b"b")


def _write_call(e: Emitter, value: Call, path: str, depth: int) -> None:
    e.emit(value.function, path, depth)
    e.emit(value.args, path, depth)
    e.parts.append(b"R")
    if value.state is not None:
        e.emit(value.state, path, depth)
        e.parts.append(b"b")


def _write_name(e: Emitter, value: Name, path: str, depth: int) -> None:
    e.parts.append(value.opcode())


def _write_reference(e: Emitter, value: Reference, path: str, depth: int) -> None:
    e.emit(tuple(value), path, depth)
    e.parts.append(b"Q")


def _write_array(e: Emitter, value: np.ndarray[Any, Any], path: str, depth: int) -> None:
    if value.dtype.hasobject or value.dtype.names:
        raise CheckpointError(f"save: {path} is an array of Python objects or records")
    call = Call(
        "numpy.core.multiarray",
        "_reconstruct",
        Name(("numpy", "ndarray")),
        (0,),
        b"b",
        state=(1, value.shape, value.dtype, False, value.tobytes()),
    )
    e.emit(call, path, depth)


def _write_np_dtype(e: Emitter, value: np.dtype[Any], path: str, depth: int) -> None:
    order = value.str[0]
    state = (3, order, None, None, None, -1, -1, 0)
    e.emit(Call("numpy", "dtype", value.str[1:], False, True, state=state), path, depth)


def _called(make: Callable[[Any], Call | Name]) -> Callable[..., None]:
    return lambda e, value, path, depth: e.emit(make(value), path, depth)


def _layout_call(value: layout) -> Call:
    return Call("torch.serialization", "_get_layout", f"torch.{value.name}")


def _sparse_call(value: SparseTensor) -> Call:
    parts = (value._indices(), value._values(), Size(value.shape), value.is_coalesced())
    return Call("torch._utils", "_rebuild_sparse_tensor", value.layout, parts)


def _compressed_call(value: CompressedTensor) -> Call:
    parts = (value._bounds, value._places, value._stored, Size(value.shape))
    return Call("torch._utils", "_rebuild_sparse_tensor", value.layout, parts)


# the objects whose names are PyTorch's
CALLS: dict[type, Callable[[Any], Call | Name]] = {
    Size: lambda v: Call("torch", "Size", tuple(v)),
    SparseTensor: _sparse_call,
    CompressedTensor: _compressed_call,
    binding.dtype: lambda v: Name(("torch", v.name)),
    binding.device: lambda v: Call("torch", "device", *str(v).split(":")[:1]),
    layout: _layout_call,
    memory_format: lambda v: Name(("torch", v.name)),
}
_WRITERS: dict[type, Callable[..., None]] = {
    int: _write_int,
    float: _write_float,
    str: _write_text,
    bytes: _write_bytes,
    list: _write_list,
    tuple: _write_tuple,
    dict: _write_dict,
    OrderedDict: _write_ordered,
    np.ndarray: _write_array,
    Call: _write_call,
    Name: _write_name,
    Reference: _write_reference,
    complex: _called(lambda v: Call("builtins", "complex", v.real, v.imag)),
    bytearray: _called(lambda v: Call("builtins", "bytearray", bytes(v))),
    set: _called(lambda v: Call("builtins", "set", list(v))),
    frozenset: _called(lambda v: Call("builtins", "frozenset", list(v))),
    slice: _called(lambda v: Call("builtins", "slice", v.start, v.stop, v.step)),
    range: _called(lambda v: Call("builtins", "range", v.start, v.stop, v.step)),
    Counter: _called(lambda v: Call("collections", "Counter", dict(v))),
    **{kind: _called(make) for kind, make in CALLS.items()},
}
_WRITERS |= {type(np.dtype(c)): _write_np_dtype for c in "?bBhHiIlLqQefdgFDGSUVmM"}
