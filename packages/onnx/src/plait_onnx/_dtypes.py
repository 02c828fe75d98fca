"""Element types of ONNX and dtypes of plait, and tensors from one to the other."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

import plait_abi
import plait_core as pc

__all__ = ["array_of", "dtype_of", "element_type", "packed", "tensor_of", "type_name", "unpacked"]

_TYPES = {
    "float32": TensorProto.FLOAT,
    "uint8": TensorProto.UINT8,
    "int8": TensorProto.INT8,
    "uint16": TensorProto.UINT16,
    "int16": TensorProto.INT16,
    "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
    "bool": TensorProto.BOOL,
    "float16": TensorProto.FLOAT16,
    "float64": TensorProto.DOUBLE,
    "uint32": TensorProto.UINT32,
    "uint64": TensorProto.UINT64,
    "complex64": TensorProto.COMPLEX64,
    "complex128": TensorProto.COMPLEX128,
    "bfloat16": TensorProto.BFLOAT16,
}
_DTYPES: dict[int, str] = {int(number): name for name, number in _TYPES.items()}


def element_type(dtype: plait_abi.dtype | str) -> int:
    """Return ONNX's number of a dtype, which is given as an object or by its name."""
    name = dtype if isinstance(dtype, str) else dtype.name
    if name not in _TYPES:
        raise plait_abi.DTypeError(f"ONNX has no element type for {name}")
    return int(_TYPES[name])


def type_name(number: int) -> str:
    """Return the name that ONNX has for an element type, such as ``FLOAT``."""
    return TensorProto.DataType.Name(number) if number in TensorProto.DataType.values() else "?"


def dtype_of(number: int) -> plait_abi.dtype:
    """Return the dtype of an element type; a DTypeError if plait has none."""
    if number not in _DTYPES:
        raise plait_abi.DTypeError(
            f"plait has no dtype for ONNX's element type {type_name(number)} ({number})"
        )
    return plait_abi.dtype(_DTYPES[number])


def array_of(tensor: pc.Tensor) -> np.ndarray[Any, Any]:
    """Return the elements of a tensor as NumPy's, in C order; those of bfloat16 as uint16.

    The array shares the memory of a contiguous tensor.
    """
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype == pc.bfloat16:
        tensor = tensor.view(pc.uint16)
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


def tensor_of(array: np.ndarray[Any, Any], number: int) -> pc.Tensor:
    """Return an array of `array_of` as a tensor of an element type; the memory is shared."""
    dtype = dtype_of(number)
    tensor = pc.from_numpy(np.ascontiguousarray(array).reshape(array.shape))
    return tensor.view(pc.bfloat16) if dtype == pc.bfloat16 else tensor


def unpacked(tensor: TensorProto) -> pc.Tensor:
    """Return ONNX's tensor, whose elements are in the message, as a new tensor of plait.

    Raises: DTypeError for an element type that plait does not have.
    """
    dtype = dtype_of(tensor.data_type)
    array = onnx.numpy_helper.to_array(tensor)
    if dtype == pc.bfloat16:
        array = array.view(np.uint16)
    return tensor_of(array.copy(), tensor.data_type)
