"""`torch.onnx`: there is no exporter."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["dynamo_export", "export", "is_in_onnx_export", "is_onnxrt_backend_supported"]


def export(*args: Any, **kwargs: Any) -> NoReturn:
    """Refuse: there is no exporter."""
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
