"""Random values: uniform, normal, truncated normal, orthogonal."""

from __future__ import annotations

import math
from typing import Any

import plait_core as pc
from plait_core import Tensor

__all__ = ["normal_", "orthogonal_", "sparse_", "trunc_normal_", "uniform_"]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Draw from the uniform distribution on ``[a, b)``; return the tensor.

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

    By rejection: normal proposals where ``[a, b]`` holds much of the mass, else uniform ones.

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
    values = pc.empty(tuple(tensor.shape), dtype=tensor.dtype, device=tensor.device)
    missing = _propose(values, low, high, generator)
    while bool(missing.any()):
        fresh = pc.empty_like(values)
        rejected = _propose(fresh, low, high, generator)
        values = pc.where(missing & ~rejected, fresh, values)
        missing = missing & rejected
    # scaling rounds, and the ends must be respected
    tensor.detach().copy_((values * std + mean).clamp(a, b))
    return tensor


def _propose(values: Tensor, low: float, high: float, generator: Any) -> Tensor:
    """Fill with proposals for a standard normal on [low, high]; return which are rejected."""
    mass = 0.5 * (math.erf(high / math.sqrt(2)) - math.erf(low / math.sqrt(2)))
    if mass > 0.25:
        values.normal_(0.0, 1.0, generator=generator)
        return (values < low) | (values > high)
    # the density is largest at `near`; below 1e-16 of it no proposal would be accepted
    near = min(max(0.0, low), high)
    reach = math.sqrt(near * near + 74.0)
    low, high = max(low, -reach), min(high, reach)
    values.uniform_(low, high, generator=generator)
    chance = pc.empty_like(values).uniform_(0.0, 1.0, generator=generator)
    return chance > ((near * near - values * values) * 0.5).exp()


def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with ``gain`` times a random (semi-)orthogonal matrix (Saxe et al. 2013).

    The dimensions after the first count as one. The matrix is uniformly distributed: it comes from
    the Gram-Schmidt process, run twice for accuracy, on normal numbers.

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
    short, long = min(rows, columns), max(rows, columns)
    vectors = pc.empty(short, long, dtype=tensor.dtype, device=tensor.device)
    vectors.normal_(0.0, 1.0, generator=generator)
    for i in range(short):
        v = vectors.narrow(0, i, 1)
        for _ in range(2 if i else 0):
            before = vectors.narrow(0, 0, i)
            v = v - (v @ before.transpose(0, 1)) @ before
        vectors.narrow(0, i, 1).copy_(v / (v * v).sum().sqrt())
    result = vectors if rows <= columns else vectors.transpose(0, 1)
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
        chosen = pc.randperm(rows, generator=generator, device=values.device)[:zeros]
        values[chosen, column] = 0
    return tensor
