"""Tensors from existing data: numbers, arrays, buffers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plait_core._core as _core
from plait_abi import binding
from plait_abi.frames import warn
from plait_core._core import Tensor, from_dlpack, from_numpy, is_tensor


def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Make a tensor from a number, nested sequences of numbers, or an array; always a copy.

    Args:
        data: Python numbers become bool, int64, the default dtype (float32) or complex64; arrays
            keep their dtype.
        dtype: the dtype of the result.
        device: the device of the result; None is that of a tensor or of an array on an
            accelerator, else the default device.
        requires_grad: whether operators on the result are recorded.
        pin_memory: whether the result, which is on the CPU, is in page-locked memory, as
            `Tensor.pin_memory` gives it.

    Raises:
        ValueError: if nested sequences differ in length.
        RuntimeError: if the result is to be pinned and is not on the CPU.
        TypeError: if a tensor cannot be made of `data`.
        OverflowError: if a number does not fit the dtype.

    Example:
        >>> import plait_core as pc
        >>> pc.tensor([[1, 2], [3, 4]])
        tensor([[1, 2],
                [3, 4]])
    """
    if is_tensor(data):
        warn_of_copy("plait.tensor")
    return _made(data, dtype, device, requires_grad, pin_memory)


def warn_of_copy(name: str) -> None:
    """Warn that a copy of a tensor has a method of its own."""
    warn(
        "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() "
        f"or sourceTensor.detach().clone().requires_grad_(True), rather than {name}(sourceTensor)."
    )


def _made(
    data: Any, dtype: Any, device: Any, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    if not pin_memory:
        return _core.tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)
    result: Tensor = _core.tensor(data, dtype=dtype, device=device).pin_memory()
    return result.requires_grad_(requires_grad)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Make a tensor from data without a copy where that is possible.

    A tensor of the wanted dtype and device is returned as it is, a NumPy array or an array with
    ``__dlpack__`` or ``__cuda_array_interface__`` shares its memory; all else goes through
    `tensor`. `device` None is that of a tensor or of an array on an accelerator, else the default
    device.

    Args:
        data: Values: a tensor, a NumPy array, nested lists of numbers, or a number.
        dtype: The dtype; None: that of the data.
        device: The device; None: the default one, or that of the data.

    Example:
        >>> import numpy as np, plait_core as pc
        >>> a = np.zeros(2, np.float32)
        >>> t = pc.as_tensor(a)
        >>> a[0] = 5
        >>> t
        tensor([5., 0.])
    """
    shared = _shared(data)
    if shared is None:
        return _made(data, dtype, device)
    return _moved(shared, data, dtype, device)


def _shared(data: Any) -> Tensor | None:
    """Return a tensor on the memory of a tensor or of an array; None for other data."""
    if is_tensor(data):
        result: Tensor = data
        return result
    # `ndim` first: NumPy's numbers make their interface anew each time, and arrays do when they are
    # asked, but not their class
    if getattr(data, "ndim", 0) and (
        hasattr(type(data), "__array_interface__") or hasattr(data, "__array_interface__")
    ):
        return from_numpy(data)
    if hasattr(data, "__dlpack__"):
        return from_dlpack(data)
    if not hasattr(data, "__cuda_array_interface__"):
        return None
    from plait_core._cuda_arrays import from_cuda_array

    return from_cuda_array(data)


def _moved(shared: Tensor, data: Any, dtype: Any, device: Any) -> Tensor:
    if device is None and shared is not data:
        here = shared.device
        if here.type == "cpu":
            device = binding.get_default_device()
            if device == here:
                device = None
    if (dtype is None or dtype == shared.dtype) and (device is None or device == shared.device):
        return shared
    return shared.to(dtype) if device is None else shared.to(device=device, dtype=dtype)


def asarray(
    obj: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """Make a tensor from anything, sharing memory or copying as requested.

    Args:
        obj: a tensor, an array, bytes or another object with the buffer protocol, or data for
            `tensor`. Of a buffer that is no array the bytes are read as elements of `dtype`, as
            `frombuffer` does and as in PyTorch, whatever its own type is.
        dtype: the dtype of the result; None: that of the array, or the default dtype.
        device: where the result lies.
        copy: True always copies, False never (an error where it would have to), None if needed.
        requires_grad: whether operators on the result are recorded; False: a tensor's history is
            left behind; None: the result of a tensor has its history, others have none.

    Raises:
        ValueError: if ``copy=False`` cannot be kept.

    Example:
        >>> import plait_core as pc
        >>> pc.asarray([1.0, 2.0], dtype=pc.float64)
        tensor([1., 2.], dtype=float64)
    """
    if _is_bare_buffer(obj):
        kind = dtype or binding.dtype(_core.get_default_dtype())
        obj = _of_elements(*_elements(obj, kind)) if copy else frombuffer(obj, dtype=kind)
    if copy and is_tensor(obj):
        obj = obj.clone()
        result = _moved(obj, obj, dtype, device)
    elif copy:
        result = _made(obj, dtype, device)
    else:
        shared = _shared(obj)
        # numbers are converted to the wanted dtype at once, so that they are rounded once
        result = _made(obj, dtype, device) if shared is None else _moved(shared, obj, dtype, device)
        if copy is False and (shared is None or result.data_ptr() != shared.data_ptr()):
            raise binding.ArgumentError(
                "asarray: `copy=False` needs an array of the wanted dtype and device, got "
                f"{type(obj).__name__}"
            )
    if requires_grad is False and result.requires_grad:
        result = result.detach()
    return result.requires_grad_() if requires_grad else result


def _is_bare_buffer(obj: Any) -> bool:
    """Whether an object has the buffer protocol and is no array."""
    if is_tensor(obj) or isinstance(obj, (int, float, complex, list, tuple)):
        return False
    if hasattr(obj, "__array_interface__") or hasattr(obj, "__dlpack__"):
        return False
    try:
        memoryview(obj)
    except TypeError:
        return False
    return True


def frombuffer(
    buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False
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
        >>> pc.frombuffer(bytearray(b"\\x01\\x02"), dtype=pc.uint8)
        tensor([1, 2], dtype=uint8)
    """
    array, kind = _elements(buffer, dtype, count, offset)
    if not array.flags.writeable:
        warn(
            "The given buffer is not writable: the tensor on its memory is read-only, and writes "
            "to it are errors; bytearray(buffer) makes one that is writable"
        )
    result = _of_elements(array, kind)
    return result.requires_grad_() if requires_grad else result


