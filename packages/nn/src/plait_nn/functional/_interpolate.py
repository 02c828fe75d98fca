"""Resizing of sequences, images and volumes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import index

import plait_core as pc
from plait_abi import ArgumentError, operator
from plait_abi.frames import warn
from plait_core import Tensor
from plait_nn.functional._checks import Sizes
from plait_nn.functional._package import F

_DIMS = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2, "lanczos": 2}
_MODES = ("nearest", "nearest-exact", *_DIMS, "area")
_OF_IMAGES = ("bilinear", "bicubic", "lanczos")  # modes of antialias and of uint8
_INSTEAD = "`nn.functional.{}` is deprecated. Use `nn.functional.interpolate` instead."
_resample: Callable[..., Tensor] = operator("resample")


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
            "trilinear" (three), "lanczos" (two; needs ``antialias=True``) or "area" (means).
        align_corners: Whether the corners' elements keep their values; for the linear and cubic
            modes.
        recompute_scale_factor: Use the ratio of the sizes instead of the given factors.
        antialias: Whether an image is smoothed when it is made smaller, so that each element is a
            weighted mean of all elements around its coordinate; for "bilinear", "bicubic" (with
            the parameter -1/2, as Pillow has it) and "lanczos".

    Dtypes: floating-point and complex dtypes; for "nearest" and "nearest-exact" all. For
    "bilinear", "bicubic" and "lanczos" also uint8: the columns of an image are computed before its
    rows, both with integer weights and rounded to 0 to 255, as in PyTorch and Pillow.

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
    if antialias and mode not in _OF_IMAGES:
        raise ArgumentError(
            f"interpolate: `antialias` is for modes {', '.join(_OF_IMAGES)}; got {mode!r}"
        )
    if mode == "lanczos" and (align_corners or not antialias):
        raise ArgumentError(
            "interpolate: mode 'lanczos' needs `antialias` True and `align_corners` False; got "
            f"{antialias} and {align_corners}"
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
        assert size is not None
        new = [index(n) for n in (size if isinstance(size, Sequence) else [size] * dims)]
    least = 0 if mode == "area" else 1  # a mean of nothing has a result without elements
    if min(new) < least or min(old) < 1:
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
    return _resampled(input, new, ratios, mode, bool(align_corners), antialias)


class _ModeError(ArgumentError, NotImplementedError):
    """An error of a mode, which is NotImplementedError in PyTorch."""


def _check(
    input: Tensor,
    size: int | Sequence[int] | None,
    factor: float | Sequence[float] | None,
    mode: str,
    align_corners: bool | None,
) -> None:
    dims = input.ndim - 2
    if mode not in _MODES:
        raise _ModeError(f"interpolate: `mode` must be one of {', '.join(_MODES)}; got {mode}")
    if dims not in (1, 2, 3) or _DIMS.get(mode, dims) != dims:
        dimensions = _DIMS[mode] + 2 if mode in _DIMS else "3 to 5"
        raise _ModeError(
            f"interpolate: `input` must have {dimensions} dimensions for mode {mode!r}; "
            f"got shape {tuple(input.shape)}"
        )
    if (size is None) == (factor is None):
        raise ArgumentError("interpolate: exactly one of `size` and `scale_factor` must be given")
    if align_corners is not None and mode not in _DIMS:
        raise ArgumentError(f"interpolate: `align_corners` must be None for mode {mode!r}")
    for name, value in (("size", size), ("scale_factor", factor)):
        if isinstance(value, (tuple, list)) and len(value) != dims:
            raise ArgumentError(
                f"interpolate: `{name}` must have {dims} elements for input {tuple(input.shape)}; "
                f"got {tuple(value)}"
            )


def _check_dtype(input: Tensor, mode: str) -> None:
    if mode.startswith("nearest") or input.is_floating_point() or input.is_complex():
        return
    bytes_too = mode in _OF_IMAGES
    if not (bytes_too and input.dtype == pc.uint8):
        raise pc.DTypeError(
            f"interpolate: `input` must have a floating-point dtype{' or uint8' * bytes_too} for "
            f"mode {mode!r}; got {input.dtype.name}"
        )


def _resampled(
    input: Tensor,
    new: list[int],
    ratios: list[float],
    mode: str,
    align_corners: bool,
    antialias: bool,
) -> Tensor:
    """Resize one dimension after the other."""
    old = list(input.shape[2:])
    linear = mode.endswith("linear")
    # for any factor, as in PyTorch, these keep a size
    keeps = linear or antialias or (input.dtype == pc.uint8 and mode in _DIMS)
    dims = [i for i in range(len(new)) if not (keeps and new[i] == old[i])]
    if mode == "nearest" and len(new) == 2 and sum(new) <= 128:
        # only PyTorch's kernel for small images ignores the factor for the same and the double size
        ratios = [n / m if m in (n, 2 * n) else r for n, m, r in zip(old, new, ratios, strict=True)]
    if input.dtype == pc.uint8:
        dims.reverse()  # each dimension is rounded: PyTorch's and Pillow's order
    else:  # the fewest elements on the way
        shrinking = [i for i in dims if new[i] <= old[i]]
        dims = shrinking + [i for i in reversed(dims) if i not in shrinking]
    # halves are rounded once
    wide = input.itemsize == 2 and len(dims) > 1 and not mode.startswith("nearest")
    result = input.float() if wide else input if dims else input.clone()
    kind = "linear" if linear else mode.removeprefix("bi")
    for i in dims:
        result = _resample(result, i + 2, new[i], ratios[i], kind, align_corners, antialias)
    return result.to(input.dtype) if wide else result


def upsample(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Compute `interpolate`; a name of old programs.

    Args:
        input: Shape (N, C, ...).
        size: Size of the result, one int or one for each spatial dimension.
        scale_factor: Size of the result over that of the input, instead of `size`.
        mode: "nearest", "linear", "bilinear", "bicubic", "trilinear", "area" or "nearest-exact".
        align_corners: Whether the corner elements of input and result lie on each other; for the
            linear and cubic modes.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.upsample(pc.tensor([[[1.0, 2.0]]]), 4).flatten()
        tensor([1., 1., 2., 2.])
    """
    warn(_INSTEAD.format("upsample"))
    resized: Tensor = F.interpolate(input, size, scale_factor, mode, align_corners)
    return resized


