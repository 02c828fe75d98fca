"""The numerical gradient of samples on a grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plait_core._core as _core
from plait_abi import ArgumentError, OutOfRangeError, ShapeError, binding
from plait_core._core import Tensor, is_tensor


def gradient(
    input: Tensor, *, spacing: Any = 1, dim: int | Sequence[int] | None = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """Estimate the derivatives of samples along dimensions, by second-order differences.

    Inside, the result is the slope of the parabola through a sample and its two neighbours. At the
    ends it is the slope of the line through the first two samples (``edge_order=1``) or of the
    parabola through the first three.

    Args:
        input: samples of a function on a grid.
        spacing: the distance of samples, a number or one for each dimension, or the coordinates, a
            sequence of vectors; None: 1.
        dim: the dimensions; None: all.
        edge_order: 1 or 2.

    Returns:
        A tensor of the shape of `input` for each dimension.

    Raises:
        TypeError: if `input` is no tensor.
        ValueError: for another `edge_order`, a dimension given twice, or a number of spacings that
            is not the number of dimensions.
        ShapeError: if there are fewer than ``edge_order + 1`` samples along a dimension, or if the
            numbers of coordinates and samples differ.

    Example:
        >>> import plait_core as pc
        >>> pc.gradient(pc.tensor([1.0, 4.0, 9.0, 16.0]))
        (tensor([3., 4., 6., 7.]),)
    """
    if not is_tensor(input):
        raise TypeError(f"gradient: `input` must be a Tensor, got {type(input).__name__}")
    if edge_order not in (1, 2):
        raise ArgumentError(f"gradient: `edge_order` must be 1 or 2, got {edge_order!r}")
    dims = _dims(input, dim)
    steps = _spacings(spacing, len(dims))
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        input = input.to(_core.get_default_dtype())
    return tuple(
        _along(input, axis, step, edge_order) for axis, step in zip(dims, steps, strict=True)
    )


def _dims(input: Tensor, dim: int | Sequence[int] | None) -> list[int]:
    listed = range(input.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    dims = []
    for each in listed:
        if not -input.ndim <= each < input.ndim:
            raise OutOfRangeError(
                f"gradient: `dim` must be in [{-input.ndim}, {input.ndim - 1}], got {each}. "
                "Dimension out of range"
            )
        dims.append(each % input.ndim)
    if len(set(dims)) != len(dims):
        raise ArgumentError(f"gradient: `dim` must not name a dimension twice, got {dim}")
    return dims


def _spacings(spacing: Any, count: int) -> list[Any]:
    if spacing is None:
        spacing = 1
    if isinstance(spacing, (int, float, complex)):
        return [spacing] * count
    if is_tensor(spacing):
        spacing = [spacing] if spacing.ndim else [spacing.item()] * count
    steps = list(spacing)
    if len(steps) != count:
        raise ArgumentError(
            f"gradient: `spacing` must hold one for each of {count} dimensions, got {len(steps)}"
        )
    return steps


def _along(x: Tensor, axis: int, spacing: Any, edge_order: int) -> Tensor:
    n = x.shape[axis]
    if n < edge_order + 1:
        raise ShapeError(
            f"gradient: at least {edge_order + 1} samples are required along dimension {axis}, got "
            f"shape {tuple(x.shape)}"
        )
    if is_tensor(spacing) and spacing.ndim:
        if tuple(spacing.shape) != (n,):
            raise ShapeError(
                f"gradient: `spacing` must hold {n} coordinates for dimension {axis}, got shape "
                f"{tuple(spacing.shape)}"
            )
        if not (spacing.dtype.is_floating_point or spacing.dtype.is_complex):
            spacing = spacing.to(
                _core.get_default_dtype()
            )  # differences of unsigned integers wrap around
        widths = (spacing[1:] - spacing[:-1]).reshape([-1] + [1] * (x.ndim - 1 - axis))
    else:
        widths = binding.operator("full")(
            [n - 1] + [1] * (x.ndim - 1 - axis), spacing, dtype=x.dtype, device=x.device
        )
    slopes = (x.narrow(axis, 1, n - 1) - x.narrow(axis, 0, n - 1)) / widths
    first, last = slopes.narrow(axis, 0, 1), slopes.narrow(axis, n - 2, 1)
    if n > 2:
        # dimension 0 of `widths` is `axis` of `x`
        left, right = widths[:-1], widths[1:]
        before, after = slopes.narrow(axis, 0, n - 2), slopes.narrow(axis, 1, n - 2)
        inner = (before * right + after * left) / (left + right)
        if edge_order == 2:
            first = first - (inner.narrow(axis, 0, 1) - first)
            last = last + (last - inner.narrow(axis, n - 3, 1))
        parts = [first, inner, last]
    else:
        parts = [first, last]
    return binding.operator("cat")(parts, axis)  # type: ignore[no-any-return]
