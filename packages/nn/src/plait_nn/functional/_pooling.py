"""Pooling: means, maxima and norms over windows of lines, images and volumes."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import plait_core as pc
from plait_abi import ArgumentError
from plait_abi.arguments import passes_on
from plait_abi.binding import unbound
from plait_core import Tensor
from plait_nn import _operators as operators
from plait_nn._all_samples import holds_for_all
from plait_nn.functional._checks import Sizes, require_floating, reserve, sizes_of
from plait_nn.functional._package import F

_F = TypeVar("_F", bound=Callable[..., Any])


@passes_on
def max_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | tuple[()] | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Take the maximum of every window.

    Args:
        input: Shape (N, C, H, W) or (C, H, W).
        kernel_size: The window, one int or one for each dimension.
        stride: Distance of the windows; None is ``kernel_size``.
        padding: Minus infinity on every side, at most half the window.
        dilation: Distance of a window's elements.
        ceil_mode: Round the output size up instead of down.
        return_indices: Also return the index of each maximum in H x W.

    Returns:
        Shape (N, C, H', W'), or with ``return_indices`` a pair of such tensors.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.functional.max_pool2d(pc.arange(16.0).reshape(1, 1, 4, 4), 2).tolist()
        [[[[5.0, 7.0], [13.0, 15.0]]]]
    """
    if isinstance(stride, (tuple, list)) and not stride:
        stride = None
    if return_indices:
        return operators.max_pool2d_with_indices(
            input, kernel_size, stride, padding, dilation, ceil_mode
        )
    return pc.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)


