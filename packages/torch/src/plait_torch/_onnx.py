"""`torch.onnx`: there is no exporter."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["dynamo_export", "export", "is_in_onnx_export", "is_onnxrt_backend_supported"]


def export(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise: there is no exporter."""
    raise NotImplementedError(
        "torch.onnx.export: plait has no exporter to ONNX; torch.save the state_dict, which "
        "PyTorch reads and exports"
    )


dynamo_export = export


def is_in_onnx_export() -> bool:
    """Return False."""
    return False


def is_onnxrt_backend_supported() -> bool:
    """Return False."""
    return False


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: Any, opset_version: int, custom_opsets: Any = None
) -> None:
    """Do nothing: the function is for an exporter that is not available."""


def parse_args(*arg_descriptors: str) -> Any:
    """Return a decorator that returns its function unchanged, as there is no exporter."""
    return lambda function: function
