"""Sampling of images at the points of a grid, and the grids of affine maps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import plait_core as pc
from plait_abi import ArgumentError
from plait_abi.frames import warn
from plait_core import Tensor
from plait_nn.functional._checks import require_floating, reserve

_CUBIC = -0.75


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    r"""Return the source position of each output pixel under affine maps (Jaderberg et al. 2015).

    Args:
        theta: The maps, (N, 2, 3) for images or (N, 3, 4) for volumes.
        size: Of the output, (N, C, H, W) or (N, C, D, H, W).
        align_corners: Whether -1 and 1 are the middles of the outer pixels instead of their edges.

    Returns:
        Shape (N, H, W, 2) or (N, D, H, W, 3), the last dimension in the order x, y, z.

    Raises:
        ShapeError: The shapes don't fit together.
        DTypeError: The maps are no floating-point numbers.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> same = pc.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
        >>> F.affine_grid(same, (1, 1, 1, 2), align_corners=True)[0, 0]
        tensor([[-1.,  0.],
                [ 1.,  0.]])
    """
    dims = len(size) - 2
    if dims not in (2, 3) or tuple(theta.shape) != (size[0], dims, dims + 1):
        raise pc.ShapeError(
            f"affine_grid: `theta` must be (N, 2, 3) with `size` (N, C, H, W), or (N, 3, 4) with "
            f"(N, C, D, H, W); got shape {tuple(theta.shape)} and {tuple(size)}"
        )
    require_floating("affine_grid", "theta", theta)
    if align_corners is None:
        _warn_of_default("affine_grid")
    reserve(sum(64 * max(n, 0) for n in size[2:]), theta)
    axes = []
    for n in size[2:]:
        if align_corners:
            steps = [2 * i / (n - 1) - 1 if n > 1 else 0.0 for i in range(n)]
        else:
            steps = [(2 * i + 1) / n - 1 for i in range(n)]
        axes.append(pc.tensor(steps, dtype=theta.dtype, device=theta.device))
    coordinates = [each.flatten() for each in pc.meshgrid(*axes, indexing="ij")][::-1]
    points = pc.stack([*coordinates, pc.ones_like(coordinates[0])], 1)
    return (points @ theta.transpose(1, 2)).reshape((size[0], *size[2:], dims))


def _warn_of_default(name: str) -> None:
    warn(
        "Default grid_sample and affine_grid behavior has changed to align_corners=False since "
        f"1.3.0 of PyTorch: {name} takes False; pass `align_corners`"
    )


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    r"""Return the interpolated values of images at given points.

    Args:
        input: Shape (N, C, H, W) or (N, C, D, H, W).
        grid: Shape (N, H', W', 2) or (N, D', H', W', 3): points x, y, z, from -1 to 1.
        mode: "bilinear" (of volumes: trilinear), "nearest", or of images "bicubic".
        padding_mode: The values outside of the image: "zeros", "border" or "reflection".
        align_corners: Whether -1 and 1 are the middles of the outer pixels instead of their edges.

    Returns:
        Shape (N, C, H', W') or (N, C, D', H', W').

    Raises:
        ShapeError: The shapes don't fit together.
        DTypeError: The images or the points are no floating-point numbers.
        ValueError: An unknown word, or ``mode="bicubic"`` with volumes.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> x = pc.tensor([[[[0.0, 4.0]]]])
        >>> F.grid_sample(x, pc.tensor([[[[0.25, 0.0]]]]), align_corners=True).item()
        2.5
    """
    dims = input.ndim - 2
    if dims not in (2, 3) or grid.ndim != input.ndim or grid.shape[-1] != dims:
        raise pc.ShapeError(
            f"grid_sample: `input` must be (N, C, H, W) with `grid` (N, H', W', 2), or one more "
            f"dimension; got shapes {tuple(input.shape)} and {tuple(grid.shape)}"
        )
    if grid.shape[0] != input.shape[0] or 0 in tuple(input.shape[2:]):
        raise pc.ShapeError(
            f"grid_sample: `input` and `grid` must have the same batch, and images pixels; "
            f"got shapes {tuple(input.shape)} and {tuple(grid.shape)}"
        )
    require_floating("grid_sample", "input", input)
    require_floating("grid_sample", "grid", grid)
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ArgumentError(
            f"grid_sample: `mode` must be bilinear, nearest or bicubic; got {mode!r}"
        )
    if mode == "bicubic" and dims != 2:
        raise ArgumentError(
            f"grid_sample: `mode` bicubic is for images (N, C, H, W); got shape "
            f"{tuple(input.shape)}"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ArgumentError(
            f"grid_sample: `padding_mode` must be zeros, border or reflection; got {padding_mode!r}"
        )
    if align_corners is None:
        _warn_of_default("grid_sample")
    sizes = tuple(input.shape[2:])
    flat = grid.reshape((grid.shape[0], math.prod(grid.shape[1:-1]), dims))
    coordinates = []  # in pixels, in the order of the dimensions
    for i, size in enumerate(sizes):
        x = flat[:, :, dims - 1 - i]
        x = (x + 1) * (size - 1) / 2 if align_corners else ((x + 1) * size - 1) / 2
        if mode != "bicubic":  # bicubic handles each of the sixteen pixels separately
            x = _inside(x, size, padding_mode, bool(align_corners))
        coordinates.append(x)
    pixels = input.flatten(2)
    if mode == "bicubic":
        result = _bicubic(pixels, coordinates, sizes, padding_mode, bool(align_corners))
    elif mode == "nearest":
        result = _pixels(pixels, [p.detach().round() for p in coordinates], sizes)
        if grid.requires_grad:  # its gradient is zeros, not None
            everywhere = pc.ones_like(coordinates[0], dtype=pc.bool)
            result = result + coordinates[0].masked_fill(everywhere, 0).unsqueeze(1)
    else:
        lows = [p.detach().floor() for p in coordinates]
        shares = [p - low for p, low in zip(coordinates, lows, strict=True)]
        result = pixels.new_zeros((*pixels.shape[:2], flat.shape[1]))
        for corner in itertools.product((0, 1), repeat=dims):
            weight: Tensor | None = None
            for bit, share in zip(corner, shares, strict=True):
                part = share if bit else 1 - share
                weight = part if weight is None else weight * part
            assert weight is not None
            at = [low + bit for bit, low in zip(corner, lows, strict=True)]
            result = result + _pixels(pixels, at, sizes) * weight.unsqueeze(1)
    return result.reshape((*input.shape[:2], *grid.shape[1:-1]))


def _bicubic(
    pixels: Tensor,
    coordinates: list[Tensor],
    sizes: tuple[int, ...],
    padding_mode: str,
    align_corners: bool,
) -> Tensor:
    """Return the sum over 4 x 4 pixels, by Keys' kernel (1981) with the parameter -3/4."""
    lows = [p.detach().floor() for p in coordinates]
    weights = []
    for place, low in zip(coordinates, lows, strict=True):
        t = place - low
        weights.append([_far(t + 1), _near(t), _near(1 - t), _far(2 - t)])
    result = pixels.new_zeros((*pixels.shape[:2], coordinates[0].shape[1]))
    for row, column in itertools.product(range(4), repeat=2):
        at = [
            _inside(low + (k - 1), size, padding_mode, align_corners)
            for low, k, size in zip(lows, (row, column), sizes, strict=True)
        ]
        weight = weights[0][row] * weights[1][column]
        result = result + _pixels(pixels, at, sizes) * weight.unsqueeze(1)
    return result


def _near(x: Tensor) -> Tensor:
    return ((_CUBIC + 2) * x - (_CUBIC + 3)) * x * x + 1


def _far(x: Tensor) -> Tensor:
    return ((_CUBIC * x - 5 * _CUBIC) * x + 8 * _CUBIC) * x - 4 * _CUBIC


def _pixels(pixels: Tensor, at: list[Tensor], sizes: tuple[int, ...]) -> Tensor:
    """Return the pixels (N, C, P) at integer coordinates, each (N, Q); 0 outside of the image."""
    index: Tensor | None = None
    inside: Tensor | None = None
    for place, size in zip(at, sizes, strict=True):
        there = (place >= 0) & (place <= size - 1)
        number = place.masked_fill(~there, 0).long()
        inside = there if inside is None else inside & there
        index = number if index is None else index * size + number
    assert index is not None and inside is not None
    indices = index.unsqueeze(1).expand((index.shape[0], pixels.shape[1], index.shape[1]))
    return pixels.gather(2, indices).masked_fill(~inside.unsqueeze(1), 0)


def _inside(x: Tensor, size: int, padding_mode: str, align_corners: bool) -> Tensor:
    """Return coordinates inside of the image, as ``padding_mode`` says."""
    if padding_mode == "zeros":
        return x
    if padding_mode == "reflection":
        low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
        if span == 0:
            return x * 0
        # a triangle wave between the borders, with twice the span as period
        distance = (x.detach() - low).abs()
        turns = (distance / span).floor()
        rest = distance - turns * span
        falls = pc.remainder(turns, 2) == 1
        sign = pc.where(x.detach() - low < 0, -1.0, 1.0).to(x.dtype)
        slope = pc.where(falls, -sign, sign)
        target = pc.where(falls, span - rest, rest) + low
        x = target + slope * (x - x.detach())
    # the borders count as outside, so that no slope beyond the last pixel is taken there
    within = (x > 0) & (x < size - 1)
    return pc.where(within, x, x.detach().clamp(0, size - 1))