def upsample_bilinear(
    input: Tensor, size: Sizes | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """Compute `interpolate` with ``mode="bilinear", align_corners=True``.

    Args:
        input: Shape (N, C, ...).
        size: Size of the result, one int or one for each spatial dimension.
        scale_factor: Size of the result over that of the input, instead of `size`.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.upsample_bilinear(pc.tensor([[[[0.0, 4.0]]]]), (1, 3)).flatten().tolist()
        [0.0, 2.0, 4.0]
    """
    warn(_INSTEAD.format("upsample_bilinear"))
    options = {"mode": "bilinear", "align_corners": True}
    resized: Tensor = F.interpolate(input, size, scale_factor, **options)
    return resized


def upsample_nearest(
    input: Tensor, size: Sizes | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """Compute `interpolate` with ``mode="nearest"``.

    Args:
        input: Shape (N, C, ...).
        size: Size of the result, one int or one for each spatial dimension.
        scale_factor: Size of the result over that of the input, instead of `size`.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.upsample_nearest(pc.tensor([[[[0.0, 4.0]]]]), scale_factor=2).flatten().tolist()
        [0.0, 0.0, 4.0, 4.0, 0.0, 0.0, 4.0, 4.0]
    """
    warn(_INSTEAD.format("upsample_nearest"))
    resized: Tensor = F.interpolate(input, size, scale_factor, mode="nearest")
    return resized
