"""Two-dimensional convolution with PyTorch's forms of padding."""

from __future__ import annotations

from typing import Any

import plait_core as pc
from plait_abi import ArgumentError, ShapeError
from plait_abi.binding import unbound
from plait_core import Tensor
from plait_nn.functional._dtypes import require_bias

__all__ = ["Pair", "conv2d", "pair"]

Pair = int | tuple[int, int]


def pair(value: Pair | list[int], name: str, operator: str) -> tuple[int, int]:
    """Return ``value`` for both dimensions."""
    if isinstance(value, int):
        return value, value
    if len(value) == 2:
        return int(value[0]), int(value[1])
    if len(value) == 1:
        return int(value[0]), int(value[0])
    raise ArgumentError(f"{operator}: `{name}` must be an int or two ints; got {tuple(value)}")


@unbound
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Pair = 1,
    padding: Pair | str = 0,
    dilation: Pair = 1,
    groups: int = 1,
) -> Tensor:
    r"""Cross-correlate images with filters.

    .. math:: y_{n,k,i,j} = b_k + \sum_{c,u,v} w_{k,c,u,v} \, x_{n,c,\,i s + u d,\,j s + v d}

    Args:
        input: Shape (N, C, H, W) or (C, H, W).
        weight: Shape (K, C / groups, kH, kW).
        bias: Shape (K), or None.
        stride: One int, or one for each dimension.
        padding: Zeros on every side, as ints; ``"valid"`` is 0; ``"same"`` keeps H and W and
            requires stride 1 (for an even kernel the additional zero is at the end).
        dilation: Distance of the kernel's elements.
        groups: Number of independent groups of channels.

    Returns:
        Shape (N, K, H', W') with ``H' = (H + 2 padding - dilation (kH - 1) - 1) // stride + 1``.

    Complex numbers take two convolutions, integers are summed in float64 (exact below 2^53).

    Raises:
        ShapeError: The shapes don't fit together.
        DTypeError: The dtypes differ.
        ValueError: ``padding`` is an unknown word, or ``"same"`` with a stride.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x, w = pc.ones(1, 1, 5, 5), pc.ones(2, 1, 3, 3)
        >>> tuple(nn.functional.conv2d(x, w, padding="same").shape)
        (1, 2, 5, 5)
        >>> nn.functional.conv2d(x, w)[0, 0, 0].tolist()
        [9.0, 9.0, 9.0]
    """
    if input.ndim == 3:
        images = input.unsqueeze(0)
        return conv2d(images, weight, bias, stride, padding, dilation, groups).squeeze(0)
    if not input.is_floating_point() and input.dtype == weight.dtype:
        require_bias("conv2d", input, bias)
        output = _conv2d_of_others(input, weight, stride, padding, dilation, groups)
        return output if bias is None else output + bias.reshape((-1, 1, 1))
    if not isinstance(padding, str):
        return pc.conv2d(input, weight, bias, stride, padding, dilation, groups)
    if padding == "valid":
        return pc.conv2d(input, weight, bias, stride, 0, dilation, groups)
    if padding != "same":
        raise ArgumentError(
            f'conv2d: `padding` must be an int, two ints, "same" or "valid"; got {padding!r}'
        )
    if weight.ndim != 4:
        raise ShapeError(
            f"conv2d: `weight` must have 4 dimensions; got shape {tuple(weight.shape)}"
        )
    if pair(stride, "stride", "conv2d") != (1, 1):
        raise ArgumentError(f'conv2d: padding="same" needs stride 1; got {stride}')
    total = [
        d * (k - 1)
        for d, k in zip(pair(dilation, "dilation", "conv2d"), weight.shape[2:], strict=True)
    ]
    # half on each side; an odd total is rounded up, and the additional outputs are dropped
    after = tuple(t - t // 2 for t in total)
    result = pc.conv2d(input, weight, bias, 1, after, dilation, groups)
    for dim, t in zip((-2, -1), total, strict=True):
        if t % 2:
            result = result.narrow(dim, 1, result.shape[dim] - 1)
    return result


def _conv2d_of_others(input: Tensor, weight: Tensor, *options: Any) -> Tensor:
    """Convolve integers in float64, and complex numbers by their parts."""
    if not input.is_complex():
        wide = conv2d(input.to(pc.float64), weight.to(pc.float64), None, *options)
        return wide.to(input.dtype)
    n = input.shape[0]
    parts = pc.cat([input.real, input.imag])
    real = conv2d(parts, weight.real, None, *options)
    imaginary = conv2d(parts, weight.imag, None, *options)
    return pc.complex(real[:n] - imaginary[n:], real[n:] + imaginary[:n])
