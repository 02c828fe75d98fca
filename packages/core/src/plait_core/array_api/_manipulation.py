"""Manipulation functions of the standard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plait_abi import ShapeError
from plait_core._core import Tensor
from plait_core.array_api._data_types import result_type
from plait_core.array_api._operators import axes_of, call, several, wrap_axis

__all__ = [
    "broadcast_arrays",
    "broadcast_to",
    "concat",
    "expand_dims",
    "flip",
    "moveaxis",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "tile",
    "unstack",
]


def _common_shape(arrays: Sequence[Tensor]) -> tuple[int, ...]:
    ndim = max((each.ndim for each in arrays), default=0)
    shape = [1] * ndim
    for each in arrays:
        for i, size in enumerate(each.shape, ndim - each.ndim):
            if size != 1 and shape[i] not in (1, size):
                shapes = ", ".join(str(tuple(each.shape)) for each in arrays)
                raise ShapeError(f"broadcast_arrays: shapes must broadcast, got {shapes}")
            shape[i] = size if size != 1 else shape[i]
    return tuple(shape)


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """Return views of one shape that all arrays broadcast to."""
    shape = _common_shape(arrays)
    return [each.expand(shape) for each in arrays]


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """Return a view of the given shape."""
    return call("broadcast_to", x, tuple(shape))


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Concatenate arrays along an axis; None: the flattened arrays."""
    parts = _of_one_dtype(arrays)
    if axis is None:
        return call("cat", [each.reshape(-1) for each in parts], 0)
    return call("cat", parts, axis)


def expand_dims(x: Tensor, /, axis: int) -> Tensor:
    """Return a view with one more axis, of size 1."""
    return x.unsqueeze(wrap_axis("expand_dims", axis, x.ndim + 1))


def flip(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Return the elements in reverse order along the axes; None: all."""
    return call("flip", x, axes_of("flip", axis, x.ndim))


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    """Return a view with axes moved to other positions."""
    return call("movedim", x, source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """Return a view with the axes in another order."""
    return x.permute(tuple(axes))


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Repeat each element a number of times; `axis` None: of the flattened array."""
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = wrap_axis("repeat", axis, x.ndim)
    size = x.shape[axis]
    counts = [int(repeats)] * size if isinstance(repeats, int) else repeats.reshape(-1).tolist()
    counts = counts * size if len(counts) == 1 and size != 1 else counts
    if len(counts) != size:
        raise ShapeError(f"repeat: `repeats` must have {size} entries or one, got {len(counts)}")
    if any(count < 0 for count in counts):
        raise ValueError("repeat: `repeats` must not hold negative numbers")
    index = [i for i, count in enumerate(counts) for _ in range(count)]
    from plait_core import _creation

    rows = _creation.tensor(index, dtype="int64", device=x.device)
    return call("index_select", x, axis, rows)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """Return the elements in another shape; a view where that is possible and `copy` is not True.

    Raises:
        ValueError: if ``copy=False`` cannot be kept.
    """
    if copy:
        return x.clone().reshape(tuple(shape))
    result = x.reshape(tuple(shape))
    if copy is False and x.numel() and result.data_ptr() != x.data_ptr():
        raise ValueError(
            f"reshape: `copy=False` is not possible for shape {tuple(x.shape)} with strides "
            f"{x.stride()} and the new shape {tuple(shape)}"
        )
    return result


def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    """Return the elements shifted along the axes; those that leave at the end enter at the
    beginning.
    """
    if axis is None:
        return call("roll", x.reshape(-1), shift, 0).reshape(tuple(x.shape))
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    shifts = (shift,) * len(axes) if isinstance(shift, int) else tuple(shift)
    for each, by in zip(axes, shifts, strict=True):
        x = call("roll", x, by, wrap_axis("roll", each, x.ndim)) if x.ndim else x
    return x


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """Return a view without the axes, which must have size 1.

    Raises:
        ShapeError: if one has another size.
    """
    axes = axes_of("squeeze", axis, x.ndim)
    for each in axes:
        if x.shape[each] != 1:
            raise ShapeError(f"squeeze: axis {each} must have size 1, got shape {tuple(x.shape)}")
    return x.reshape(tuple(size for i, size in enumerate(x.shape) if i not in axes))


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Join arrays along a new axis."""
    return call("stack", list(arrays), axis)  # which finds the common dtype


def _of_one_dtype(arrays: Sequence[Tensor]) -> list[Tensor]:
    if len({each.dtype for each in arrays}) == 1:
        return list(arrays)
    dtype = result_type(*arrays)
    return [each.to(dtype) for each in arrays]


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """Return the array repeated along its axes."""
    return call("tile", x, tuple(repetitions))


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Return the views along an axis."""
    return several("unbind", x, wrap_axis("unstack", axis, x.ndim))
