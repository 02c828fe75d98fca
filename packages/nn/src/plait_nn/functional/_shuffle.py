"""Rearrangements: channels to pixels and back, windows to columns and back."""

from __future__ import annotations

import math

import plait_core as pc
from plait_abi import ArgumentError
from plait_abi.binding import unbound
from plait_core import Tensor
from plait_nn.functional._checks import Sizes, reserve, sizes_of
from plait_nn.functional._padding import pad


@unbound
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    r"""Rearrange every :math:`r^2` channels to one channel of r times the height and width.

    Args:
        input: Shape (\*, C r r, H, W).
        upscale_factor: r.

    Returns:
        Shape (\*, C, H r, W r) (Shi et al. 2016).

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.pixel_shuffle(pc.arange(4.0).reshape(4, 1, 1), 2)
        tensor([[[0., 1.],
                 [2., 3.]]])
    """
    r = upscale_factor
    if input.ndim < 3 or r < 1 or input.shape[-3] % (r * r):
        raise pc.ShapeError(
            f"pixel_shuffle: `input` must be (*, C, H, W) with C divisible by the square of "
            f"`upscale_factor` {r}; got shape {tuple(input.shape)}"
        )
    *lead, channels, height, width = input.shape
    parts = input.reshape((math.prod(lead), channels // (r * r), r, r, height, width))
    result = _copied(parts.permute((0, 1, 4, 2, 5, 3)))
    return result.reshape((*lead, channels // (r * r), height * r, width * r))


@unbound
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    r"""Undo `pixel_shuffle`: from (\*, C, H r, W r) to (\*, C r r, H, W).

    Args:
        input: Shape (N, C, ...).
        downscale_factor: The divisor of height and width.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.pixel_unshuffle(pc.arange(4.0).reshape(1, 2, 2), 2).flatten()
        tensor([0., 1., 2., 3.])
    """
    r = downscale_factor
    if input.ndim < 3 or r < 1 or input.shape[-1] % r or input.shape[-2] % r:
        raise pc.ShapeError(
            f"pixel_unshuffle: `input` must be (*, C, H, W) with H and W divisible by "
            f"`downscale_factor` {r}; got shape {tuple(input.shape)}"
        )
    *lead, channels, height, width = input.shape
    parts = input.reshape((math.prod(lead), channels, height // r, r, width // r, r))
    result = _copied(parts.permute((0, 1, 3, 5, 2, 4)))
    return result.reshape((*lead, channels * r * r, height // r, width // r))


@unbound
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    r"""Reorder the channels of (N, C, \*): one of each of ``groups`` groups in turn.

    Args:
        input: Shape (N, C, ...).
        groups: Number of groups of channels.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.channel_shuffle(pc.arange(4.0).reshape(1, 4, 1), 2).flatten()
        tensor([0., 2., 1., 3.])
    """
    if input.ndim < 3 or groups < 1 or input.shape[1] % groups:
        raise pc.ShapeError(
            f"channel_shuffle: `input` must be (N, C, *) with C divisible by `groups` {groups}; "
            f"got shape {tuple(input.shape)}"
        )
    shape = tuple(input.shape)
    parts = input.reshape((shape[0], groups, shape[1] // groups, *shape[2:]))
    return _copied(parts.transpose(1, 2)).reshape(shape)


def _copied(view: Tensor) -> Tensor:
    """Return a contiguous copy, also where `reshape` would make none.

    Results share no memory with their inputs, nor do elements of one with others: windows of one
    row would.
    """
    return view.clone(memory_format=pc.contiguous_format)


def _windows(
    operator: str,
    input: Tensor,
    size: tuple[int, ...],
    kernel: Sizes,
    dilation: Sizes,
    padding: Sizes,
    stride: Sizes,
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...], list[int]]:
    """Return kernel, dilation, padding, stride, and the number of windows in each dimension."""
    window = sizes_of(kernel, 2, "kernel_size", operator)
    spread = sizes_of(dilation, 2, "dilation", operator)
    side = sizes_of(padding, 2, "padding", operator)
    step = sizes_of(stride, 2, "stride", operator)
    if min(*window, *spread, *step) < 1 or min(side) < 0:
        raise ArgumentError(
            f"{operator}: `kernel_size`, `dilation` and `stride` must be positive and `padding` "
            f"not negative; got {window}, {spread}, {step} and {side}"
        )
    counts = [
        (size[i] + 2 * side[i] - spread[i] * (window[i] - 1) - 1) // step[i] + 1 for i in (0, 1)
    ]
    if min(counts) < 1:
        raise pc.ShapeError(
            f"{operator}: a window of {window} with dilation {spread} must fit into {size} with "
            f"padding {side}"
        )
    return window, spread, side, step, counts


def _positions(input: Tensor, window: int, spread: int, step: int, count: int) -> Tensor:
    """Return the indices of the elements of all windows along a dimension."""
    reserve(32 * window * count, input)
    taps = pc.arange(window, device=input.device) * spread
    firsts = pc.arange(count, device=input.device) * step
    return (taps.unsqueeze(1) + firsts).flatten()


def unfold(
    input: Tensor, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
) -> Tensor:
    """Return every window of images as a column.

    Args:
        input: Shape (N, C, H, W) or (C, H, W).
        kernel_size: The window.
        dilation: Distance of a window's elements.
        padding: Zeros on every side.
        stride: Distance of the windows.

    Returns:
        Shape (N, C kH kW, windows) or without N.

    Raises:
        ShapeError: The input has other dimensions, or no window fits.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.unfold(pc.arange(6.0).reshape(1, 2, 3), 2)
        tensor([[0., 1.],
                [1., 2.],
                [3., 4.],
                [4., 5.]])
    """
    if input.ndim not in (3, 4):
        raise pc.ShapeError(
            f"unfold: `input` must be (N, C, H, W) or (C, H, W); got shape {tuple(input.shape)}"
        )
    *lead, channels, height, width = input.shape
    window, spread, side, step, counts = _windows(
        "unfold", input, (height, width), kernel_size, dilation, padding, stride
    )
    if any(side):
        input = pad(input, (side[1], side[1], side[0], side[0]))
    # views: windows of rows, then of columns
    pixels = input.reshape((-1, channels, *input.shape[-2:]))
    pixels = pixels.unfold(2, spread[0] * (window[0] - 1) + 1, step[0])[..., :: spread[0]]
    pixels = pixels.permute((0, 1, 4, 2, 3))
    pixels = pixels.unfold(4, spread[1] * (window[1] - 1) + 1, step[1])[..., :: spread[1]]
    result = _copied(pixels.permute((0, 1, 2, 5, 3, 4)))
    return result.reshape((*lead, channels * math.prod(window), math.prod(counts)))


def fold(
    input: Tensor,
    output_size: Sizes,
    kernel_size: Sizes,
    dilation: Sizes = 1,
    padding: Sizes = 0,
    stride: Sizes = 1,
) -> Tensor:
    """Put columns back at the positions of `unfold`; overlapping windows are added.

    Args:
        input: Shape (N, C kH kW, windows) or without N.
        output_size: H and W.
        kernel_size: The window.
        dilation: Distance of a window's elements.
        padding: The padding of `unfold`.
        stride: Distance of the windows.

    Returns:
        Shape (N, C, H, W) or (C, H, W).

    Raises:
        ShapeError: The sizes don't fit together.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.fold(pc.ones(4, 2), (2, 3), 2)
        tensor([[[1., 2., 1.],
                 [1., 2., 1.]]])
    """
    height, width = sizes_of(output_size, 2, "output_size", "fold")
    window, spread, side, step, counts = _windows(
        "fold", input, (height, width), kernel_size, dilation, padding, stride
    )
    if (
        input.ndim not in (2, 3)
        or input.shape[-2] % math.prod(window)
        or input.shape[-1] != math.prod(counts)
    ):
        raise pc.ShapeError(
            f"fold: `input` must be (N, C, L) or (C, L) with C divisible by {math.prod(window)} "
            f"and L {math.prod(counts)} for output_size {(height, width)}; "
            f"got shape {tuple(input.shape)}"
        )
    *lead, many, _ = input.shape
    channels = many // math.prod(window)
    parts = input.reshape((-1, channels, *window, *counts)).permute((0, 1, 2, 4, 3, 5))
    parts = parts.reshape((-1, channels, window[0] * counts[0], window[1] * counts[1]))
    rows, columns = (_positions(input, window[i], spread[i], step[i], counts[i]) for i in (0, 1))
    wide = (parts.shape[0], channels, parts.shape[2], width + 2 * side[1])
    result = parts.new_zeros(wide).index_add(3, columns, parts)
    full = (parts.shape[0], channels, height + 2 * side[0], width + 2 * side[1])
    result = parts.new_zeros(full).index_add(2, rows, result)
    result = result.narrow(2, side[0], height).narrow(3, side[1], width)
    return result.reshape((*lead, channels, height, width))


@unbound
def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Compute `channel_shuffle`; a name of PyTorch.

    Args:
        input: Shape (N, C, ...).
        groups: Number of groups of channels.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.native_channel_shuffle(pc.arange(4.0).reshape(1, 4, 1, 1), 2).flatten().tolist()
        [0.0, 2.0, 1.0, 3.0]
    """
    return channel_shuffle(input, groups)
