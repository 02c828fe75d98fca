"""Element types of ONNX and dtypes of plait, and tensors from one to the other."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from onnx import TensorProto

import plait_abi
import plait_core as pc

__all__ = [
    "DTYPES", "NUMPY", "array_of", "element_name", "element_type", "packed", "packed_bits",
    "unpack_bits",
]  # fmt: skip

_NAMES: dict[int, str] = {
    TensorProto.FLOAT: "float32",
    TensorProto.UINT8: "uint8",
    TensorProto.INT8: "int8",
    TensorProto.UINT16: "uint16",
    TensorProto.INT16: "int16",
    TensorProto.INT32: "int32",
    TensorProto.INT64: "int64",
    TensorProto.BOOL: "bool",
    TensorProto.FLOAT16: "float16",
    TensorProto.DOUBLE: "float64",
    TensorProto.UINT32: "uint32",
    TensorProto.UINT64: "uint64",
    TensorProto.COMPLEX64: "complex64",
    TensorProto.COMPLEX128: "complex128",
    TensorProto.BFLOAT16: "bfloat16",
    TensorProto.FLOAT8E4M3FN: "float8_e4m3fn",
    TensorProto.FLOAT8E4M3FNUZ: "float8_e4m3fnuz",
    TensorProto.FLOAT8E5M2: "float8_e5m2",
    TensorProto.FLOAT8E5M2FNUZ: "float8_e5m2fnuz",
}
# by their numbers, as versions of the package `onnx` before they came have no names for them
_NAMES[24] = "float8_e8m0fnu"
_PACKED = {21: 4, 22: 4, 25: 2, 26: 2}  # UINT4, INT4, UINT2, INT2: the bits of an element
_BYTES = {21: "uint8", 22: "int8", 25: "uint8", 26: "int8"}  # what holds one

DTYPES: dict[int, Any] = {int(n): plait_abi.dtype(name) for n, name in (_NAMES | _BYTES).items()}
"""The dtype that holds elements of each type."""
NUMPY: dict[int, Any] = {
    int(number): np.dtype(name).type
    for number, name in _NAMES.items()
    if name != "bfloat16" and not name.startswith("float8")
}
"""NumPy's type of each element type that it has."""
_TYPES = {name: int(number) for number, name in _NAMES.items()}


def element_type(dtype: plait_abi.dtype | str) -> int:
    """Return ONNX's number of a dtype, which is given as an object or by its name."""
    name = dtype if isinstance(dtype, str) else dtype.name
    if name not in _TYPES:
        raise plait_abi.DTypeError(f"ONNX has no element type for {name}")
    return _TYPES[name]


def element_name(number: int) -> str:
    """Return the name that ONNX has for an element type, such as ``FLOAT``."""
    known = number in TensorProto.DataType.values()
    return str(TensorProto.DataType.Name(number)) if known else f"number {number}"


def packed_bits(number: int) -> int:
    """Return 4 or 2 for element types of which several share a byte, else 0."""
    return _PACKED.get(number, 0)


def unpack_bits(data: np.ndarray[Any, Any], number: int, count: int) -> np.ndarray[Any, Any]:
    """Return the elements that share bytes, the first in the lowest bits, with a byte for each."""
    bits = _PACKED[number]
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = ((data[:, None] >> shifts) & ((1 << bits) - 1)).reshape(-1)[:count]
    if _BYTES[number] == "int8":
        half = 1 << (bits - 1)
        return np.asarray((parts ^ half).astype(np.int8) - np.int8(half), np.int8)
    return np.asarray(parts, np.uint8)


def array_of(tensor: pc.Tensor) -> np.ndarray[Any, Any]:
    """Return the elements of a tensor as NumPy's, in C order; dtypes that NumPy lacks as integers.

    The array shares the memory of a contiguous tensor.
    """
    tensor = tensor.detach().cpu().contiguous()
    if _TYPES.get(tensor.dtype.name) not in NUMPY:
        tensor = tensor.view(pc.uint16 if tensor.itemsize == 2 else pc.uint8)
    array: np.ndarray[Any, Any] = tensor.numpy()
    return array


def packed(tensor: pc.Tensor, name: str = "") -> TensorProto:
    """Return a tensor as ONNX's, with its elements as raw bytes (little-endian)."""
    array = array_of(tensor)
    if sys.byteorder == "big":
        array = array.byteswap()
    return TensorProto(
        name=name,
        dims=list(tensor.shape),
        data_type=element_type(tensor.dtype),
        raw_data=array.tobytes(),
    )
