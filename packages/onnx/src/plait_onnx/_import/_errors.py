"""The error of a file or a model that cannot be used."""

from __future__ import annotations

from plait_abi import PlaitError

__all__ = ["ModelError", "text"]


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


def text(value: str | bytes) -> str:
    """Return a text of a file; protobuf gives bytes for what is no UTF-8."""
    if not isinstance(value, str):
        raise ModelError(f"a name in the file is no text: {bytes(value)[:40]!r}")
    return value
