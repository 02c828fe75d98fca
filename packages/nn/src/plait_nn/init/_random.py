"""Random values: uniform, normal, truncated normal, orthogonal."""

from __future__ import annotations

import math
from typing import Any

import plait_core as pc
from plait_core import Tensor

_ROOT_HALF = math.sqrt(0.5)
_FAR = 30.0  # standard deviations, beyond which the mass is below 1e-197


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Draw from the uniform distribution on ``[a, b)``; return the tensor.

    Args:
        tensor: The tensor to write, which is returned.
        a: Lower end of the interval.
        b: Upper end of the interval.
        generator: The generator of the random numbers; None is the default one.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> w = nn.init.uniform_(pc.empty(100), -1.0, 1.0)
        >>> bool((w.abs() <= 1).all())
        True
    """
    tensor.detach().uniform_(a, b, generator=generator)
    return tensor


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Draw from the normal distribution; return the tensor.

    Args:
        tensor: The tensor to write, which is returned.
        mean: Mean of the distribution.
        std: Standard deviation of the distribution.
        generator: The generator of the random numbers; None is the default one.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.init.normal_(pc.empty(1000), mean=5.0, std=0.5).mean().round()
        tensor(5.)
    """
    tensor.detach().normal_(mean, std, generator=generator)
    return tensor


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Draw from the normal distribution restricted to ``[a, b]``; return the tensor.

    By the inverse of the distribution function, at uniform numbers. Numbers that are not all on one
    side of the mean have the resolution of the uniform ones: in float32 none is farther from the
    mean than 5.4 ``std``, beyond which 1 of 17 million would be.

    Args:
        tensor: The tensor to write, which is returned.
        mean: Mean of the distribution.
        std: Standard deviation of the distribution.
        a: Lower limit of the values.
        b: Upper limit of the values.
        generator: The generator of the random numbers; None is the default one.

    Raises:
        ValueError: ``a`` is not below ``b``, or ``std`` not positive.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> w = nn.init.trunc_normal_(pc.empty(1000))
        >>> bool((w.abs() <= 2).all())
        True
    """
    if not a < b:
        raise ValueError(f"trunc_normal_: `a` must be less than `b`; got {a} and {b}")
    if not std > 0:
        raise ValueError(f"trunc_normal_: `std` must be positive; got {std}")
    low, high = (a - mean) / std, (b - mean) / std
    middle = low < 0 < high
    wide = pc.float32 if middle and tensor.dtype is not pc.float64 else pc.float64
    values = pc.empty(tuple(tensor.shape), dtype=wide, device=tensor.device)
    if middle:
        most = 1.0 - pc.finfo(wide).eps / 2  # the largest number below 1
        values.uniform_(*(math.erf(x * _ROOT_HALF) for x in (low, high)), generator=generator)
        values = values.clamp(-most, most).erfinv() / _ROOT_HALF
    elif low >= 0:
        values = _tail(values, low, high, generator)
    else:
        values = -_tail(values, -high, -low, generator)
    # scaling rounds, and the ends must be respected
    tensor.detach().copy_((values * std + mean).clamp(a, b))
    return tensor


def _tail(values: Tensor, near: float, far: float, generator: Any) -> Tensor:
    """Draw float64 values of a standard normal on [near, far], where near is not negative."""
    least = 2.0**-53  # of the mass beyond `near`
    if near < _FAR:
        mass = 0.5 * math.erfc(near * _ROOT_HALF)
        values.uniform_(0.5 * math.erfc(far * _ROOT_HALF), mass, generator=generator)
        return -pc.special.ndtri(values.clamp(min=least * mass))
    # There exp(-x^2 / 2) is x exp(-x^2 / 2) but for a factor that is constant to 1 / near^2.
    values.uniform_(math.exp(0.5 * (near - far) * (near + far)), 1.0, generator=generator)
    return (near * near - 2.0 * values.clamp(min=least).log()).sqrt()


def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with ``gain`` times a random (semi-)orthogonal matrix (Saxe et al. 2013).

    The dimensions after the first count as one. The matrix is uniformly distributed: it comes from
    the Gram-Schmidt process, run twice for accuracy, on normal numbers.

    Args:
        tensor: The tensor to write, which is returned.
        gain: Factor of the standard deviation; see `calculate_gain`.
        generator: The generator of the random numbers; None is the default one.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> w = nn.init.orthogonal_(pc.empty(3, 5))
        >>> bool(((w @ w.transpose(0, 1)) - pc.eye(3)).abs().max() < 1e-5)
        True
    """
    if tensor.ndim < 2:
        raise ValueError(
            f"orthogonal_: `tensor` must have at least 2 dimensions; got {tuple(tensor.shape)}"
        )
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    if rows == 0 or columns == 0:
        return tensor
    vectors = pc.empty(rows, columns, dtype=tensor.dtype, device=tensor.device)
    vectors.normal_(0.0, 1.0, generator=generator)
    if rows >= columns:
        vectors = vectors.transpose(0, 1).contiguous()
    for i in range(min(rows, columns)):
        v = vectors.narrow(0, i, 1)
        for _ in range(2 if i else 0):
            before = vectors.narrow(0, 0, i)
            v = v - (v @ before.transpose(0, 1)) @ before
        vectors.narrow(0, i, 1).copy_(v / (v * v).sum().sqrt())
    result = vectors if rows < columns else vectors.transpose(0, 1)
    tensor.detach().copy_((result * gain).reshape(tuple(tensor.shape)))
    return tensor


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Draw a matrix from the normal distribution and zero a fraction of each column.

    Args:
        tensor: Shape (rows, columns).
        sparsity: The fraction of zeros, rounded up to whole elements of a column.
        std: The standard deviation of the others.
        generator: The generator of the random numbers.

    Raises:
        ValueError: The tensor does not have two dimensions.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> w = nn.init.sparse_(pc.empty(10, 3), sparsity=0.25)
        >>> (w == 0).sum(0).tolist()
        [3, 3, 3]
    """
    if tensor.ndim != 2:
        raise ValueError(
            f"sparse_: `tensor` must have 2 dimensions; got shape {tuple(tensor.shape)}"
        )
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    values = tensor.detach().normal_(0.0, std, generator=generator)
    for column in range(columns):
        rows_of_zeros = pc.randperm(rows, generator=generator, device=values.device)[:zeros]
        values[rows_of_zeros, column] = 0
    return tensor
