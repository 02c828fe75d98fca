"""`torch.onnx`: there is no exporter."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NoReturn

__all__ = [
    "OperatorExportTypes",
    "TrainingMode",
    "dynamo_export",
    "export",
    "is_in_onnx_export",
    "is_onnxrt_backend_supported",
]


class TrainingMode(IntEnum):
    """In which mode PyTorch's exporter runs a model."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(IntEnum):
    """What PyTorch's exporter does with operators that ONNX does not have."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


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
