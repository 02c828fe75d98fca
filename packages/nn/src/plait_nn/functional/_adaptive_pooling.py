"""Adaptive max pooling, and the inverse of max pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plait_core as pc
from plait_abi import ArgumentError
from plait_core import Tensor
from plait_nn._all_samples import all_samples
from plait_nn.functional._sizes import Sizes, reserve, sizes_of

__all__ = [
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]

Output = int | Sequence[int | None] | None


def _adaptive(operator: str, dims: int, input: Tensor, output: Output, indices: bool) -> Any:
    """Reduce one dimension after the other, with the index of each maximum."""
    many = isinstance(output, (tuple, list))
    sizes: tuple[Any, ...] = tuple(output) if many else (output,) * dims  # type: ignore[arg-type]
    if len(sizes) != dims or input.ndim not in (dims + 1, dims + 2):
        raise pc.ShapeError(
            f"{operator}: `input` must have {dims + 1} or {dims + 2} dimensions and `output_size` "
            f"{dims}; got shape {tuple(input.shape)} and {sizes}"
        )
    spatial = tuple(input.shape[-dims:])
    least = math.prod(
        size if count is None else max(count, 0) for size, count in zip(spatial, sizes, strict=True)
    )
    reserve(least * math.prod(input.shape[:-dims]) * (input.element_size() + 8), input)
    positions = pc.arange(math.prod(spatial), device=input.device).reshape(spatial)
    values, at = input, positions.expand(tuple(input.shape))
    for dim in reversed(range(-dims, 0)):
        size, count = input.shape[dim], sizes[dim]
        if count is None:
            continue
        index, longest = _windows(operator, size, count, values)
        axis = values.ndim + dim
        shape = (*values.shape[:axis], count, longest, *values.shape[axis + 1 :])
        windows = values.index_select(axis, index).reshape(shape)
        best, where = windows.max(axis + 1, keepdim=True)
        at = at.index_select(axis, index).reshape(shape).gather(axis + 1, where).squeeze(axis + 1)
        values = best.squeeze(axis + 1)
    return (values, at) if indices else values


def _windows(operator: str, size: int, count: int, values: Tensor) -> tuple[Tensor, int]:
    """Return the indices of ``count`` windows over ``size``, in order, and their length.

    Shorter windows repeat their last element. The memory for the computation is reserved first.
    """
    if count < 0 or (count > 0 and size == 0):
        raise ArgumentError(
            f"{operator}: `output_size` must be at least 0, and 0 for an empty dimension; got "
            f"{count} for `input` of shape {tuple(values.shape)}"
        )
    longest = max(1, -(-size // count) + (size % count != 0)) if count else 1
    others = values.numel() // size if size else 0
    reserve(count * longest * (others * (values.element_size() + 8) + 32), values)
    at = pc.arange(count, device=values.device)
    starts = (at * size).div(max(count, 1), rounding_mode="floor")
    ends = ((at + 1) * size + count - 1).div(max(count, 1), rounding_mode="floor")
    inside = starts.unsqueeze(1) + pc.arange(longest, device=values.device)
    return inside.minimum((ends - 1).unsqueeze(1)).reshape((-1,)), longest


def adaptive_max_pool1d(input: Tensor, output_size: Output, return_indices: bool = False) -> Any:
    """Take maxima of sequences (N, C, L) or (C, L) over as many windows as ``output_size``.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.adaptive_max_pool1d(pc.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
        tensor([[3., 2.]])
    """
    return _adaptive("adaptive_max_pool1d", 1, input, output_size, return_indices)


def adaptive_max_pool2d(input: Tensor, output_size: Output, return_indices: bool = False) -> Any:
    """Take maxima of images over as many windows as ``output_size``; None keeps a dimension.

    With ``return_indices`` also return the index of each maximum in H x W.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.adaptive_max_pool2d(pc.arange(12.0).reshape(1, 3, 4), (1, 2))
        tensor([[[ 9., 11.]]])
    """
    return _adaptive("adaptive_max_pool2d", 2, input, output_size, return_indices)


def adaptive_max_pool3d(input: Tensor, output_size: Output, return_indices: bool = False) -> Any:
    """Take maxima of volumes over as many windows as ``output_size``; None keeps a dimension.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.adaptive_max_pool3d(pc.arange(8.0).reshape(1, 2, 2, 2), (2, 1, 1)).flatten()
        tensor([3., 7.])
    """
    return _adaptive("adaptive_max_pool3d", 3, input, output_size, return_indices)


def _unpool(
    dims: int,
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    output_size: Sequence[int] | None,
) -> Tensor:
    operator = f"max_unpool{dims}d"
    if tuple(input.shape) != tuple(indices.shape) or input.ndim not in (dims + 1, dims + 2):
        raise pc.ShapeError(
            f"{operator}: `input` must have {dims + 1} or {dims + 2} dimensions and `indices` its "
            f"shape; got shapes {tuple(input.shape)} and {tuple(indices.shape)}"
        )
    kernel = sizes_of(kernel_size, dims, "kernel_size", operator)
    step = kernel if stride is None else sizes_of(stride, dims, "stride", operator)
    side = sizes_of(padding, dims, "padding", operator)
    spatial = tuple(input.shape[-dims:])
    size = [(n - 1) * s - 2 * p + k for n, s, p, k in zip(spatial, step, side, kernel, strict=True)]
    if output_size is not None:
        sizes = list(output_size)[-dims:]
        if any(abs(g - d) >= s for g, d, s in zip(sizes, size, step, strict=True)):
            raise ArgumentError(
                f"{operator}: `output_size` must differ from {tuple(size)} by less than the stride "
                f"{step}; got {tuple(output_size)}"
            )
        size = sizes
    lead = tuple(input.shape[:-dims])
    total = math.prod(size)
    flat = indices.reshape((*lead, math.prod(spatial)))
    values = all_samples(indices)
    readable = values.numel() and values.is_cpu  # the host would wait for another device
    if readable and not 0 <= int(values.min()) <= int(values.max()) < total:
        raise ArgumentError(
            f"{operator}: `indices` must be in [0, {total - 1}] for size {tuple(size)}"
        )
    blank = pc.zeros((*lead, total), dtype=input.dtype, device=input.device)
    return blank.scatter(len(lead), flat, input.reshape(tuple(flat.shape))).reshape((*lead, *size))


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Put maxima back at their indices, with zeros elsewhere; the inverse of `max_pool1d`.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> x = pc.tensor([[1.0, 3.0, 2.0, 0.0]])
        >>> F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2)
        tensor([[0., 3., 2., 0.]])
    """
    return _unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Put maxima back at their indices, with zeros elsewhere.

    Args:
        input: The result of `max_pool2d`, (N, C, H, W) or (C, H, W).
        indices: The indices that `max_pool2d` returned.
        kernel_size: The window of `max_pool2d`.
        stride: The stride of `max_pool2d`; None is ``kernel_size``.
        padding: The padding of `max_pool2d`.
        output_size: The size of the input of `max_pool2d`, if several sizes are possible.

    Raises:
        ShapeError: The shapes don't fit together.
        ValueError: An index or ``output_size`` is out of range.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> x = pc.tensor([[[1.0, 3.0], [2.0, 0.0]]])
        >>> F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)
        tensor([[[0., 3.],
                 [0., 0.]]])
    """
    return _unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Put maxima back at their indices, with zeros elsewhere; the inverse of `max_pool3d`.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> x = pc.arange(8.0).reshape(1, 1, 2, 2, 2)
        >>> F.max_unpool3d(*F.max_pool3d(x, 2, return_indices=True), 2).sum()
        tensor(7.)
    """
    return _unpool(3, input, indices, kernel_size, stride, padding, output_size)