@unbound
def avg_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | tuple[()] | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Take the mean of every window.

    Args:
        input: Shape (N, C, H, W) or (C, H, W).
        kernel_size: The window, one int or one for each dimension.
        stride: Distance of the windows; None is ``kernel_size``.
        padding: Zeros on every side, at most half the window.
        ceil_mode: Round the output size up instead of down.
        count_include_pad: Whether the zeros of the padding count in the mean.
        divisor_override: Divide by this instead of the number of elements.

    Raises:
        DTypeError: The input has an integer dtype other than int64, whose means lose their
            fractions, as in PyTorch.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.functional.avg_pool2d(pc.arange(16.0).reshape(1, 1, 4, 4), 2).tolist()
        [[[[2.5, 4.5], [10.5, 12.5]]]]
    """
    if isinstance(stride, (tuple, list)) and not stride:
        stride = None
    if divisor_override == 0:
        raise ArgumentError("avg_pool2d: `divisor_override` must not be 0")
    if not (input.is_floating_point() or input.is_complex()):
        require_mean("avg_pool2d", input)
        return _integer_means(
            input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
        )
    if divisor_override is None:
        return operators.avg_pool2d(
            input, kernel_size, stride, padding, ceil_mode, count_include_pad
        )
    return _sums(input, kernel_size, stride, padding, ceil_mode) / divisor_override


def require_mean(function: str, input: Tensor) -> None:
    """Raise for integers that PyTorch has no means of: all but int64."""
    if input.dtype != pc.int64:
        raise pc.DTypeError(
            f"{function}: `input` must be a floating-point dtype or int64; got {input.dtype.name}"
        )


def _integer_means(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    """Average integers: sums in float64, quotients without their fractions."""
    options = (kernel_size, stride, padding, ceil_mode)
    divisor: Any = divisor_override
    if divisor is None:
        ones = pc.ones_like(input, dtype=pc.float64)
        shares = operators.avg_pool2d(ones, *options, count_include_pad)
        divisor = (_sums(ones, *options) / shares).round()
    sums = _sums(input.to(pc.float64), *options).round()
    return pc.div(sums, divisor, rounding_mode="trunc").to(input.dtype)


def _sums(
    input: Tensor, kernel_size: Sizes, stride: Sizes | None, padding: Sizes, ceil_mode: bool
) -> Tensor:
    """Return the sum of every window."""
    means = operators.avg_pool2d(input, kernel_size, stride, padding, ceil_mode, True)
    kernel = sizes_of(kernel_size, 2, "kernel_size", "avg_pool2d")
    step = kernel if stride is None else sizes_of(stride, 2, "stride", "avg_pool2d")
    border = sizes_of(padding, 2, "padding", "avg_pool2d")
    # the divisor of the means: the window's size, without the part beyond the image that ceil_mode
    # allows
    counts = [
        [
            min(i * step[d] + kernel[d], input.shape[d - 2] + 2 * border[d]) - i * step[d]
            for i in range(means.shape[d - 2])
        ]
        for d in (0, 1)
    ]
    rows, columns = (pc.tensor(c, dtype=input.dtype, device=input.device) for c in counts)
    return means * (rows.unsqueeze(1) * columns)


def adaptive_avg_pool2d(
    input: Tensor, output_size: int | tuple[int | None, int | None] | None
) -> Tensor:
    """Average over as many windows as make ``output_size``; None keeps a dimension.

    Args:
        input: Shape (N, C, ...) or (C, ...).
        output_size: Size of the result.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.functional.adaptive_avg_pool2d(pc.ones(1, 3, 8, 6), 2).shape)
        (1, 3, 2, 2)
    """
    sizes = output_size if isinstance(output_size, (tuple, list)) else (output_size, output_size)
    if len(sizes) != 2:
        raise ArgumentError(
            f"adaptive_avg_pool2d: `output_size` must be an int or two; got {tuple(sizes)}"
        )
    _check("adaptive_avg_pool2d", 2, input)
    size = tuple(s if w is None else w for w, s in zip(sizes, input.shape[-2:], strict=True))
    return operators.adaptive_avg_pool2d(input, size)


def _check(operator: str, dims: int, input: Tensor) -> None:
    if input.ndim not in (dims + 1, dims + 2):
        spatial = {1: "L", 2: "H, W", 3: "D, H, W"}[dims]
        raise pc.ShapeError(
            f"{operator}: `input` must be (N, C, {spatial}) or (C, {spatial}); "
            f"got shape {tuple(input.shape)}"
        )


def _windows(
    operator: str, dims: int, kernel_size: Sizes, stride: Sizes | None, padding: Sizes
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return the windows' size, their distance and the padding on every side."""
    kernel = sizes_of(kernel_size, dims, "kernel_size", operator)
    step = kernel
    if isinstance(stride, int) or stride:  # None and () mean the windows' size
        step = sizes_of(stride, dims, "stride", operator)
    return kernel, step, sizes_of(padding, dims, "padding", operator)


