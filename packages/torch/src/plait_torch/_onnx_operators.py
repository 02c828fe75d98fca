"""`torch.onnx.operators`: shapes as tensors, which an exporter would keep in its graph."""

from __future__ import annotations

from typing import Any

import plait

__all__ = ["reshape_from_tensor_shape", "shape_as_tensor"]


def shape_as_tensor(x: Any) -> Any:
    """Return the sizes of a tensor.

    Example:
        >>> import plait
        >>> from plait_torch._onnx_operators import shape_as_tensor
        >>> shape_as_tensor(plait.ones(2, 3))
        tensor([2, 3])
    """
    return plait.tensor(tuple(x.shape), dtype=plait.int64)


def reshape_from_tensor_shape(x: Any, shape: Any) -> Any:
    """Return a tensor with the sizes that another one holds.

    Example:
        >>> import plait
        >>> from plait_torch._onnx_operators import reshape_from_tensor_shape
        >>> reshape_from_tensor_shape(plait.arange(4), plait.tensor([2, 2])).shape
        plait.Size([2, 2])
    """
    return x.reshape(tuple(shape.tolist()))
