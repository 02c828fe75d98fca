"""Pooling over windows of images."""

from __future__ import annotations

from typing import Any

import plait_core as pc
from plait_abi import ArgumentError
from plait_abi.arguments import passes_on
from plait_abi.binding import unbound
from plait_core import Tensor
from plait_nn import _operators as operators
from plait_nn.functional._conv import Pair, pair

__all__ = ["adaptive_avg_pool2d", "avg_pool2d", "max_pool2d"]


@passes_on
def max_pool2d(
    input: Tensor,
    kernel_size: Pair,
    stride: Pair | tuple[()] | None = None,
    padding: Pair = 0,
    dilation: Pair = 1,
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
    kernel_size: Pair,
    stride: Pair | tuple[()] | None = None,
    padding: Pair = 0,
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
    kernel_size: Pair,
    stride: Pair | None,
    padding: Pair,
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
    input: Tensor, kernel_size: Pair, stride: Pair | None, padding: Pair, ceil_mode: bool
) -> Tensor:
    """Return the sum of every window."""
    means = operators.avg_pool2d(input, kernel_size, stride, padding, ceil_mode, True)
    kernel = pair(kernel_size, "kernel_size", "avg_pool2d")
    step = kernel if stride is None else pair(stride, "stride", "avg_pool2d")
    border = pair(padding, "padding", "avg_pool2d")
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
    size = tuple(s if w is None else w for w, s in zip(sizes, input.shape[-2:], strict=True))
    return operators.adaptive_avg_pool2d(input, size)