def max_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Take the maximum of every window of sequences (N, C, L) or (C, L).

    Arguments and results are those of `max_pool2d`, in one dimension.

    Args:
        input: Shape (N, C, ...) or (C, ...).
        kernel_size: Size of the windows, one int or one for each dimension.
        stride: Distance of the windows; None: `kernel_size`.
        padding: Elements on every side of each dimension.
        dilation: Distance of a window's elements.
        ceil_mode: Whether a window that leaves the input at its end gives an element too.
        return_indices: Whether to return the places of the maxima too, for unpooling.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.max_pool1d(pc.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
        tensor([[3., 2.]])
    """
    _check("max_pool1d", 1, input)
    (size,), (step,), (side,) = _windows("max_pool1d", 1, kernel_size, stride, padding)
    (spread,) = sizes_of(dilation, 1, "dilation", "max_pool1d")
    result = max_pool2d(
        input.unsqueeze(-2), (1, size), (1, step), (0, side), (1, spread), ceil_mode, return_indices
    )
    return tuple(m.squeeze(-2) for m in result) if return_indices else result.squeeze(-2)


def max_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Take the maximum of every window of volumes (N, C, D, H, W) or (C, D, H, W).

    Arguments and results are those of `max_pool2d`, in three dimensions.

    Args:
        input: Shape (N, C, ...) or (C, ...).
        kernel_size: Size of the windows, one int or one for each dimension.
        stride: Distance of the windows; None: `kernel_size`.
        padding: Elements on every side of each dimension.
        dilation: Distance of a window's elements.
        ceil_mode: Whether a window that leaves the input at its end gives an element too.
        return_indices: Whether to return the places of the maxima too, for unpooling.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.max_pool3d(pc.arange(8.0).reshape(1, 1, 2, 2, 2), 2).flatten()
        tensor([7.])
    """
    _check("max_pool3d", 3, input)
    kernel, step, side = _windows("max_pool3d", 3, kernel_size, stride, padding)
    spread = sizes_of(dilation, 3, "dilation", "max_pool3d")
    *lead, depth, height, width = input.shape
    rows = math.prod(lead)
    slices = input.reshape((rows, depth, height, width))
    flat, spatial = max_pool2d(slices, kernel[1:], step[1:], side[1:], spread[1:], ceil_mode, True)
    size = tuple(flat.shape[2:])
    columns = flat.reshape((rows, 1, depth, math.prod(size)))
    result, at = max_pool2d(
        columns, (kernel[0], 1), (step[0], 1), (side[0], 0), (spread[0], 1), ceil_mode, True
    )
    shape = (*lead, result.shape[2], *size)
    if not return_indices:
        return result.reshape(shape)
    # a column's index is d * (H' W') + column, for column `column` of slice d
    at = at.reshape((rows, at.shape[2] * at.shape[3]))
    within = spatial.reshape((rows, spatial.numel() // max(rows, 1))).gather(1, at.clamp(min=0))
    indices = at // max(math.prod(size), 1) * (height * width) + within
    indices = indices.masked_fill((at < 0) | (within < 0), -1)  # a window outside of the image
    return result.reshape(shape), indices.reshape(shape)


@unbound
def avg_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Take the mean of every window of sequences (N, C, L) or (C, L); see `avg_pool2d`.

    Args:
        input: Shape (N, C, ...) or (C, ...).
        kernel_size: Size of the windows, one int or one for each dimension.
        stride: Distance of the windows; None: `kernel_size`.
        padding: Elements on every side of each dimension.
        ceil_mode: Whether a window that leaves the input at its end gives an element too.
        count_include_pad: Whether the padding's zeros count in the mean.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.avg_pool1d(pc.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
        tensor([[2., 1.]])
    """
    _check("avg_pool1d", 1, input)
    (size,), (step,), (side,) = _windows("avg_pool1d", 1, kernel_size, stride, padding)
    rows = input.unsqueeze(-2)
    result = avg_pool2d(rows, (1, size), (1, step), (0, side), ceil_mode, count_include_pad)
    return result.squeeze(-2)


@unbound
def avg_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Take the mean of every window of volumes (N, C, D, H, W) or (C, D, H, W); see `avg_pool2d`.

    Args:
        input: Shape (N, C, ...) or (C, ...).
        kernel_size: Size of the windows, one int or one for each dimension.
        stride: Distance of the windows; None: `kernel_size`.
        padding: Elements on every side of each dimension.
        ceil_mode: Whether a window that leaves the input at its end gives an element too.
        count_include_pad: Whether the padding's zeros count in the mean.
        divisor_override: The divisor of each sum; None: the window's size.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.avg_pool3d(pc.arange(8.0).reshape(1, 1, 2, 2, 2), 2).flatten()
        tensor([3.5000])
    """
    _check("avg_pool3d", 3, input)
    if divisor_override == 0:
        raise ArgumentError("avg_pool3d: `divisor_override` must not be 0")
    if not (input.is_floating_point() or input.is_complex()):
        require_mean("avg_pool3d", input)
    if input.dtype == pc.int64 and not divisor_override:
        options = (kernel_size, stride, padding, ceil_mode)
        ones = pc.ones_like(input, dtype=pc.float64)
        counts = avg_pool3d(ones, *options, divisor_override=1)
        counts = (counts / avg_pool3d(ones, *options, count_include_pad)).round().to(input.dtype)
        sums = avg_pool3d(input, *options, divisor_override=1)
        return pc.div(sums, counts, rounding_mode="trunc")
    kernel, step, side = _windows("avg_pool3d", 3, kernel_size, stride, padding)
    *lead, depth, height, width = input.shape
    slices = input.reshape((math.prod(lead), depth, height, width))
    first = None if divisor_override is None else 1
    flat = avg_pool2d(slices, kernel[1:], step[1:], side[1:], ceil_mode, count_include_pad, first)
    size = tuple(flat.shape[2:])
    columns = flat.reshape((math.prod(lead), 1, depth, math.prod(size)))
    result = avg_pool2d(
        columns,
        (kernel[0], 1),
        (step[0], 1),
        (side[0], 0),
        ceil_mode,
        count_include_pad,
        divisor_override,
    )
    return result.reshape((*lead, result.shape[2], *size))


@unbound
def adaptive_avg_pool1d(input: Tensor, output_size: int | Sequence[int]) -> Tensor:
    """Average sequences (N, C, L) or (C, L) over as many windows as make ``output_size``.

    Args:
        input: Shape (N, C, ...) or (C, ...).
        output_size: Size of the result.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.adaptive_avg_pool1d(pc.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
        tensor([[2., 1.]])
    """
    _check("adaptive_avg_pool1d", 1, input)
    (size,) = sizes_of(output_size, 1, "output_size", "adaptive_avg_pool1d")
    return operators.adaptive_avg_pool2d(input.unsqueeze(-2), (1, size)).squeeze(-2)


def adaptive_avg_pool3d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """Average volumes over as many windows as make ``output_size``; None keeps a dimension.

    Args:
        input: Shape (N, C, ...) or (C, ...).
        output_size: Size of the result.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> tuple(F.adaptive_avg_pool3d(pc.ones(1, 3, 8, 6, 4), (2, None, 1)).shape)
        (1, 3, 2, 6, 1)
    """
    _check("adaptive_avg_pool3d", 3, input)
    *lead, depth, height, width = input.shape
    targets = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * 3
    if len(targets) != 3:
        raise ArgumentError(
            f"adaptive_avg_pool3d: `output_size` must be an int or three; got {targets}"
        )
    size = [s if w is None else w for w, s in zip(targets, (depth, height, width), strict=True)]
    slices = input.reshape((math.prod(lead), depth, height, width))
    flat = operators.adaptive_avg_pool2d(slices, size[1:])
    if flat.numel() == 0:
        return flat[:, :1].expand((math.prod(lead), *size)).reshape((*lead, *size))
    columns = flat.reshape((math.prod(lead), 1, depth, size[1] * size[2]))
    return operators.adaptive_avg_pool2d(columns, (size[0], size[1] * size[2])).reshape(
        (*lead, *size)
    )


def _lp(means: Tensor, norm_type: float, count: int) -> Tensor:
    """Return the roots of sums from means of powers; negative sums keep their sign."""
    powers: Tensor = pc.sign(means) * F.relu(means.abs()) * count
    return powers ** (1.0 / norm_type)


def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: int,
    stride: Sizes | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    r"""Compute :math:`(\sum x^p)^{1/p}` of every window, p being ``norm_type``.

    Args:
        input: Shape (N, C, ...) or (C, ...).
        norm_type: The exponent p of the norm.
        kernel_size: Size of the windows, one int or one for each dimension.
        stride: Distance of the windows; None: `kernel_size`.
        ceil_mode: Whether a window that leaves the input at its end gives an element too.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.lp_pool1d(pc.tensor([[3.0, 4.0]]), 2, 2)
        tensor([[5.]])
    """
    require_floating("lp_pool1d", "input", input)
    (size,) = sizes_of(kernel_size, 1, "kernel_size", "lp_pool1d")
    return _lp(F.avg_pool1d(input**norm_type, size, stride, 0, ceil_mode), norm_type, size)


def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    r"""Compute :math:`(\sum x^p)^{1/p}` of every window of images, p being ``norm_type``.

    Args:
        input: Shape (N, C, ...) or (C, ...).
        norm_type: The exponent p of the norm.
        kernel_size: Size of the windows, one int or one for each dimension.
        stride: Distance of the windows; None: `kernel_size`.
        ceil_mode: Whether a window that leaves the input at its end gives an element too.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.lp_pool2d(pc.tensor([[[3.0, 4.0]]]), 2, (1, 2))
        tensor([[[5.]]])
    """
    require_floating("lp_pool2d", "input", input)
    _check("lp_pool2d", 2, input)
    kernel, step, _ = _windows("lp_pool2d", 2, kernel_size, stride, 0)
    means = F.avg_pool2d(input**norm_type, kernel, step, 0, ceil_mode)
    return _lp(means, norm_type, math.prod(kernel))


def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    r"""Compute :math:`(\sum x^p)^{1/p}` of every window of volumes, p being ``norm_type``.

    Args:
        input: Shape (N, C, ...) or (C, ...).
        norm_type: The exponent p of the norm.
        kernel_size: Size of the windows, one int or one for each dimension.
        stride: Distance of the windows; None: `kernel_size`.
        ceil_mode: Whether a window that leaves the input at its end gives an element too.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.lp_pool3d(pc.tensor([[[[3.0, 4.0]]]]), 2, (1, 1, 2))
        tensor([[[[5.]]]])
    """
    require_floating("lp_pool3d", "input", input)
    kernel = sizes_of(kernel_size, 3, "kernel_size", "lp_pool3d")
    means = F.avg_pool3d(input**norm_type, kernel, stride, 0, ceil_mode)
    return _lp(means, norm_type, math.prod(kernel))


Output = int | Sequence[int | None] | None


def _adaptive(operator: str, dims: int, input: Tensor, output: Output, indices: bool) -> Any:
    """Reduce one dimension after the other, with the index of each maximum."""
    sizes: tuple[Any, ...] = (output,) * dims
    if isinstance(output, (tuple, list)):
        sizes = tuple(output)
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
        index, longest = _adaptive_windows(operator, size, count, values)
        axis = values.ndim + dim
        shape = (*values.shape[:axis], count, longest, *values.shape[axis + 1 :])
        windows = values.index_select(axis, index).reshape(shape)
        best, where = windows.max(axis + 1, keepdim=True)
        at = at.index_select(axis, index).reshape(shape).gather(axis + 1, where).squeeze(axis + 1)
        values = best.squeeze(axis + 1)
    return (values, at) if indices else values


def _adaptive_windows(operator: str, size: int, count: int, values: Tensor) -> tuple[Tensor, int]:
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

    Args:
        input: Shape (N, C, ...) or (C, ...).
        output_size: Size of the result.
        return_indices: Whether to return the places of the maxima too, for unpooling.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.adaptive_max_pool1d(pc.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
        tensor([[3., 2.]])
    """
    return _adaptive("adaptive_max_pool1d", 1, input, output_size, return_indices)


def adaptive_max_pool2d(input: Tensor, output_size: Output, return_indices: bool = False) -> Any:
    """Take maxima of images over as many windows as ``output_size``; None keeps a dimension.

    With ``return_indices`` also return the index of each maximum in H x W.

    Args:
        input: Shape (N, C, ...) or (C, ...).
        output_size: Size of the result.
        return_indices: Whether to return the places of the maxima too, for unpooling.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.adaptive_max_pool2d(pc.arange(12.0).reshape(1, 3, 4), (1, 2))
        tensor([[[ 9., 11.]]])
    """
    return _adaptive("adaptive_max_pool2d", 2, input, output_size, return_indices)


def adaptive_max_pool3d(input: Tensor, output_size: Output, return_indices: bool = False) -> Any:
    """Take maxima of volumes over as many windows as ``output_size``; None keeps a dimension.

    Args:
        input: Shape (N, C, ...) or (C, ...).
        output_size: Size of the result.
        return_indices: Whether to return the places of the maxima too, for unpooling.

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
    # the host would wait for another device
    if indices.is_cpu and not holds_for_all((indices >= 0) & (indices < total)):
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

    Args:
        input: Shape (N, C, ...) or (C, ...).
        indices: The places of the maxima, as the pooling with `return_indices` gives them.
        kernel_size: Size of the windows, one int or one for each dimension.
        stride: Distance of the windows; None: `kernel_size`.
        padding: Elements on every side of each dimension.
        output_size: Size of the result.

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

    Args:
        input: Shape (N, C, ...) or (C, ...).
        indices: The places of the maxima, as the pooling with `return_indices` gives them.
        kernel_size: Size of the windows, one int or one for each dimension.
        stride: Distance of the windows; None: `kernel_size`.
        padding: Elements on every side of each dimension.
        output_size: Size of the result.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> x = pc.arange(8.0).reshape(1, 1, 2, 2, 2)
        >>> F.max_unpool3d(*F.max_pool3d(x, 2, return_indices=True), 2).sum()
        tensor(7.)
    """
    return _unpool(3, input, indices, kernel_size, stride, padding, output_size)


def _output_sizes(
    operator: str, dims: int, spatial: tuple[int, ...], size: Any, ratio: Any
) -> tuple[int, ...]:
    """Return the size of the result from one of two arguments."""
    if (size is None) == (ratio is None):
        raise ArgumentError(
            f"{operator}: one of `output_size` and `output_ratio` must be given; "
            f"got {size} and {ratio}"
        )
    if size is not None:
        return sizes_of(size, dims, "output_size", operator)
    ratios = tuple(ratio) if isinstance(ratio, Sequence) else (ratio,) * dims
    if len(ratios) != dims or not all(0 < each < 1 for each in ratios):
        raise ArgumentError(
            f"{operator}: `output_ratio` must be {dims} numbers between 0 and 1; got {ratio}"
        )
    return tuple(int(n * each) for n, each in zip(spatial, ratios, strict=True))


def _starts(samples: Tensor, size: int, count: int, kernel: int) -> Tensor:
    """Return the beginning of each window, (*, count), from samples (*) in [0, 1)."""
    last = pc.full((*samples.shape, 1), size - kernel, dtype=pc.int64, device=samples.device)
    if count == 1:
        return last
    step = (size - kernel) / (count - 1)
    if samples.dtype != pc.float64:  # rounded like the product below
        step = pc.tensor(step, dtype=samples.dtype, device="cpu").item()
    first = samples.unsqueeze(-1)
    number = pc.arange(count - 1, dtype=samples.dtype, device=samples.device)
    positions = ((number + first) * step).to(pc.int64) - (first * step).to(pc.int64)
    return pc.cat([positions, last], -1)


def _pool(
    dims: int,
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None,
    output_ratio: float | Sequence[float] | None,
    samples: Tensor | None,
) -> tuple[Tensor, Tensor]:
    operator = f"fractional_max_pool{dims}d"
    if input.ndim not in (dims + 1, dims + 2):
        raise pc.ShapeError(
            f"{operator}: `input` must have {dims + 1} or {dims + 2} dimensions; "
            f"got shape {tuple(input.shape)}"
        )
    batched = input if input.ndim == dims + 2 else input.unsqueeze(0)
    spatial = tuple(batched.shape[2:])
    kernel = sizes_of(kernel_size, dims, "kernel_size", operator)
    targets = _output_sizes(operator, dims, spatial, output_size, output_ratio)
    sizes = zip(kernel, targets, spatial, strict=True)
    if not all(k >= 1 and o >= 1 and k + o - 1 <= n for k, o, n in sizes):
        raise ArgumentError(
            f"{operator}: kernel + output - 1 must be at most the input's size {spatial}; "
            f"got kernel {kernel} and output {targets}"
        )
    planes = tuple(batched.shape[:2])
    if samples is None:
        dtype = input.dtype if input.dtype.is_floating_point else pc.float32
        samples = pc.rand(*planes, dims, dtype=dtype, device=input.device)
    elif tuple(samples.shape) != (*planes, dims):
        raise pc.ShapeError(
            f"{operator}: `_random_samples` must have shape {(*planes, dims)}; "
            f"got {tuple(samples.shape)}"
        )
    positions = _window_indices(samples, spatial, targets, kernel)
    count, window = math.prod(targets), math.prod(kernel)
    flat = batched.reshape((*planes, math.prod(spatial)))
    values = flat.gather(2, positions.reshape((*planes, count * window)))
    best, where = values.reshape((*planes, count, window)).max(3)
    at = positions.reshape((*planes, count, window)).gather(3, where.unsqueeze(3)).squeeze(3)
    shape = (*planes, *targets)
    pooled, indices = best.reshape(shape), at.reshape(shape)
    return (pooled, indices) if batched is input else (pooled.squeeze(0), indices.squeeze(0))


def _window_indices(
    samples: Tensor, spatial: tuple[int, ...], sizes: tuple[int, ...], kernel: tuple[int, ...]
) -> Tensor:
    """Return the index in its plane of each element of each window: (N, C, *wanted, *kernel)."""
    dims = len(spatial)
    total: Tensor | None = None
    for dim in range(dims):
        # the first sample is for the width of images, and for the depth of volumes
        sample = samples.select(2, dims - 1 - dim if dims == 2 else dim)
        starts = _starts(sample, spatial[dim], sizes[dim], kernel[dim])
        reach = pc.arange(kernel[dim], device=samples.device)
        at = (starts.unsqueeze(-1) + reach) * math.prod(spatial[dim + 1 :])
        shape = [*at.shape[:2], *[1] * (2 * dims)]
        shape[2 + dim], shape[2 + dims + dim] = sizes[dim], kernel[dim]
        at = at.reshape(shape)
        total = at if total is None else total + at
    assert total is not None
    return total


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    r"""Take maxima of images over windows at pseudorandom distances (Graham 2015).

    Window i of n begins at :math:`\lfloor (i + u) a \rfloor - \lfloor u a \rfloor` with
    :math:`a = (H - k) / (n - 1)` and u drawn for every plane and dimension; the last one ends with
    the image.

    Args:
        input: Shape (N, C, H, W) or (C, H, W).
        kernel_size: The windows' size k.
        output_size: The number of windows n; or
        output_ratio: n as a fraction of H and W, between 0 and 1.
        return_indices: Also return the index of each maximum in H x W.
        _random_samples: The u in [0, 1), shape (N, C, 2); None draws them.

    Returns:
        Shape (N, C, n, n), or a pair with the indices.

    Raises:
        ValueError: k + n - 1 is above H or W, or not exactly one of the two sizes is given.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> tuple(F.fractional_max_pool2d(pc.randn(1, 2, 9, 7), 2, output_ratio=0.6).shape)
        (1, 2, 5, 4)
    """
    result = _pool(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return result if return_indices else result[0]


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Take maxima of volumes over windows at pseudorandom distances; `fractional_max_pool2d`.

    Args:
        input: Shape (N, C, D, H, W) or (C, D, H, W).
        kernel_size: The windows' size.
        output_size: The number of windows; or output_ratio: this number as a fraction of the
            input's size.
        output_ratio: Size of the result over that of the input, instead of `output_size`; in (0,
            1).
        return_indices: Also return the index of each maximum in D x H x W.
        _random_samples: Numbers in [0, 1), shape (N, C, 3); None draws them.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> tuple(F.fractional_max_pool3d(pc.randn(1, 2, 5, 6, 7), 2, (2, 3, 4)).shape)
        (1, 2, 2, 3, 4)
    """
    result = _pool(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return result if return_indices else result[0]


def _with_indices(function: _F, *example: str) -> _F:
    """Return a form of a pooling function that always returns the index of each maximum too."""
    name = f"{function.__name__}_with_indices"
    place = list(function.__annotations__).index("return_indices")
    signature = inspect.signature(function)

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            if len(args) > place:
                return function(*args[:place], True, *args[place + 1 :], **kwargs)
            return function(*args, **{**kwargs, "return_indices": True})
        except TypeError:
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:  # Python's text names the other function
                raise TypeError(f"{name}() {error}") from None
            raise

    lines = (">>> import plait_core as pc, plait_nn.functional as F", *example)
    text = inspect.getdoc(function) or ""  # none under ``python -OO``
    arguments = re.search(r"^Args:\n(?:    .*\n)+", text, re.MULTILINE)
    call.__doc__ = (
        f"Return the result of `{function.__name__}` and the index of each maximum.\n\n"
        + (f"{arguments[0]}\n" if arguments else "")
        + "Example:\n"
        + "".join(f"    {line}\n" for line in lines)
    )
    call.__name__ = call.__qualname__ = name
    call.__annotations__ = function.__annotations__
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


fractional_max_pool2d_with_indices = _with_indices(
    fractional_max_pool2d,
    ">>> F.fractional_max_pool2d_with_indices(pc.tensor([[[1.0, 3.0], [2.0, 0.0]]]), 2, 1)",
    "(tensor([[[3.]]]), tensor([[[1]]]))",
)

fractional_max_pool3d_with_indices = _with_indices(
    fractional_max_pool3d,
    ">>> x = pc.arange(8.0).reshape(1, 2, 2, 2)",
    ">>> F.fractional_max_pool3d_with_indices(x, 2, 1)",
    "(tensor([[[[7.]]]]), tensor([[[[7]]]]))",
)

adaptive_max_pool1d_with_indices = _with_indices(
    adaptive_max_pool1d,
    ">>> F.adaptive_max_pool1d_with_indices(pc.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)",
    "(tensor([[3., 2.]]), tensor([[1, 2]]))",
)

adaptive_max_pool2d_with_indices = _with_indices(
    adaptive_max_pool2d,
    ">>> F.adaptive_max_pool2d_with_indices(pc.tensor([[[1.0, 3.0], [2.0, 0.0]]]), 1)",
    "(tensor([[[3.]]]), tensor([[[1]]]))",
)

adaptive_max_pool3d_with_indices = _with_indices(
    adaptive_max_pool3d,
    ">>> F.adaptive_max_pool3d_with_indices(pc.arange(8.0).reshape(1, 2, 2, 2), 1)",
    "(tensor([[[[7.]]]]), tensor([[[[7]]]]))",
)

max_pool1d_with_indices = _with_indices(
    max_pool1d,
    ">>> F.max_pool1d_with_indices(pc.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)",
    "(tensor([[3., 2.]]), tensor([[1, 2]]))",
)

max_pool2d_with_indices = _with_indices(
    max_pool2d,
    ">>> F.max_pool2d_with_indices(pc.tensor([[[1.0, 3.0], [2.0, 0.0]]]), 2)",
    "(tensor([[[3.]]]), tensor([[[1]]]))",
)

max_pool3d_with_indices = _with_indices(
    max_pool3d,
    ">>> F.max_pool3d_with_indices(pc.arange(8.0).reshape(1, 2, 2, 2), 2)",
    "(tensor([[[[7.]]]]), tensor([[[[7]]]]))",
)
