"""`torch.masked`: reductions and normalisations over the elements where a mask is true.

A mask has a shape that broadcasts to the input's; None is true everywhere. Where nothing is chosen,
a sum is 0, a product 1, a maximum the least number; means and deviations are nan.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plait

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]


def _filled(input: Any, mask: Any, value: Any, dtype: Any = None) -> Any:
    """The input in a dtype, with a value where the mask is false."""
    x = input if dtype is None else input.to(dtype)
    return x if mask is None else plait.where(mask, x, plait.full((), value, dtype=x.dtype))


def _dims(input: Any, dim: Any) -> tuple[int, ...]:
    """All dimensions for None and (), else the ones asked for."""
    if dim is None or dim == ():
        return tuple(range(input.ndim))
    return tuple(d % max(input.ndim, 1) for d in (dim if isinstance(dim, Sequence) else (dim,)))


def _whole(dtype: Any) -> Any:
    """The dtype of sums."""
    return dtype if dtype.is_floating_point or dtype.is_complex else plait.int64


def _of_quotients(dtype: Any) -> Any:
    """The dtype of means."""
    return dtype if dtype.is_floating_point or dtype.is_complex else plait.get_default_dtype()


def _least(dtype: Any) -> Any:
    return -math.inf if dtype.is_floating_point else (
        False if dtype == plait.bool else plait.iinfo(dtype).min
    )  # fmt: skip


def _largest(dtype: Any) -> Any:
    return math.inf if dtype.is_floating_point else (
        True if dtype == plait.bool else plait.iinfo(dtype).max
    )  # fmt: skip


def sum(
    input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    """Return the sum of the chosen elements.

    Example:
        >>> import plait
        >>> from plait_torch import _masked
        >>> x = plait.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> _masked.sum(x, 1, mask=x > 1)
        tensor([2., 7.])
    """
    x = _filled(input, mask, 0, dtype or _whole(input.dtype))
    return x.sum(_dims(input, dim), keepdim) if input.ndim else x.clone()


def prod(
    input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    """Return the product of the chosen elements."""
    x = _filled(input, mask, 1, dtype or _whole(input.dtype))
    for each in sorted(_dims(input, dim), reverse=True):
        x = x.prod(each, keepdim)
    return x


def cumsum(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Return the sums of the chosen elements up to each."""
    return _filled(input, mask, 0, dtype or _whole(input.dtype)).cumsum(dim)


def cumprod(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Return the products of the chosen elements up to each."""
    return _filled(input, mask, 1, dtype or _whole(input.dtype)).cumprod(dim)


def amax(
    input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    """Return the largest chosen element."""
    kind = dtype or input.dtype
    return _filled(input, mask, _least(kind), kind).amax(_dims(input, dim), keepdim)


def amin(
    input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    """Return the smallest chosen element."""
    kind = dtype or input.dtype
    return _filled(input, mask, _largest(kind), kind).amin(_dims(input, dim), keepdim)


def argmax(
    input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    """Return the index of the largest chosen element."""
    kind = dtype or input.dtype
    return _filled(input, mask, _least(kind), kind).argmax(dim, keepdim)


def argmin(
    input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    """Return the index of the smallest chosen element."""
    kind = dtype or input.dtype
    return _filled(input, mask, _largest(kind), kind).argmin(dim, keepdim)


def _count(input: Any, dim: Any, keepdim: bool, mask: Any) -> Any:
    ones = plait.ones_like(input, dtype=plait.int64)
    return sum(ones, dim, keepdim=keepdim, mask=mask)


def mean(
    input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    """Return the mean of the chosen elements."""
    total = sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask)
    return total / _count(input, dim, keepdim, mask)


def median(
    input: Any, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    """Return the lower median of the chosen elements."""
    if not input.dtype.is_floating_point:
        raise ValueError("masked.median: a tensor of floats is required")
    x = _filled(input, mask, math.nan, dtype)
    return x.nanmedian(dim, keepdim).values if input.ndim else x.nanmedian()


def _variance(
    input: Any, dim: Any, unbiased: Any, keepdim: bool, dtype: Any, mask: Any, correction: Any
) -> Any:
    kind = dtype or _of_quotients(input.dtype)
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    x = input.to(kind)
    middle = mean(x, dim, keepdim=True, mask=mask)
    distance = (x - middle).abs().square()
    total = sum(distance, dim, keepdim=keepdim, mask=mask)
    count = _count(input, dim, keepdim, mask)
    return total / (count - correction).clamp(min=0)


def var(
    input: Any,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Any:
    """Return the variance of the chosen elements."""
    return _variance(input, dim, unbiased, keepdim, dtype, mask, correction)


def std(
    input: Any,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Any:
    """Return the standard deviation of the chosen elements."""
    return _variance(input, dim, unbiased, keepdim, dtype, mask, correction).sqrt()


def norm(
    input: Any,
    ord: float = 2.0,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Any:
    """Return the norm of the chosen elements."""
    value = 0.0 if ord >= 0 else math.inf
    x = _filled(input, mask, value, dtype)
    return plait.linalg.vector_norm(x, ord, _dims(input, dim) or None, keepdim)


def logsumexp(
    input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    """Return the logarithm of the sum of the chosen elements' exponentials."""
    x = _filled(input, mask, -math.inf, dtype or _of_quotients(input.dtype))
    return x.logsumexp(_dims(input, dim), keepdim)


def logaddexp(
    input: Any,
    other: Any,
    *,
    dtype: Any = None,
    input_mask: Any = None,
    other_mask: Any = None,
) -> Any:
    """Return ``log(exp(input) + exp(other))``, without what is not chosen."""
    one = _filled(input, input_mask, -math.inf, dtype)
    return plait.logaddexp(one, _filled(other, other_mask, -math.inf, dtype))


def softmax(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Return the softmax of the chosen elements.

    Example:
        >>> import plait
        >>> from plait_torch import _masked
        >>> _masked.softmax(plait.zeros(3), 0, mask=plait.tensor([True, True, False]))
        tensor([0.5000, 0.5000, 0.0000])
    """
    return _filled(input, mask, -math.inf, dtype).softmax(dim)


def log_softmax(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Return the logarithm of the softmax of the chosen elements."""
    return _filled(input, mask, -math.inf, dtype).log_softmax(dim)


def softmin(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Return the softmin of the chosen elements."""
    return (-_filled(input, mask, math.inf, dtype)).softmax(dim)


def normalize(
    input: Any, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Any = None
) -> Any:
    """Return the chosen elements divided by their norm."""
    length = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled(input, mask, 0, dtype) / length.clamp(min=eps)
