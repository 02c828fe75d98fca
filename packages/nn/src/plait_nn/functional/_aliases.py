"""Functions that call other functions of this package with fixed arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plait_core as pc
from plait_abi.binding import unbound
from plait_core import Tensor
from plait_nn.functional._adaptive_pooling import (
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
)
from plait_nn.functional._conv import Pair
from plait_nn.functional._conv_dims import conv1d
from plait_nn.functional._package import F
from plait_nn.functional._pooling import max_pool2d
from plait_nn.functional._pooling_dims import max_pool1d, max_pool3d
from plait_nn.functional._shuffle import channel_shuffle
from plait_nn.functional._sizes import Sizes

__all__ = [
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d_with_indices",
    "conv_tbc",
    "max_pool1d_with_indices",
    "max_pool2d_with_indices",
    "max_pool3d_with_indices",
    "native_channel_shuffle",
    "upsample_bilinear",
    "upsample_nearest",
]


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Any:
    """Return the result of `adaptive_max_pool1d` and the index of each maximum.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.adaptive_max_pool1d_with_indices(pc.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
        (tensor([[3., 2.]]), tensor([[1, 2]]))
    """
    return adaptive_max_pool1d(input, output_size, True)


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Any:
    """Return the result of `adaptive_max_pool2d` and the index of each maximum.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.adaptive_max_pool2d_with_indices(pc.tensor([[[1.0, 3.0], [2.0, 0.0]]]), 1)
        (tensor([[[3.]]]), tensor([[[1]]]))
    """
    return adaptive_max_pool2d(input, output_size, True)


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Any:
    """Return the result of `adaptive_max_pool3d` and the index of each maximum.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.adaptive_max_pool3d_with_indices(pc.arange(8.0).reshape(1, 2, 2, 2), 1)
        (tensor([[[[7.]]]]), tensor([[[[7]]]]))
    """
    return adaptive_max_pool3d(input, output_size, True)


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the result of `max_pool1d` and the index of each maximum.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.max_pool1d_with_indices(pc.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
        (tensor([[3., 2.]]), tensor([[1, 2]]))
    """
    return max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Pair,
    stride: Pair | None = None,
    padding: Pair = 0,
    dilation: Pair = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the result of `max_pool2d` and the index of each maximum.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.max_pool2d_with_indices(pc.tensor([[[1.0, 3.0], [2.0, 0.0]]]), 2)
        (tensor([[[3.]]]), tensor([[[1]]]))
    """
    return max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the result of `max_pool3d` and the index of each maximum.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.max_pool3d_with_indices(pc.arange(8.0).reshape(1, 2, 2, 2), 2)
        (tensor([[[[7.]]]]), tensor([[[[7]]]]))
    """
    return max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


@unbound
def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Compute `channel_shuffle`; a name of PyTorch.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.native_channel_shuffle(pc.arange(4.0).reshape(1, 4, 1, 1), 2).flatten().tolist()
        [0.0, 2.0, 1.0, 3.0]
    """
    return channel_shuffle(input, groups)


def upsample_bilinear(
    input: Tensor,
    size: Sizes | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """Compute `interpolate` with ``mode="bilinear", align_corners=True``.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.upsample_bilinear(pc.tensor([[[[0.0, 4.0]]]]), (1, 3)).flatten().tolist()
        [0.0, 2.0, 4.0]
    """
    options = {"mode": "bilinear", "align_corners": True}
    resized: Tensor = F.interpolate(input, size, scale_factor, **options)
    return resized


def upsample_nearest(
    input: Tensor,
    size: Sizes | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """Compute `interpolate` with ``mode="nearest"``.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.upsample_nearest(pc.tensor([[[[0.0, 4.0]]]]), scale_factor=2).flatten().tolist()
        [0.0, 0.0, 4.0, 4.0, 0.0, 0.0, 4.0, 4.0]
    """
    resized: Tensor = F.interpolate(input, size, scale_factor, mode="nearest")
    return resized


@unbound
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolve sequences whose dimensions are (time, batch, channels).

    Args:
        input: Shape (T, B, C).
        weight: Shape (k, C, D).
        bias: Shape (D).
        pad: Zeros at both ends.

    Returns:
        Shape (T + 2 pad - k + 1, B, D).

    Raises:
        ShapeError: The shapes don't fit together.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.conv_tbc(pc.arange(3.0).reshape(3, 1, 1), pc.ones(2, 1, 1), pc.zeros(1)).flatten()
        tensor([1., 3.])
    """
    if input.ndim != 3 or weight.ndim != 3 or input.shape[2] != weight.shape[1]:
        raise pc.ShapeError(
            f"conv_tbc: `input` must be (T, B, C) and `weight` (k, C, D); "
            f"got shapes {tuple(input.shape)} and {tuple(weight.shape)}"
        )
    result = conv1d(input.permute((1, 2, 0)), weight.permute((2, 1, 0)), bias, padding=pad)
    return result.permute((2, 0, 1))
