"""PyTorch's numbers of dtypes and of formats of memory, which code has in their place."""

from __future__ import annotations

from typing import Any

import plait
from plait_torch._torchscript._errors import ScriptError

# PyTorch's numbers of dtypes and formats of memory
_DTYPES = (
    "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32",
    "complex64", "complex128", "bool", "qint8", "quint8", "qint32", "bfloat16", "quint4x2",
    "quint2x4", "bits1x8", "bits2x4", "bits4x2", "bits8", "bits16", "float8_e5m2", "float8_e4m3fn",
    "float8_e5m2fnuz", "float8_e4m3fnuz", "uint16", "uint32", "uint64",
)  # fmt: skip
_LAYOUTS = (
    "strided",
    "sparse_coo",
    "sparse_csr",
    "mkldnn",
    "sparse_csc",
    "sparse_bsr",
    "sparse_bsc",
)
_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")


def dtype_of(number: Any) -> Any:
    """Return the dtype that a number stands for; other values as they are.

    Example:
        >>> dtype_of(6)
        plait.float32
    """
    if type(number) is not int:
        return number
    result = getattr(plait, _DTYPES[number], None) if 0 <= number < len(_DTYPES) else None
    if result is None:
        raise ScriptError(f"TorchScript: plait has no dtype for PyTorch's number {number}")
    return result


def dtype_number(dtype: Any) -> int:
    """Return PyTorch's number of a dtype.

    Example:
        >>> import plait
        >>> dtype_number(plait.float32)
        6
    """
    return _DTYPES.index(dtype.name)


def layout_number(layout: Any) -> int:
    """Return PyTorch's number of a layout.

    Example:
        >>> import plait
        >>> layout_number(plait.strided)
        0
    """
    return _LAYOUTS.index(layout.name)


def _format(number: Any) -> Any:
    return getattr(plait, _FORMATS[number]) if type(number) is int else number


def with_options(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return keywords as plait takes them: dtypes and formats are numbers in code, and what has
    PyTorch's default is left out.
    """
    result = {}
    for name, value in kwargs.items():
        if name == "dtype":
            value = dtype_of(value)
        elif name == "memory_format":
            value = _format(value)
        elif name in ("layout", "pin_memory", "non_blocking") and not value:
            continue
        elif name == "layout" and type(value) is int and value < len(_LAYOUTS):
            value = plait.layout(_LAYOUTS[value])
        if value is None and name in ("dtype", "layout", "device", "memory_format", "generator"):
            continue
        result[name] = value
    return result
