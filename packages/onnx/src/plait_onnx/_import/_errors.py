"""The error of a file or a model that cannot be used, and what a file says: texts and dtypes."""

from __future__ import annotations

from typing import Any

from plait_abi import PlaitError
from plait_onnx._dtypes import DTYPES, element_name

__all__ = ["ModelError", "dtype_of", "text"]


class ModelError(PlaitError, ValueError):
    """A file is no valid ONNX model, or a model has something that is not supported.

    The text names the file, or the node and its operator.

    Example:
        >>> import plait_onnx
        >>> try:
        ...     plait_onnx.load(b"no model")
        ... except plait_onnx.ModelError as error:
        ...     print(type(error).__name__)
        ModelError
    """


def dtype_of(number: int, where: str) -> Any:
    """Return the dtype that holds an element type.

    Raises:
        ModelError: There is none.
    """
    if number not in DTYPES:
        what = "tensors of strings" if number == 8 else f"element type {element_name(number)}"
        raise ModelError(f"{where}: {what} cannot be represented")
    return DTYPES[number]


def text(value: str | bytes) -> str:
    """Return a text of a file; protobuf gives bytes for what is no UTF-8."""
    if not isinstance(value, str):
        raise ModelError(f"a name in the file is not text: {bytes(value)[:40]!r}")
    return value