def _elements(buffer: Any, dtype: Any, count: int = -1, offset: int = 0) -> tuple[Any, Any]:
    """Return the elements of a buffer as an array, and their dtype."""
    import numpy as np

    kind = binding.dtype(dtype)
    # NumPy has no bfloat16 and no float8; their bits are read as integers
    is_bits = kind.name == "bfloat16" or kind.name.startswith("float8")
    of_numpy = f"u{kind.itemsize}" if is_bits else kind.dtype
    return np.frombuffer(buffer, dtype=of_numpy, count=count, offset=offset), kind


def _of_elements(array: Any, kind: Any) -> Tensor:
    result = _core._share_array(array)
    return result if result.dtype == kind else result.view(kind)


def new_tensor(
    self: Tensor,
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Make a tensor from data, as `tensor` does; `dtype` and `device` None are those of `self`.

    Args:
        data: a number, nested sequences of numbers, or an array; always copied.
        dtype: the dtype of the result.
        device: where the result lies.
        requires_grad: whether operators on the result are recorded.
        pin_memory: whether the result is in page-locked memory.

    Raises:
        ValueError, TypeError, OverflowError, RuntimeError: what `tensor` raises.

    Example:
        >>> import plait_core as pc
        >>> pc.zeros(1, dtype=pc.float64).new_tensor([1, 2])
        tensor([1., 2.], dtype=float64)
    """
    if is_tensor(data):
        warn_of_copy("tensor.new_tensor")
    return _made(
        data,
        self.dtype if dtype is None else dtype,
        self.device if device is None else device,
        requires_grad,
        pin_memory,
    )


METHODS: dict[str, Callable[..., Any]] = {"new_tensor": new_tensor}
