"""Resizing of sequences, images and volumes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import plait_core as pc
from plait_abi import ArgumentError
from plait_core import Tensor
from plait_nn.functional._package import F
from plait_nn.functional._sizes import reserve

__all__ = ["interpolate", "upsample"]

_DIMS = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}
_MODES = ("nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area")
_CUBIC = -0.75
_Number = TypeVar("_Number", float, Tensor)


def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    r"""Resize the dimensions after the channels.

    The output element i is at the input coordinate :math:`(i + 1/2) s - 1/2`, where s is the ratio
    of the sizes, or with ``align_corners`` at :math:`i (n_{in} - 1) / (n_{out} - 1)`.

    Args:
        input: Shape (N, C, L), (N, C, H, W) or (N, C, D, H, W).
        size: The new sizes, or
        scale_factor: factors of the old ones, rounded down.
        mode: "nearest", "nearest-exact", "linear" (one dimension), "bilinear" and "bicubic" (two),
            "trilinear" (three) or "area" (means).
        align_corners: Whether the corners' elements keep their values; for the linear and cubic
            modes.
        recompute_scale_factor: Use the ratio of the sizes instead of the given factors.
        antialias: Whether an image is smoothed when it is made smaller, so that each element is a
            weighted mean of all elements around its coordinate; for "bilinear" and "bicubic" (with
            the parameter -1/2, as Pillow has it).

    Dtypes: floating-point and complex dtypes; for "nearest" and "nearest-exact" all. For "bilinear"
    and "bicubic" also uint8: the columns of an image are computed before its rows, both with
    integer weights and rounded to 0 to 255, as in PyTorch and Pillow.

    Raises:
        ValueError: The arguments don't fit together.
        DTypeError: The input has another dtype.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> x = pc.tensor([[[0.0, 4.0]]])
        >>> F.interpolate(x, scale_factor=2, mode="linear").flatten()
        tensor([0., 1., 3., 4.])
    """
    dims = input.ndim - 2
    _check(input, size, scale_factor, mode, align_corners)
    _check_dtype(input, mode)
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ArgumentError(
            f"interpolate: `antialias` is for modes bilinear and bicubic; got {mode!r}"
        )
    if recompute_scale_factor and size is not None:
        raise ArgumentError("interpolate: `recompute_scale_factor` must be False with `size`")
    old = tuple(input.shape[2:])
    factors: Sequence[float] | None = None
    if scale_factor is not None:
        many = isinstance(scale_factor, (tuple, list))
        factors = list(scale_factor) if many else [scale_factor] * dims  # type: ignore
        new = [math.floor(float(n) * f) for n, f in zip(old, factors, strict=True)]
        if recompute_scale_factor:
            factors = None
    else:
        new = [size] * dims if isinstance(size, int) else [int(n) for n in size or ()]
    if min(new) < 1 or min(old) < 1:
        raise ArgumentError(
            f"interpolate: sizes must be positive; got {tuple(new)} from {tuple(input.shape)}"
        )
    if mode == "area":
        pools = (F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d)
        pooled: Tensor = pools[dims - 1](input, tuple(new))
        return pooled
    if factors is None:
        ratios = [n / m for n, m in zip(old, new, strict=True)]
    else:
        ratios = [1.0 / factor for factor in factors]
    if input.dtype == pc.uint8 and mode in ("bilinear", "bicubic"):
        return _resized_bytes(input, new, ratios, mode, bool(align_corners), antialias)
    result = input
    # only PyTorch's kernel for small images keeps coordinates if the sizes are equal
    plain = dims == 2 and sum(new) <= 128
    for i, ratio in enumerate(ratios):
        if antialias:
            result = _smoothed(result, i + 2, new[i], ratio, mode, bool(align_corners))
            continue
        result = _resized(result, i + 2, new[i], ratio, mode, bool(align_corners), plain)
    return result


def _check(
    input: Tensor,
    size: int | Sequence[int] | None,
    factor: float | Sequence[float] | None,
    mode: str,
    align_corners: bool | None,
) -> None:
    dims = input.ndim - 2
    if mode not in _MODES:
        raise ArgumentError(f"interpolate: `mode` must be one of {', '.join(_MODES)}; got {mode!r}")
    if dims not in (1, 2, 3) or _DIMS.get(mode, dims) != dims:
        wanted = _DIMS[mode] + 2 if mode in _DIMS else "3 to 5"
        raise ArgumentError(
            f"interpolate: `input` must have {wanted} dimensions for mode {mode!r}; "
            f"got shape {tuple(input.shape)}"
        )
    if (size is None) == (factor is None):
        raise ArgumentError("interpolate: exactly one of `size` and `scale_factor` must be given")
    if align_corners is not None and mode not in _DIMS:
        raise ArgumentError(f"interpolate: `align_corners` must be None for mode {mode!r}")
    for name, given in (("size", size), ("scale_factor", factor)):
        if isinstance(given, (tuple, list)) and len(given) != dims:
            raise ArgumentError(
                f"interpolate: `{name}` must have {dims} elements for input {tuple(input.shape)}; "
                f"got {tuple(given)}"
            )


def _check_dtype(input: Tensor, mode: str) -> None:
    if mode.startswith("nearest") or input.is_floating_point() or input.is_complex():
        return
    bytes_too = mode in ("bilinear", "bicubic")
    if not (bytes_too and input.dtype == pc.uint8):
        raise pc.DTypeError(
            f"interpolate: `input` must have a floating-point dtype{' or uint8' * bytes_too} for "
            f"mode {mode!r}; got {input.dtype.name}"
        )


def _resized(
    input: Tensor, dim: int, new: int, ratio: float, mode: str, align_corners: bool, plain: bool
) -> Tensor:
    """Resize one dimension: each element of the result is a sum of a few weighted ones.

    ``plain``: "nearest" to the same or twice the size ignores the ratio.
    """
    old, device = input.shape[dim], input.device
    reserve(new * (48 + 3 * (input.numel() // old) * input.element_size()), input)
    if new == old and mode.endswith("linear"):  # for any factor, as in PyTorch
        return input
    if mode == "nearest" and plain and new in (old, 2 * old):
        indices = pc.arange(new, device=device).div(new // old, rounding_mode="floor")
        return input.index_select(dim, indices)
    if mode.startswith("nearest"):
        # in the precision of PyTorch, as a different rounding would select another element
        precision = pc.float64 if input.dtype == pc.float64 else pc.float32
        at = pc.arange(new, dtype=precision, device=device)
        at = at + 0.5 if mode == "nearest-exact" else at
        step = pc.tensor(ratio, dtype=precision, device=device)
        return input.index_select(dim, (at * step).floor().clamp(max=old - 1).to(pc.int64))
    at = pc.arange(new, dtype=pc.float64, device=device)
    if align_corners:
        sources = at * ((old - 1) / (new - 1) if new > 1 else 0.0)
    else:
        sources = (at + 0.5) * ratio - 0.5
    if mode != "bicubic":
        sources = sources.clamp(min=0.0)
    bases = sources.floor()
    fraction = sources - bases
    if mode == "bicubic":
        weights, first = _cubic(fraction), -1
    else:
        inside = bases.clamp(max=old - 1)
        fraction = sources - inside
        weights, bases, first = (1 - fraction, fraction), inside, 0
    total: Tensor | None = None
    shape = (new,) + (1,) * (input.ndim - dim - 1)
    for k, weight in enumerate(weights):
        indices = (bases + (first + k)).clamp(0, old - 1).to(pc.int64)
        term = input.index_select(dim, indices) * weight.to(input.dtype).reshape(shape)
        total = term if total is None else total + term
    assert total is not None
    return total


def _smoothed(
    input: Tensor, dim: int, new: int, ratio: float, mode: str, align_corners: bool
) -> Tensor:
    """Resize one dimension with a kernel that is scaled to the distance of the results."""
    old = input.shape[dim]
    if align_corners:
        ratio = (old - 1) / (new - 1) if new > 1 else 0.0
    wide = max(ratio, 1.0)
    reach = wide * (2 if mode == "bicubic" else 1)
    reserve(new * (8 * old + input.numel() // old * 4), input)
    rows = []
    for i in range(new):
        centre = ratio * (i + 0.5)
        first = max(int(centre - reach + 0.5), 0)
        last = min(int(centre + reach + 0.5), old)
        weights = [_kernel((j + 0.5 - centre) / wide, mode) for j in range(first, last)]
        total = sum(weights)
        row = [w / total for w in weights]
        rows.append([0.0] * first + row + [0.0] * (old - last))
    # halves are summed in single precision
    dtype = pc.float32 if input.itemsize == 2 else input.dtype
    matrix = pc.tensor(rows, dtype=dtype, device=input.device)
    result = matrix @ input.to(dtype).movedim(dim, -2)
    return result.movedim(-2, dim).to(input.dtype)


def _kernel(x: float, mode: str, a: float = -0.5) -> float:
    x = abs(x)
    if mode == "bilinear":
        return max(1 - x, 0.0)
    return _near(x, a) if x < 1 else _far(x, a) if x < 2 else 0.0


def _resized_bytes(
    input: Tensor,
    new: list[int],
    ratios: list[float],
    mode: str,
    align_corners: bool,
    antialias: bool,
) -> Tensor:
    """Resize images of uint8 with integer weights: columns first, then rows, each rounded."""
    result = input
    for dim in (3, 2):
        old, count = input.shape[dim], new[dim - 2]
        if count == old:  # for any factor, as in PyTorch
            continue
        ratio = ratios[dim - 2]
        if align_corners:
            ratio = (old - 1) / (count - 1) if count > 1 else 0.0
        rows = _taps(old, count, ratio, mode, align_corners, antialias)
        result = _weighted_bytes(result, dim, rows)
    return result


def _taps(
    old: int, new: int, ratio: float, mode: str, align_corners: bool, antialias: bool
) -> list[dict[int, float]]:
    """Return the weights of each result by index; they add up to 1. Weights outside of the image
    count for the border, and with ``antialias`` not at all.
    """
    wide = max(ratio, 1.0) if antialias else 1.0
    reach = wide * (2 if mode == "bicubic" else 1)
    shift = 0.5 if align_corners and not antialias else 0.0
    rows = []
    for i in range(new):
        centre = ratio * (i + 0.5 - shift)
        first = math.floor(centre - reach + 0.5 + shift)
        last = math.floor(centre + reach + 0.5 + shift)
        row: dict[int, float] = {}
        for j in range(max(first, 0), min(last, old)) if antialias else range(first, last):
            weight = _kernel((j - centre + 0.5 - shift) / wide, mode, -0.5 if antialias else _CUBIC)
            inside = min(max(j, 0), old - 1)
            row[inside] = row.get(inside, 0.0) + weight
        total = sum(row.values())
        rows.append({j: weight / total for j, weight in row.items()})
    return rows


def _weighted_bytes(input: Tensor, dim: int, rows: list[dict[int, float]]) -> Tensor:
    """Return the sums of weighted elements along ``dim``, with weights of at most 15 bits."""
    largest = max(max(row.values()) for row in rows)
    bits = 0
    while bits < 22 and int(0.5 + largest * (1 << (bits + 1))) < 1 << 15:
        bits += 1
    shape = (len(rows),) + (1,) * (input.ndim - dim - 1)
    count = max(map(len, rows))
    reserve(len(rows) * (16 * count + 9 * (input.numel() // input.shape[dim])), input)
    total: Tensor | None = None
    for k in range(count):
        pairs = [list(row.items())[k] if k < len(row) else (0, 0.0) for row in rows]
        weights = [int(math.copysign(0.5, w) + w * (1 << bits)) for _, w in pairs]
        indices = pc.tensor([j for j, _ in pairs], dtype=pc.int64, device=input.device)
        weight = pc.tensor(weights, dtype=pc.int32, device=input.device).reshape(shape)
        term = input.index_select(dim, indices).to(pc.int32) * weight
        total = term if total is None else total + term
    assert total is not None
    half = (1 << bits) >> 1
    return pc.bitwise_right_shift(total + half, bits).clamp(0, 255).to(pc.uint8)


def _cubic(t: Tensor) -> tuple[Tensor, ...]:
    """The weights of the four neighbours at the fraction t between the middle two (Keys 1981)."""
    return _far(t + 1, _CUBIC), _near(t, _CUBIC), _near(1 - t, _CUBIC), _far(2 - t, _CUBIC)


def _near(x: _Number, a: float) -> _Number:
    return ((a + 2) * x - (a + 3)) * x * x + 1


def _far(x: _Number, a: float) -> _Number:
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a


def upsample(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Compute `interpolate`; a name of old programs.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.upsample(pc.tensor([[[1.0, 2.0]]]), 4).flatten()
        tensor([1., 1., 2., 2.])
    """
    resized: Tensor = F.interpolate(input, size, scale_factor, mode, align_corners)
    return resized
