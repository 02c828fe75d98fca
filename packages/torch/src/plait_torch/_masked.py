"""`torch.masked`: reductions and normalisations over the elements where a mask is true.

A mask has a shape that broadcasts to the input's; None is true everywhere. Where nothing is chosen,
a sum is 0, a product 1, a maximum the least number; means and deviations are nan. transformers
takes means and variances by it.
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
    """All dimensions for None and (), else the requested ones."""
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


def _reduction(name: str, fill: Any, kind_of: Any = None, all_dims: bool = True) -> Any:
    """Return a reduction: the method of a tensor in which `fill` replaces masked elements."""

    def reduce(
        input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
    ) -> Any:
        kind = dtype or (input.dtype if kind_of is None else kind_of(input.dtype))
        x = _filled(input, mask, fill(kind) if callable(fill) else fill, kind)
        return getattr(x, name)(_dims(input, dim) if all_dims else dim, keepdim)

    reduce.__name__, reduce.__doc__ = name, f"`Tensor.{name}` of the chosen elements."
    return reduce


def _along(name: str, fill: Any, kind_of: Any = lambda dtype: None) -> Any:
    """Return a function along a dimension: the method of a tensor, as `_reduction` does."""

    def compute(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
        return getattr(_filled(input, mask, fill, dtype or kind_of(input.dtype)), name)(dim)

    compute.__name__, compute.__doc__ = name, f"`Tensor.{name}` of the chosen elements."
    return compute


amax = _reduction("amax", _least)
amin = _reduction("amin", _largest)
argmax = _reduction("argmax", _least, all_dims=False)
argmin = _reduction("argmin", _largest, all_dims=False)
logsumexp = _reduction("logsumexp", -math.inf, _of_quotients)
cumsum = _along("cumsum", 0, _whole)
cumprod = _along("cumprod", 1, _whole)
softmax = _along("softmax", -math.inf)
log_softmax = _along("log_softmax", -math.inf)


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
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    x = input.to(dtype or _of_quotients(input.dtype))
    middle = mean(x, dim, keepdim=True, mask=mask)
    distance = (x - middle).abs().square()
    total = sum(distance, dim, keepdim=keepdim, mask=mask)
    count = _count(input, dim, keepdim, mask)
    return total / (count - correction).clamp(min=0)


def std(input: Any, dim: Any = None, unbiased: bool | None = None, **options: Any) -> Any:
    """Return the standard deviation of the chosen elements: the root of `var`."""
    return var(input, dim, unbiased, **options).sqrt()


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


def logaddexp(
    input: Any, other: Any, *, dtype: Any = None, input_mask: Any = None, other_mask: Any = None
) -> Any:
    """Return ``log(exp(input) + exp(other))``, without what is not chosen."""
    one = _filled(input, input_mask, -math.inf, dtype)
    return plait.logaddexp(one, _filled(other, other_mask, -math.inf, dtype))


def softmin(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Return the softmin of the chosen elements."""
    return (-_filled(input, mask, math.inf, dtype)).softmax(dim)


def normalize(
    input: Any, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Any = None
) -> Any:
    """Return the chosen elements divided by their norm."""
    length = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled(input, mask, 0, dtype) / length.clamp(min=eps)
