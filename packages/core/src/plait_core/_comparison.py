"""Comparisons of tensors that return a Python bool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_abi import ShapeError
from plait_abi.imports import import_module
from plait_core._core import Tensor, is_tensor

__all__ = ["allclose", "equal"]


def _values(name: str, argument: str, tensor: Tensor) -> Any:
    if not is_tensor(tensor):
        raise TypeError(f"{name}: `{argument}` must be a Tensor, got {type(tensor).__name__}")
    data = tensor.data.to(device="cpu")
    return (data.float() if data.dtype.name == "bfloat16" else data).numpy()


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
    np = import_module("numpy")

    a, b = _values("allclose", "input", input), _values("allclose", "other", other)
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        raise ShapeError(f"allclose: shapes must broadcast, got {a.shape} and {b.shape}") from None
    return bool(np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan))


def equal(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape and equal elements.

    Example:
        >>> import plait_core as pc
        >>> pc.equal(pc.tensor([1, 2]), pc.tensor([1, 2]))
        True
    """
    np = import_module("numpy")

    return bool(np.array_equal(_values("equal", "input", input), _values("equal", "other", other)))


METHODS: dict[str, Callable[..., Any]] = {"allclose": allclose, "equal": equal}
