"""Tensors from existing data: numbers, arrays, buffers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plait_core._core as _core
from plait_abi import _binding
from plait_abi.imports import import_module
from plait_core._core import Tensor, from_dlpack, from_numpy, is_tensor

__all__ = ["METHODS", "as_tensor", "asarray", "frombuffer", "new_tensor", "tensor"]


def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Make a tensor from a number, nested sequences of numbers, or an array; always a copy.

    Args:
        data: Python numbers become bool, int64, the default dtype (float32) or complex64; arrays
            keep their dtype.
        dtype: the dtype of the result.
        device: the device of the result; default: the CPU.
        requires_grad: whether operators on the result are recorded.

    Raises:
        ValueError: if nested sequences differ in length.
        TypeError: if a tensor cannot be made of `data`.
        OverflowError: if a number does not fit the dtype.

    Example:
        >>> import plait_core as pc
        >>> pc.tensor([[1, 2], [3, 4]])
        tensor([[1, 2],
                [3, 4]])
    """
    return _core.tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Make a tensor from data without a copy where that is possible.

    A tensor of the wanted dtype and device is returned as it is, a NumPy array or an array with
    ``__dlpack__`` shares its memory; all else goes through `tensor`.

    Example:
        >>> import numpy as np, plait_core as pc
        >>> a = np.zeros(2, np.float32)
        >>> t = pc.as_tensor(a)
        >>> a[0] = 5
        >>> t
        tensor([5., 0.])
    """
    if not is_tensor(data):
        if hasattr(data, "__array_interface__") and hasattr(data, "ndim") and data.ndim:
            data = from_numpy(data)
        elif hasattr(data, "__dlpack__"):
            data = from_dlpack(data)
        else:
            return tensor(data, dtype=dtype, device=device)
    result: Tensor = data
    return result if dtype is None and device is None else result.to(device=device, dtype=dtype)


def asarray(
    obj: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Make a tensor from anything, sharing memory or copying as asked.

    Args:
        obj: a tensor, an array, or data for `tensor`.
        dtype: the dtype of the result.
        device: where the result lies.
        copy: True always copies, False never (an error where it would have to), None if needed.
        requires_grad: whether operators on the result are recorded.

    Raises:
        ValueError: if ``copy=False`` cannot be kept.

    Example:
        >>> import plait_core as pc
        >>> pc.asarray([1.0, 2.0], dtype=pc.float64)
        tensor([1., 2.], dtype=float64)
    """
    if copy:
        result = tensor(obj, dtype=dtype, device=device)
    else:
        shared = is_tensor(obj) or hasattr(obj, "__dlpack__")
        # numbers are converted to the wanted dtype at once, so that they are rounded once
        base = as_tensor(obj) if shared else as_tensor(obj, dtype=dtype, device=device)
        result = as_tensor(base, dtype=dtype, device=device)
        if copy is False and not (shared and result.data_ptr() == base.data_ptr()):
            raise ValueError(
                "asarray: `copy=False` needs an array of the wanted dtype and device, got "
                f"{type(obj).__name__}"
            )
        if is_tensor(obj) and not requires_grad:
            result = result.detach()
    return result.requires_grad_() if requires_grad else result


def frombuffer(
    buffer: Any,
    *,
    dtype: Any,
    count: int = -1,
    offset: int = 0,
    requires_grad: bool = False,
) -> Tensor:
    """Make a one-dimensional tensor on the memory of a bytes-like object, without a copy.

    Args:
        buffer: an object with the buffer protocol; the tensor is read-only if the buffer is.
        dtype: the dtype of the elements in the buffer.
        count: number of elements; -1: as many as there are.
        offset: number of bytes to skip at the beginning.
        requires_grad: whether operators on the result are recorded.

    Raises:
        ValueError: if the bytes don't hold that many elements.

    Example:
        >>> import plait_core as pc
        >>> pc.frombuffer(b"\\x01\\x02", dtype=pc.uint8)
        tensor([1, 2], dtype=uint8)
    """
    np = import_module("numpy")

    kind = _binding.dtype(dtype)
    result = from_numpy(np.frombuffer(buffer, dtype=kind.dtype, count=count, offset=offset))
    return result.requires_grad_() if requires_grad else result


def new_tensor(
    self: Tensor,
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Make a tensor from data, as `tensor` does; `dtype` and `device` None are those of `self`.

    Args:
        data: a number, nested sequences of numbers, or an array; always copied.
        dtype: the dtype of the result.
        device: where the result lies.
        requires_grad: whether operators on the result are recorded.

    Raises:
        ValueError, TypeError, OverflowError: what `tensor` raises.

    Example:
        >>> import plait_core as pc
        >>> pc.zeros(1, dtype=pc.float64).new_tensor([1, 2])
        tensor([1., 2.], dtype=float64)
    """
    return tensor(
        data,
        dtype=self.dtype if dtype is None else dtype,
        device=self.device if device is None else device,
        requires_grad=requires_grad,
    )


METHODS: dict[str, Callable[..., Any]] = {"new_tensor": new_tensor}
