"""Element types of ONNX: their numbers, names and dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

import plait_core as pc
from plait_onnx._import._errors import ModelError

__all__ = ["DTYPES", "NUMPY", "dtype_of", "element_of", "element_name", "packed_bits", "unpack"]

_NAMES = {
    0: "UNDEFINED", 1: "FLOAT", 2: "UINT8", 3: "INT8", 4: "UINT16", 5: "INT16", 6: "INT32",
    7: "INT64", 8: "STRING", 9: "BOOL", 10: "FLOAT16", 11: "DOUBLE", 12: "UINT32", 13: "UINT64",
    14: "COMPLEX64", 15: "COMPLEX128", 16: "BFLOAT16", 17: "FLOAT8E4M3FN", 18: "FLOAT8E4M3FNUZ",
    19: "FLOAT8E5M2", 20: "FLOAT8E5M2FNUZ", 21: "UINT4", 22: "INT4", 23: "FLOAT4E2M1",
    24: "FLOAT8E8M0", 25: "UINT2", 26: "INT2",
}  # fmt: skip
_PLAIT = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
    9: "bool", 10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 14: "complex64",
    15: "complex128", 16: "bfloat16", 17: "float8_e4m3fn", 18: "float8_e4m3fnuz",
    19: "float8_e5m2", 20: "float8_e5m2fnuz", 24: "float8_e8m0fnu",
    21: "uint8", 22: "int8", 25: "uint8", 26: "int8",  # a byte for each element
}  # fmt: skip
_PACKED = {21: 4, 22: 4, 25: 2, 26: 2}
NUMPY = {
    1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64,
    9: np.bool_, 10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64, 14: np.complex64,
    15: np.complex128,
}  # fmt: skip

DTYPES = {k: getattr(pc, name) for k, name in _PLAIT.items() if hasattr(pc, name)}
_ELEMENTS = {dtype: k for k, dtype in reversed(list(DTYPES.items()))}


def element_name(element: int) -> str:
    return _NAMES.get(element, f"number {element}")


def dtype_of(element: int, where: str) -> Any:
    """Return the dtype that holds an element type.

    Raises:
        ModelError: There is none.
    """
    if element not in DTYPES:
        what = "tensors of strings" if element == 8 else f"element type {element_name(element)}"
        raise ModelError(f"{where}: {what} cannot be represented")
    return DTYPES[element]


def element_of(dtype: Any) -> int:
    return int(_ELEMENTS[dtype])


def packed_bits(element: int) -> int:
    """Return 4 or 2 for element types of which several share a byte, else 0."""
    return _PACKED.get(element, 0)


def unpack(data: np.ndarray[Any, Any], element: int, count: int) -> np.ndarray[Any, Any]:
    """Return the elements that share bytes, the first in the lowest bits, with a byte for each."""
    bits = _PACKED[element]
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = ((data[:, None] >> shifts) & ((1 << bits) - 1)).reshape(-1)[:count]
    if element in (22, 26):  # signed
        half = 1 << (bits - 1)
        return np.asarray((parts ^ half).astype(np.int8) - np.int8(half), np.int8)
    return np.asarray(parts, np.uint8)
