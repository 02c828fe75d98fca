"""Functions that PyTorch's own modules call and some programs call too: ``torch.native_*``,
``torch.grid_sampler*``, ``torch.empty_permuted``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plait
import plait.nn.functional as F

__all__ = [
    "_convert_indices_from_coo_to_csr",
    "empty_permuted",
    "grid_sampler",
    "grid_sampler_2d",
    "grid_sampler_3d",
    "native_group_norm",
    "native_layer_norm",
]

_INTERPOLATIONS = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def native_layer_norm(
    input: Any, normalized_shape: Sequence[int], weight: Any, bias: Any, eps: float
) -> tuple[Any, Any, Any]:
    """Return layer normalisation, and mean and reciprocal deviation of each group, which
    have the dtype of the weight.

    Example:
        >>> import plait
        >>> from plait_torch._native_functions import native_layer_norm
        >>> native_layer_norm(plait.tensor([[1.0, 3.0]]), (2,), None, None, 0.0)
        (tensor([[-1.,  1.]]), tensor([[2.]]), tensor([[1.]]))
    """
    dims = tuple(range(-len(normalized_shape), 0))
    x = input if weight is None else input.to(weight.dtype)
    mean = x.mean(dims, keepdim=True)
    deviation = (x.var(dims, correction=0, keepdim=True) + eps).rsqrt()
    return F.layer_norm(input, tuple(normalized_shape), weight, bias, eps), mean, deviation


def native_group_norm(
    input: Any, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Any, Any, Any]:
    """Return group normalisation of N samples of C channels and HxW elements each, and mean and
    reciprocal deviation, both (N, group), which have the dtype of the weight.

    Example:
        >>> import plait
        >>> from plait_torch._native_functions import native_group_norm
        >>> y, mean, deviation = native_group_norm(plait.ones(2, 4, 3), None, None, 2, 4, 3, 2, 1.0)
        >>> mean.tolist(), deviation.tolist()
        ([[1.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]])
    """
    if N * C * HxW != input.numel():
        raise RuntimeError(
            f"native_group_norm: {N} x {C} x {HxW} elements are required; "
            f"got shape {tuple(input.shape)}"
        )
    x = input if weight is None else input.to(weight.dtype)
    groups = x.reshape(N, group, C // group * HxW)
    deviation = (groups.var(-1, correction=0) + eps).rsqrt()
    return F.group_norm(input, group, weight, bias, eps), groups.mean(-1), deviation


def grid_sampler(
    input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Any:
    """`grid_sample` with numbers for the modes: bilinear, nearest, bicubic are 0, 1, 2, and zeros,
    border, reflection likewise.

    Example:
        >>> import plait
        >>> from plait_torch._native_functions import grid_sampler
        >>> grid_sampler(plait.ones(1, 1, 2, 2), plait.zeros(1, 1, 1, 2), 0, 0, False)
        tensor([[[[1.]]]])
    """
    mode, padding = _INTERPOLATIONS[interpolation_mode], _PADDINGS[padding_mode]
    return F.grid_sample(input, grid, mode, padding, align_corners)


grid_sampler_2d = grid_sampler_3d = grid_sampler


def empty_permuted(size: Sequence[int], physical_layout: Sequence[int], **options: Any) -> Any:
    """Return an uninitialised tensor whose dimensions lie in memory in the given order, the
    outermost first.

    Example:
        >>> from plait_torch._native_functions import empty_permuted
        >>> empty_permuted((2, 3, 4), (0, 2, 1)).stride()
        (12, 1, 3)
    """
    if sorted(physical_layout) != list(range(len(size))):
        raise RuntimeError(
            f"empty_permuted: `physical_layout` must be a permutation of {len(size)} dimensions; "
            f"got {tuple(physical_layout)}"
        )
    result = plait.empty(tuple(size[dim] for dim in physical_layout), **options)
    return result.permute(*(list(physical_layout).index(dim) for dim in range(len(size))))


def _convert_indices_from_coo_to_csr(
    input: plait.Tensor, size: int, *, out_int32: bool = False
) -> plait.Tensor:
    """Return where each row begins among sorted row indices, and how many there are.

    Args:
        input: sorted indices in ``[0, size)``, of one dimension.
        size: the number of rows.
        out_int32: whether the result is int32 in place of int64.

    Example:
        >>> import plait
        >>> from plait_torch._native_functions import _convert_indices_from_coo_to_csr
        >>> _convert_indices_from_coo_to_csr(plait.tensor([0, 0, 2]), 4)
        tensor([0, 2, 2, 3, 3])
    """
    rows = plait.arange(size + 1, dtype=input.dtype)
    return plait.searchsorted(input, rows, out_int32=out_int32)
