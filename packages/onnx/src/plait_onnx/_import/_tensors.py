"""Tensors of a model: from its fields, raw bytes, or files beside it."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

import plait_core as pc
from plait_core import Tensor
from plait_onnx._dtypes import NUMPY, element_name, packed_bits, unpack_bits
from plait_onnx._import._errors import ModelError, dtype_of, text

__all__ = ["ExternalData", "host_of", "read_tensor", "sparse_tensor"]

Array = np.ndarray[Any, Any]
MOST_ELEMENTS = 1 << 60  # of a shape


class ExternalData:
    """Data of tensors in files beside the model, which are mapped to memory.

    Args:
        folder: The model's; None if data of other files cannot be read.
    """

    def __init__(self, folder: str | None) -> None:
        self._folder = None if folder is None else os.path.realpath(folder)
        self._maps: dict[str, Array] = {}

    def read(self, tensor: Any, size: int, where: str) -> Array:
        """Return the bytes of a tensor; writes to them do not reach the file."""
        entries = {text(entry.key): text(entry.value) for entry in tensor.external_data}
        location = entries.get("location", "")
        data = self._map(location, where)
        offset = _number(entries, "offset", 0, where)
        length = _number(entries, "length", size, where)
        if length != size:
            raise ModelError(f"{where}: its shape needs {size} bytes, external data has {length}")
        if offset + length > data.size:
            raise ModelError(
                f"{where}: external data {offset} to {offset + length} is beyond the "
                f"{data.size} bytes of {location!r}"
            )
        return data[offset : offset + length]

    def _map(self, location: str, where: str) -> Array:
        if location not in self._maps:
            path = self._path(location, where)
            try:
                # pages that are written are this process's own
                self._maps[location] = (
                    np.memmap(path, np.uint8, mode="c")
                    if os.path.getsize(path)
                    else np.zeros(0, np.uint8)
                )
            except OSError as error:
                raise ModelError(f"{where}: external data {location!r}: {error}") from error
        return self._maps[location]

    def _path(self, location: str, where: str) -> str:
        if self._folder is None:
            raise ModelError(
                f"{where}: has external data in {location!r}, but the model comes from no file; "
                "pass `folder`"
            )
        bad = not location or "\0" in location or os.path.isabs(location) or ":" in location
        path = os.path.realpath(os.path.join(self._folder, location)) if not bad else ""
        if bad or os.path.commonpath([path, self._folder]) != self._folder:
            raise ModelError(f"{where}: external data {location!r} is outside the model's folder")
        if not os.path.isfile(path):
            raise ModelError(f"{where}: external data {location!r} is not a file of the folder")
        return path


def _number(entries: dict[str, str], key: str, default: int, where: str) -> int:
    text = entries.get(key, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise ModelError(f"{where}: external data's {key} must be a number, got {text[:40]!r}")
    return int(text)


def _shape(dims: Sequence[int], where: str) -> tuple[int, ...]:
    shape = tuple(dims)
    if any(n < 0 for n in shape) or math.prod(shape) > MOST_ELEMENTS or len(shape) > 64:
        raise ModelError(f"{where}: its shape is invalid: {list(shape[:10])}")
    return shape


def _typed_field(tensor: Any, element: int, count: int, where: str) -> Array:
    """Return the elements that stand in one of the fields for kinds of numbers."""
    found: Array
    if element in (1, 14):
        values = np.array(tensor.float_data, np.float32)
        found = values.view(np.complex64) if element == 14 and values.size % 2 == 0 else values
    elif element in (11, 15):
        wide = np.array(tensor.double_data, np.float64)
        found = wide.view(np.complex128) if element == 15 and wide.size % 2 == 0 else wide
    elif element == 7:
        found = np.array(tensor.int64_data, np.int64)
    elif element in (12, 13):
        found = np.array(tensor.uint64_data, np.uint64).astype(NUMPY[element])
    else:
        words = np.array(tensor.int32_data, np.int32)
        if packed_bits(element):
            found = words.astype(np.uint8)
            count = -(-count * packed_bits(element) // 8)
        elif element in (10, 16):  # their bits
            found = words.astype(np.uint16)
        elif element in NUMPY:
            found = words.astype(NUMPY[element])
        else:  # bytes
            found = words.astype(np.uint8)
    if found.size != count:
        raise ModelError(f"{where}: its shape needs {count} elements, it has {found.size}")
    return found


def _from_bytes(data: Array, element: int, shape: tuple[int, ...], where: str) -> Tensor:
    """Return a tensor that shares the memory of its bytes where it can."""
    dtype = dtype_of(element, where)
    if packed_bits(element):
        return pc.from_numpy(unpack_bits(data, element, math.prod(shape)).reshape(shape))
    if data.size == 0:
        return pc.empty(shape, dtype=dtype)
    if data.ctypes.data % dtype.itemsize:
        data = data.copy()
    # a copy of plait's own: kernels keep packed forms of weights that only plait can write to
    make = pc.from_numpy if isinstance(data, np.memmap) else pc.tensor
    if element in NUMPY:
        return make(data.view(NUMPY[element]).reshape(shape))
    word = {1: np.uint8, 2: np.int16}[dtype.itemsize]  # NumPy has no such dtype
    return make(data.view(word).reshape(shape)).view(dtype)


def read_tensor(tensor: Any, external: ExternalData, where: str) -> Tensor:
    """Return the tensor of a TensorProto.

    Raises:
        ModelError: Its type cannot be represented, or its data do not fit its shape.
    """
    element = tensor.data_type
    dtype = dtype_of(element, where)
    shape = _shape(tensor.dims, where)
    count = math.prod(shape)
    bits = packed_bits(element)
    size = -(-count * bits // 8) if bits else count * dtype.itemsize
    if tensor.HasField("segment"):
        raise ModelError(f"{where}: tensors in segments are not supported")
    if tensor.data_location == 1:
        return _from_bytes(external.read(tensor, size, where), element, shape, where)
    if tensor.HasField("raw_data"):
        raw = tensor.raw_data
        if len(raw) != size:
            raise ModelError(
                f"{where}: {element_name(element)} of shape {list(shape)} needs {size} bytes, "
                f"it has {len(raw)}"
            )
        return _from_bytes(np.frombuffer(raw, np.uint8), element, shape, where)
    found = _typed_field(tensor, element, count, where)
    return _from_bytes(found.view(np.uint8).reshape(-1), element, shape, where)


def sparse_tensor(sparse: Any, external: ExternalData, limit: int, where: str) -> Tensor:
    """Return the tensor of a SparseTensorProto, with its zeros."""
    shape = _shape(sparse.dims, where)
    values = read_tensor(sparse.values, external, where)
    places = read_tensor(sparse.indices, external, where)
    size = math.prod(shape) * values.itemsize
    if size > limit:
        raise ModelError(f"{where}: has {size} bytes, more than `limit`, {limit}")
    if places.dtype != pc.int64 or values.ndim != 1 or places.ndim not in (1, 2):
        raise ModelError(f"{where}: values and indices of a sparse tensor do not fit")
    flat = places.numpy()
    if flat.ndim == 2:
        if flat.shape[1] != len(shape):
            raise ModelError(f"{where}: indices of a sparse tensor must have {len(shape)} columns")
        if ((flat < 0) | (flat >= np.array(shape))).any():
            raise ModelError(f"{where}: indices of a sparse tensor are out of range")
        flat = flat @ np.cumprod([1, *shape[:0:-1]], dtype=np.int64)[::-1]
    if flat.shape != tuple(values.shape) or ((flat < 0) | (flat >= math.prod(shape))).any():
        raise ModelError(f"{where}: indices of a sparse tensor are out of range")
    dense = pc.zeros(math.prod(shape), dtype=values.dtype)
    dense[pc.from_numpy(flat)] = values
    return dense.reshape(shape)


def host_of(tensor: Tensor) -> Array:
    """Return the values of a tensor in the memory of the host."""
    tensor = tensor.detach()
    if tensor.dtype == pc.bfloat16:
        tensor = tensor.float()
    return np.array(tensor.cpu().numpy())
