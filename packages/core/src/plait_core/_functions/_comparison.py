"""Comparisons of tensors that return a Python bool."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from plait_abi import ShapeError
from plait_core._core import Tensor, is_tensor

BLOCK = 1 << 18  # elements that are compared at a time


def _check_tensor(name: str, argument: str, tensor: Tensor) -> None:
    if not is_tensor(tensor):
        raise TypeError(f"{name}: `{argument}` must be a Tensor, got {type(tensor).__name__}")


def _array(data: Tensor) -> Any:
    data = data.to(device="cpu")
    is_widened = data.dtype.name == "bfloat16" or data.dtype.name.startswith("float8")
    return (data.float() if is_widened else data).numpy()


def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Return whether ``|input - other| <= atol + rtol * |other|`` holds for all elements.

    Args:
        input, other: tensors whose shapes broadcast.
        rtol, atol: relative and absolute tolerance.
        equal_nan: whether NaN equals NaN.

    Raises:
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> import plait_core as pc
        >>> pc.allclose(pc.tensor([1.0]), pc.tensor([1.0 + 1e-7]))
        True
    """
    import numpy as np

    for name, tensor in (("input", input), ("other", other)):
        _check_tensor("allclose", name, tensor)
    try:
        np.broadcast_shapes(input.shape, other.shape)
    except ValueError:
        raise ShapeError(
            f"allclose: shapes must broadcast, got {tuple(input.shape)} and {tuple(other.shape)}"
        ) from None
    if _is_computed_there(input, other) and rtol >= 0 and atol >= 0:
        # the device may lack a kernel
        with contextlib.suppress(NotImplementedError):
            close = input.data.isclose(other.data, rtol, atol, equal_nan)
            return bool(close.all())
    a, b = _array(input.data), _array(other.data)
    return bool(np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan))


def _is_computed_there(a: Tensor, b: Tensor) -> bool:
    """Whether both are on one accelerator, which compares as NumPy does: no dtype is promoted."""
    return a.device == b.device and a.device.type not in ("cpu", "meta") and a.dtype == b.dtype


def equal(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape and equal elements.

    Args:
        input: The tensor.
        other: The second tensor.

    Example:
        >>> import plait_core as pc
        >>> pc.equal(pc.tensor([1, 2]), pc.tensor([1, 2]))
        True
    """
    import numpy as np

    for name, tensor in (("input", input), ("other", other)):
        _check_tensor("equal", name, tensor)
    if input.shape != other.shape:
        return False
    if _is_computed_there(input, other):
        with contextlib.suppress(NotImplementedError):
            return bool((input.data == other.data).all())
    return all(np.array_equal(_array(a), _array(b)) for a, b in _blocks(input.data, other.data))


def _blocks(a: Tensor, b: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Cut two tensors of one shape into parts, so that their comparison needs little memory."""
    if a.numel() <= BLOCK:
        yield a, b
    elif a.numel() // a.shape[0] > BLOCK:
        for i in range(a.shape[0]):
            yield from _blocks(a.select(0, i), b.select(0, i))
    else:
        rows = BLOCK // (a.numel() // a.shape[0])
        for i in range(0, a.shape[0], rows):
            size = min(rows, a.shape[0] - i)
            yield a.narrow(0, i, size), b.narrow(0, i, size)


METHODS: dict[str, Callable[..., Any]] = {"allclose": allclose, "equal": equal}
