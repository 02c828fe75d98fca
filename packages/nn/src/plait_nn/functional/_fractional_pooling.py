"""Maxima over windows at pseudorandom distances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plait_core as pc
from plait_abi import ArgumentError
from plait_core import Tensor
from plait_nn.functional._sizes import Sizes, sizes_of

__all__ = [
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
]


def _wanted(
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
    targets = _wanted(operator, dims, spatial, output_size, output_ratio)
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
    samples: Tensor, spatial: tuple[int, ...], wanted: tuple[int, ...], kernel: tuple[int, ...]
) -> Tensor:
    """Return the index in its plane of each element of each window: (N, C, *wanted, *kernel)."""
    dims = len(spatial)
    total: Tensor | None = None
    for dim in range(dims):
        # the first sample is for the width of images, and for the depth of volumes
        sample = samples.select(2, dims - 1 - dim if dims == 2 else dim)
        starts = _starts(sample, spatial[dim], wanted[dim], kernel[dim])
        reach = pc.arange(kernel[dim], device=samples.device)
        at = (starts.unsqueeze(-1) + reach) * math.prod(spatial[dim + 1 :])
        shape = [*at.shape[:2], *[1] * (2 * dims)]
        shape[2 + dim], shape[2 + dims + dim] = wanted[dim], kernel[dim]
        at = at.reshape(shape)
        total = at if total is None else total + at
    assert total is not None
    return total


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the result of `fractional_max_pool2d` with ``return_indices``.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.fractional_max_pool2d_with_indices(pc.tensor([[[1.0, 3.0], [2.0, 0.0]]]), 2, 1)
        (tensor([[[3.]]]), tensor([[[1]]]))
    """
    return _pool(2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the result of `fractional_max_pool3d` with ``return_indices``.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> x = pc.arange(8.0).reshape(1, 2, 2, 2)
        >>> F.fractional_max_pool3d_with_indices(x, 2, 1)
        (tensor([[[[7.]]]]), tensor([[[[7]]]]))
    """
    return _pool(3, input, kernel_size, output_size, output_ratio, _random_samples)


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
        return_indices: Also return the index of each maximum in D x H x W.
        _random_samples: Numbers in [0, 1), shape (N, C, 3); None draws them.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> tuple(F.fractional_max_pool3d(pc.randn(1, 2, 5, 6, 7), 2, (2, 3, 4)).shape)
        (1, 2, 2, 3, 4)
    """
    result = _pool(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return result if return_indices else result[0]
