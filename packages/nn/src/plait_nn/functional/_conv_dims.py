"""Convolution in one and three dimensions, by the convolution of images."""

from __future__ import annotations

import plait_core as pc
from plait_abi import ArgumentError
from plait_abi.binding import unbound
from plait_core import Tensor
from plait_nn.functional._conv import conv2d
from plait_nn.functional._dtypes import require_bias
from plait_nn.functional._padding import pad
from plait_nn.functional._sizes import Sizes, sizes_of

__all__ = ["conv1d", "conv3d"]


def _check(operator: str, dims: int, input: Tensor, weight: Tensor, groups: int) -> None:
    fits = (
        groups >= 1
        and input.ndim in (dims + 1, dims + 2)
        and weight.ndim == dims + 2
        and input.shape[-dims - 1] == weight.shape[1] * groups
        and weight.shape[0] % groups == 0
    )
    if not fits:
        indices = "L" if dims == 1 else "D, H, W"
        raise pc.ShapeError(
            f"{operator}: `input` must be (N, C, {indices}) or (C, {indices}) and `weight` "
            f"(K, C / groups, *) with {dims} more dimensions; got shapes {tuple(input.shape)} and "
            f"{tuple(weight.shape)} with groups {groups}"
        )


def _borders(
    operator: str, padding: Sizes | str, stride: Sizes, dilation: Sizes, kernel: tuple[int, ...]
) -> list[tuple[int, int]]:
    """The zeros before and after every dimension."""
    dims = len(kernel)
    if not isinstance(padding, str):
        return [(p, p) for p in sizes_of(padding, dims, "padding", operator)]
    if padding == "valid":
        return [(0, 0)] * dims
    if padding != "same":
        raise ArgumentError(
            f'{operator}: `padding` must be an int, {dims} ints, "same" or "valid"; got {padding!r}'
        )
    if any(s != 1 for s in sizes_of(stride, dims, "stride", operator)):
        raise ArgumentError(f'{operator}: padding="same" needs stride 1; got {stride}')
    steps = sizes_of(dilation, dims, "dilation", operator)
    totals = [d * (k - 1) for d, k in zip(steps, kernel, strict=True)]
    return [(t // 2, t - t // 2) for t in totals]


@unbound
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    r"""Cross-correlate sequences with filters.

    .. math:: y_{n,k,i} = b_k + \sum_{c,u} w_{k,c,u} \, x_{n,c,\,i s + u d}

    Args:
        input: Shape (N, C, L) or (C, L).
        weight: Shape (K, C / groups, kL).
        bias: Shape (K), or None.
        stride: Distance of the windows.
        padding: Zeros on both sides; ``"valid"`` is 0; ``"same"`` keeps L and requires stride 1.
        dilation: Distance of the kernel's elements.
        groups: Number of independent groups of channels.

    Returns:
        Shape (N, K, L') with ``L' = (L + 2 padding - dilation (kL - 1) - 1) // stride + 1``.

    Raises:
        ShapeError: The shapes don't fit together.
        ValueError: ``padding`` is an unknown word, or ``"same"`` with a stride.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.conv1d(pc.arange(5.0).reshape(1, 1, 5), pc.ones(1, 1, 3)).flatten()
        tensor([3., 6., 9.])
    """
    _check("conv1d", 1, input, weight, groups)
    require_bias("conv1d", input, bias)
    ((before, after),) = _borders("conv1d", padding, stride, dilation, tuple(weight.shape[2:]))
    if before != after:
        input, after = pad(input, (before, after)), 0
    (step,) = sizes_of(stride, 1, "stride", "conv1d")
    (spread,) = sizes_of(dilation, 1, "dilation", "conv1d")
    rows, filters = input.unsqueeze(-2), weight.unsqueeze(2)
    result = conv2d(rows, filters, bias, (1, step), (0, after), (1, spread), groups)
    return result.squeeze(-2)


@unbound
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    r"""Cross-correlate volumes with filters.

    .. math::
        y_{n,k,h,i,j} = b_k + \sum_{c,t,u,v} w_{k,c,t,u,v} \,
        x_{n,c,\,h s + t d,\,i s + u d,\,j s + v d}

    The slices that a filter sees become channels of images, so memory grows with kD.

    Args:
        input: Shape (N, C, D, H, W) or (C, D, H, W).
        weight: Shape (K, C / groups, kD, kH, kW).
        bias: Shape (K), or None.
        stride: One int, or one for each dimension.
        padding: Zeros on every side; ``"valid"`` is 0; ``"same"`` keeps the size and requires
            stride 1.
        dilation: Distance of the kernel's elements.
        groups: Number of independent groups of channels.

    Returns:
        Shape (N, K, D', H', W').

    Raises:
        ShapeError: The shapes don't fit together.
        ValueError: ``padding`` is an unknown word, or ``"same"`` with a stride.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> out = F.conv3d(pc.ones(1, 1, 3, 3, 3), pc.ones(2, 1, 2, 2, 2))
        >>> tuple(out.shape), out[0, 0, 0, 0].tolist()
        ((1, 2, 2, 2, 2), [8.0, 8.0])
    """
    _check("conv3d", 3, input, weight, groups)
    require_bias("conv3d", input, bias)
    if input.ndim == 4:
        result = conv3d(input.unsqueeze(0), weight, bias, stride, padding, dilation, groups)
        return result.squeeze(0)
    filters, channels, depth, *image = weight.shape
    borders = _borders("conv3d", padding, stride, dilation, (depth, *image))
    uneven = any(before != after for before, after in borders[1:])
    if uneven:
        flat = [n for before_after in reversed(borders) for n in before_after]
        input, borders = pad(input, flat), [(0, 0)] * 3
    elif borders[0] != (0, 0):
        input = pad(input, (0, 0, 0, 0, *borders[0]))
    steps = sizes_of(stride, 3, "stride", "conv3d")
    spreads = sizes_of(dilation, 3, "dilation", "conv3d")
    if min(steps) < 1 or min(spreads) < 1:
        raise ArgumentError(
            f"conv3d: `stride` and `dilation` must be positive; got {steps}, {spreads}"
        )
    slices = (input.shape[2] - spreads[0] * (depth - 1) - 1) // steps[0] + 1
    if slices < 1:
        raise pc.ShapeError(
            f"conv3d: the kernel {tuple(weight.shape[2:])} must fit into the padded input; "
            f"got shape {tuple(input.shape)} with dilation {spreads}"
        )
    indices = [o * steps[0] + k * spreads[0] for o in range(slices) for k in range(depth)]
    windows = input.index_select(2, pc.tensor(indices, device=input.device))
    batch, height, width = input.shape[0], input.shape[3], input.shape[4]
    windows = windows.reshape((batch, input.shape[1], slices, depth, height, width))
    images = windows.permute((0, 2, 1, 3, 4, 5)).reshape(
        (batch * slices, input.shape[1] * depth, height, width)
    )
    kernel = weight.reshape((filters, channels * depth, *image))
    sides = (borders[1][0], borders[2][0])
    result = conv2d(images, kernel, bias, steps[1:], sides, spreads[1:], groups)  # type: ignore[arg-type]
    result = result.reshape((batch, slices, *result.shape[1:]))
    return result.transpose(1, 2)
