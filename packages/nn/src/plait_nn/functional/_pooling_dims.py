"""Pooling in one and three dimensions, by pooling of images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plait_core as pc
from plait_abi import ArgumentError
from plait_abi.binding import unbound
from plait_core import Tensor
from plait_nn import _operators as operators
from plait_nn.functional import _pooling as images
from plait_nn.functional._dtypes import require_floating
from plait_nn.functional._package import F
from plait_nn.functional._sizes import Sizes, sizes_of

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool3d",
    "avg_pool1d",
    "avg_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool3d",
]


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

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.max_pool1d(pc.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
        tensor([[3., 2.]])
    """
    _check("max_pool1d", 1, input)
    (size,), (step,), (side,) = _windows("max_pool1d", 1, kernel_size, stride, padding)
    (spread,) = sizes_of(dilation, 1, "dilation", "max_pool1d")
    result = images.max_pool2d(
        input.unsqueeze(-2),
        (1, size),
        (1, step),
        (0, side),
        (1, spread),
        ceil_mode,
        return_indices,
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
    flat, spatial = images.max_pool2d(
        slices,
        kernel[1:],  # type: ignore[arg-type]
        step[1:],  # type: ignore[arg-type]
        side[1:],  # type: ignore[arg-type]
        spread[1:],  # type: ignore[arg-type]
        ceil_mode,
        True,
    )
    size = tuple(flat.shape[2:])
    columns = flat.reshape((rows, 1, depth, math.prod(size)))
    result, at = images.max_pool2d(
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

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.avg_pool1d(pc.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
        tensor([[2., 1.]])
    """
    _check("avg_pool1d", 1, input)
    (size,), (step,), (side,) = _windows("avg_pool1d", 1, kernel_size, stride, padding)
    rows = input.unsqueeze(-2)
    result = images.avg_pool2d(rows, (1, size), (1, step), (0, side), ceil_mode, count_include_pad)
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

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.avg_pool3d(pc.arange(8.0).reshape(1, 1, 2, 2, 2), 2).flatten()
        tensor([3.5000])
    """
    _check("avg_pool3d", 3, input)
    if divisor_override == 0:
        raise ArgumentError("avg_pool3d: `divisor_override` must not be 0")
    if not (input.is_floating_point() or input.is_complex()):
        images.require_mean("avg_pool3d", input)
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
    flat = images.avg_pool2d(
        slices,
        kernel[1:],  # type: ignore[arg-type]
        step[1:],  # type: ignore[arg-type]
        side[1:],  # type: ignore[arg-type]
        ceil_mode,
        count_include_pad,
        first,
    )
    size = tuple(flat.shape[2:])
    columns = flat.reshape((math.prod(lead), 1, depth, math.prod(size)))
    result = images.avg_pool2d(
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

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.lp_pool3d(pc.tensor([[[[3.0, 4.0]]]]), 2, (1, 1, 2))
        tensor([[[[5.]]]])
    """
    require_floating("lp_pool3d", "input", input)
    kernel = sizes_of(kernel_size, 3, "kernel_size", "lp_pool3d")
    means = F.avg_pool3d(input**norm_type, kernel, stride, 0, ceil_mode)
    return _lp(means, norm_type, math.prod(kernel))
